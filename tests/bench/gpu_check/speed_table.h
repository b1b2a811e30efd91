#pragma once

#include "tests/bench/gpu_check/timed_kernels.h"

#include <string>

namespace kvscope::check {

/// Targets for a kernel's time.
struct SpeedScale {
    double copyBytes = 0;      ///< per second
    double tensorFlops = 0;    ///< per second
    double doubleFlops = 0;    ///< per second
    double floatFlops = 0;     ///< per second
    double flashSeconds = 0;   ///< PyTorch's flash attention forward in the same run; 0: not measured
    bool isTargetSize = false; ///< the layer is the one that the targets are set for
};

std::string speedHeading();
/// Time, rates, shares of the device's rates, and whether the target is met.
std::string speedLine(const TimedKernel& kernel, double seconds, const SpeedScale& scale);

} // namespace kvscope::check
