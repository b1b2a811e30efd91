#pragma once

#include "core/base/portable_math.h"
#include "gpu/kernels/elements.h"

#include <cmath>
#include <cstdint>

// Distances in the order of the CPU engine's kernels: a fixed number of partial sums, one per lane of a group of
// threads, then a tree that adds halves; they have the CPU engine's bits. Norms and cosines from sums of squares and
// products.
namespace kvscope::gpu {

inline constexpr int kDistanceParts = 8;

/// Partial sum `part` of sum (x_c - y_c)^2: the c = part (mod 8). Multiplication and addition are not fused.
template <class X, class Y> KVSCOPE_PORTABLE double distancePart(const X* x, const Y* y, std::int64_t width, int part) {
    double sum = 0;
    for (std::int64_t c = part; c < width; c += kDistanceParts) {
        const double difference = double(widened(x[c])) - double(widened(y[c]));
        sum += difference * difference;
    }
    return sum;
}

/// 1 / norm from the squared norm; 0 for a zero row, NaN stays NaN.
KVSCOPE_PORTABLE double inverseLength(double square) { return square > 0 ? 1 / sqrt(square) : square; }

/// Cosine from a dot product and the two norms; 0 for a zero vector. Norms, because the product of the squares
/// underflows for short rows.
KVSCOPE_PORTABLE double cosineOf(double dot, double norm, double otherNorm) {
    const double lengths = norm * otherNorm;
    return lengths > 0 ? dot / lengths : lengths != lengths ? lengths : 0;
}

} // namespace kvscope::gpu
