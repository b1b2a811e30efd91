#pragma once

#include "core/engine/tensor.h"
#include "gpu/primitives/device_memory.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kvscope::check {

/// A layer: 8 KV heads, 32 query heads of 128 elements unless said.
struct LayerSize {
    std::int64_t tokens = 16384, kvHeads = 8, queryHeads = 32, width = 128;
};

/// What a kernel is to reach on the layer of the targets (LayerSize's values, unless said).
struct SpeedTarget {
    double seconds = 0;    ///< 0: none
    double copies = 0;     ///< else: so many times the bytes at the speed of a copy
    double flashTimes = 0; ///< else: so many times PyTorch's flash attention forward

    bool empty() const { return seconds == 0 && copies == 0 && flashTimes == 0; }
};

/// Which of the device's rates bounds the kernel's operations.
enum class Rate { Double, Float, Tensor };

/// A kernel with inputs in device memory, ready to be started again and again.
struct TimedKernel {
    std::string name;
    double bytes = 0;      ///< inputs read and outputs written once
    double operations = 0; ///< additions and multiplications of the formula
    std::function<void(gpu::Stream)> work;
    Rate rate = Rate::Double;
    SpeedTarget target = {};
};

/// Rows are bfloat16. What does not fit the device's memory throws DeviceError when it is made.
std::vector<std::function<TimedKernel()>> timedKernels(const gpu::DeviceMemory& memory, const LayerSize& size);
/// Those whose targets are set for a long layer of 131,072 tokens.
std::vector<std::function<TimedKernel()>> longKernels(const gpu::DeviceMemory& memory, const LayerSize& size);

} // namespace kvscope::check
