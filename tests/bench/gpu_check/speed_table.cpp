// One line of the report for every kernel that was timed.
#include "tests/bench/gpu_check/speed_table.h"

#include <cstdio>

namespace kvscope::check {

namespace {

/// Seconds that the target allows; 0 without a target.
double allowedSeconds(const TimedKernel& kernel, const SpeedScale& scale) {
    if (kernel.target.copies > 0) return kernel.target.copies * kernel.bytes / scale.copyBytes;
    if (kernel.target.flashTimes > 0) return kernel.target.flashTimes * scale.flashSeconds;
    return kernel.target.seconds;
}

template <class... Values> std::string text(const char* format, Values... values) {
    char line[256];
    std::snprintf(line, sizeof line, format, values...);
    return line;
}

std::string targetText(const TimedKernel& kernel, double seconds, const SpeedScale& scale) {
    if (kernel.target.empty() || !scale.isTargetSize) return "-";
    const double allowed = allowedSeconds(kernel, scale);
    if (allowed <= 0) return text("%g x flash attention, which was not measured", kernel.target.flashTimes);
    return text("%.4f ms: %s", allowed * 1e3, seconds <= allowed ? "met" : "MISSED");
}

struct RateOfDevice {
    double flops;
    const char* name;
};

RateOfDevice rateOf(Rate rate, const SpeedScale& scale) {
    switch (rate) {
    case Rate::Tensor: return {scale.tensorFlops, "mma"};
    case Rate::Float: return {scale.floatFlops, "fp32"};
    case Rate::Double: break;
    }
    return {scale.doubleFlops, "fp64"};
}

} // namespace

std::string speedHeading() {
    return text("%-48s %12s %10s %8s %12s %10s  %s", "kernel", "ms", "GB/s", "of copy", "GFLOP/s", "of rate", "target");
}

std::string speedLine(const TimedKernel& kernel, double seconds, const SpeedScale& scale) {
    const double bytes = kernel.bytes / seconds, flops = kernel.operations / seconds;
    const RateOfDevice rate = rateOf(kernel.rate, scale);
    return text("%-48s %12.4f %10.1f %6.0f %% %12.1f %4.0f %% %s  %s", kernel.name.c_str(), seconds * 1e3, bytes / 1e9,
                100 * bytes / scale.copyBytes, flops / 1e9, 100 * flops / rate.flops, rate.name,
                targetText(kernel, seconds, scale).c_str());
}

} // namespace kvscope::check
