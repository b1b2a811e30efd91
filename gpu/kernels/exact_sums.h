#pragma once

#include "core/base/error.h"
#include "gpu/kernels/device_data.h"

#include <string>

// Chooses between the two exact sums (ExactSums) for a device.
namespace kvscope::gpu {

/// Environment variable that forces "double" or "pairs", for measurements and tests.
inline constexpr const char* kExactSumsVariable = "KVSCOPE_EXACT_SUMS";

/// From this ratio of float to double throughput on, pairs should win. A product costs one operation in double and 7
/// float operations in a pair (product_sums.h); compiled for 8.9, 16 products are 112 of these, 16 moves, 4 loads and 5
/// others: 8.6 instructions each. Settling and converting to double adds 0.2 + 0.03 ratio for 128 elements.
/// Exponentials after a logit run in double either way. Of the compiled architectures 8.0 and 9.0 have a ratio of 2,
/// the others of 64. Not measured yet: resources/dev/gpu_report.sh takes the times.
inline constexpr int kPairsFromRatio = 9;

/// Float operations in the time of one in double on the current CUDA device; 1 where it cannot be asked.
int singleToDoubleRatio();

/// `asked`: value of the variable; null or "": the faster one. Throws Error for another word.
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
