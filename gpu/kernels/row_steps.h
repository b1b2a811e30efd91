#pragma once

#include "core/base/portable_math.h"
#include "gpu/kernels/elements.h"

#include <cmath>
#include <cstdint>

// Sums over the elements of a row in the order of the CPU engine's kernels: a fixed number of partial sums, one per
// lane of a group of threads, then a tree that adds halves. Every result has the CPU engine's bits.
namespace kvscope::gpu {

inline constexpr int kProductParts = 16;
inline constexpr int kDistanceParts = 8;

/// Partial sum `part` of sum x_c y_c: the c = part (mod 16) below the last multiple of 16, ascending.
template <class X, class Y> KVSCOPE_PORTABLE double productPart(const X* x, const Y* y, std::int64_t width, int part) {
    double sum = 0;
    for (std::int64_t c = part; c < width - width % kProductParts; c += kProductParts)
        sum = exactMultiplyAdd(double(widened(x[c])), double(widened(y[c])), sum);
    return sum;
}

/// The elements that productPart leaves out, to be added to the sum of the parts.
template <class X, class Y> KVSCOPE_PORTABLE double productTail(const X* x, const Y* y, std::int64_t width) {
    double sum = 0;
    for (std::int64_t c = width - width % kProductParts; c < width; ++c)
        sum = exactMultiplyAdd(double(widened(x[c])), double(widened(y[c])), sum);
    return sum;
}

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

/// Cosine from a dot product and the two squared norms; 0 for a zero vector. Takes a square root of each square,
/// because their product underflows for short rows.
KVSCOPE_PORTABLE double cosineOf(double dot, double square, double otherSquare) {
    const double lengths = sqrt(square) * sqrt(otherSquare);
    return lengths > 0 ? dot / lengths : lengths != lengths ? lengths : 0;
}

} // namespace kvscope::gpu
