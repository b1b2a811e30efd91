#pragma once

#include "core/engine/cpu/kernels.h"
#include "core/engine/cpu/workers.h"

#include <cstdint>
#include <vector>

namespace kvscope::cpu {

inline constexpr std::int64_t kMomentRows = 2048; ///< rows of one partial sum

/// Sums of x_a x_b and of x_a over rows [n, d], in double. d is padded to a stride that is a multiple of 8.
struct RowMoments {
    std::int64_t stride = 0;
    std::vector<double> products; ///< [stride, stride]; only a <= b is filled
    std::vector<double> sums;     ///< [stride]
};

/// The same bits for any number of threads. Advances progress by n. n = 0 gives zeros.
RowMoments rowMoments(const Workers& workers, const Kernels& kernels, const float* rows, std::int64_t n, std::int64_t d,
                      Progress& progress);

} // namespace kvscope::cpu
