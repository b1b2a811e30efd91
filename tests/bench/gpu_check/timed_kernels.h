#pragma once

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

/// A kernel with inputs in device memory, ready to be started again and again.
struct TimedKernel {
    std::string name;
    double bytes = 0;      ///< inputs read and outputs written once
    double operations = 0; ///< additions and multiplications of the formula
    std::function<void(gpu::Stream)> work;
};

/// Rows are bfloat16. What does not fit the device's memory throws DeviceError when it is made.
std::vector<std::function<TimedKernel()>> timedKernels(const gpu::DeviceMemory& memory, const LayerSize& size);

} // namespace kvscope::check
