#pragma once

#include "core/base/error.h"
#include "gpu/kernels/device_data.h"

#include <string>

// Which of the two exact sums a device is given.
namespace kvscope::gpu {

/// The variable that forces one of them, "double" or "pairs": for measuring and for tests.
inline constexpr const char* kExactSumsVariable = "KVSCOPE_EXACT_SUMS";

/// Pairs win from this ratio of float to double throughput on. A product costs one fused multiply-add in double, 7
/// float operations in a pair (product_sums.h), a 32nd of 6 more to settle and, of 128 elements, a 128th of the 2
/// conversions and the addition in double that end a sum: below 7.2 + 0.03 ratio float operations against `ratio`.
/// What follows a logit (exponentials) is in double either way. Of the architectures that kernels are compiled for 8.0
/// and 9.0 have a ratio of 2, the others of 64. To be confirmed by times (resources/dev/gpu_report.sh): there are none.
inline constexpr int kPairsFromRatio = 8;

/// Float operations in the time of one in double on the current CUDA device; 1 where it cannot be asked.
int singleToDoubleRatio();

/// `asked`: what the variable says; null or "": what is faster. Throws Error for another word.
inline ExactSums exactSumsFor(int singleToDouble, const char* asked) {
    const std::string word = asked ? asked : "";
    if (word == "double" || word == "pairs")
        return word == "pairs" ? ExactSums::FloatPairs : ExactSums::Double;
    if (!word.empty())
        throw Error({"\"" + word + "\" names no exact sums",
                     kExactSumsVariable,
                     "set it to double or pairs, or not at all",
                     {}});
    return singleToDouble >= kPairsFromRatio ? ExactSums::FloatPairs : ExactSums::Double;
}

} // namespace kvscope::gpu
