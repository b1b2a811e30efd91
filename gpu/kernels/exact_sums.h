#pragma once

#include "core/base/error.h"
#include "gpu/kernels/device_data.h"

#include <string>

// Which of the two exact sums a device is given.
namespace kvscope::gpu {

/// The variable that forces one of them, "double" or "pairs": for measuring and for tests.
inline constexpr const char* kExactSumsVariable = "KVSCOPE_EXACT_SUMS";

/// Pairs should win from this ratio of float to double throughput on. A product costs one operation in double and 7
/// float operations in a pair (product_sums.h); compiled for 8.9, 16 products are 112 of these, 16 moves, 4 loads and 5
/// others: 8.6 instructions for each. To settle and to become a double takes 0.2 + 0.03 ratio more of 128 elements.
/// What follows a logit (exponentials) is in double either way. Of the architectures that kernels are compiled for 8.0
/// and 9.0 have a ratio of 2, the others of 64. No times are known yet: resources/dev/gpu_report.sh takes them.
inline constexpr int kPairsFromRatio = 9;

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
