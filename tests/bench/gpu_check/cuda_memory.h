#pragma once

#include "gpu/primitives/device_memory.h"

#include <functional>
#include <optional>
#include <string>

namespace kvscope::check {

/// Why no CUDA device can be used here; nothing when one can.
std::optional<std::string> missingDevice();
/// Name, memory and compute capability of the device in use.
std::string describeDevice();

/// Memory of the first CUDA device, straight from CUDA, and a stream of its own.
std::shared_ptr<const gpu::DeviceMemory> makeCudaMemory();

/// Median seconds of a graph launch of what `work` enqueues. Before every launch the caches are filled with clean
/// lines, so that neither inputs lie there nor old results are written back in its time.
double secondsOf(const std::function<void(gpu::Stream)>& work);

/// What this device reaches with the simplest loops: shares of these are honest shares.
struct DeviceRates {
    double copyBytes = 0;   ///< read plus written per second by a large copy
    double tensorFlops = 0; ///< bfloat16 products, float sums, by the instruction that the kernels use (mma.sync)
    double doubleFlops = 0; ///< fused multiply-adds, two operations each
    double floatFlops = 0;  ///< likewise
};

DeviceRates measureRates();

} // namespace kvscope::check
