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

/// Median seconds of a graph launch of what `work` enqueues, with the caches emptied before every launch.
double secondsOf(const std::function<void(gpu::Stream)>& work);
/// Bytes read plus bytes written per second by a large copy inside the device.
double copyBandwidth();

} // namespace kvscope::check
