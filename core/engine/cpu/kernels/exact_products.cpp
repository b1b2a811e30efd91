// Sums of products of floats, in double. A product of two 24-bit mantissas fits in the 53 bits of a double, so it is
// exact, and a fused multiply-add rounds exactly where multiply-then-add does. So this source is compiled with
// contraction on: the faster instruction changes no bit (tests/engine compares the builds).
#include "core/engine/cpu/kernels/lanes.h"

namespace kvscope::cpu::KVSCOPE_LEVEL {

namespace {

constexpr int kParts = 16; // partial sums of a dot product, the same number in every build
constexpr int kVectors = kParts / kLanes;
typedef float FloatVector __attribute__((vector_size(kLanes * sizeof(float))));
typedef float LooseFloatVector __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

[[gnu::always_inline]] inline Vector widen(const float* p) {
    return __builtin_convertvector(FloatVector(*reinterpret_cast<const LooseFloatVector*>(p)), Vector);
}

template <int N> [[gnu::always_inline]] inline double sumOfHalves(const double* x) {
    typedef double Half __attribute__((vector_size(N / 2 * sizeof(double)), aligned(8), may_alias));
    double sums[N / 2];
    *reinterpret_cast<Half*>(sums) = *reinterpret_cast<const Half*>(x) + *reinterpret_cast<const Half*>(x + N / 2);
    if constexpr (N > 2) return sumOfHalves<N / 2>(sums);
    return sums[0];
}

/// Adds the sixteen parts by halving: part i + part i + 8, and so on. A fixed tree, whatever the register width.
[[gnu::always_inline]] inline double addParts(Vector* sum) {
    for (int half = kVectors / 2; half > 0; half /= 2)
        for (int v = 0; v < half; ++v) sum[v] += sum[v + half];
    double part[kLanes];
    store(part, sum[0]);
    return sumOfHalves<kLanes>(part);
}

template <bool WithDot, bool WithSquare>
[[gnu::always_inline]] inline void oneRow(const float* row, I d, const float* other, double* dot, double* square) {
    Vector dots[kVectors] = {}, squares[kVectors] = {};
    I c = 0;
    for (; c + kParts <= d; c += kParts)
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
            const Vector x = widen(row + c + v * kLanes);
            if (WithDot) dots[v] += x * widen(other + c + v * kLanes);
            if (WithSquare) squares[v] += x * x;
        }
    double dotTail = 0, squareTail = 0;
    for (; c < d; ++c) {
        const double x = double(row[c]);
        dotTail += WithDot ? x * double(other[c]) : 0;
        squareTail += x * x;
    }
    if (WithDot) *dot = addParts(dots) + dotTail;
    if (WithSquare) *square = addParts(squares) + squareTail;
}

} // namespace

void rowProducts(const float* rows, I n, I d, const float* other, double* dots, double* squares) {
    for (I r = 0; r < n; ++r) {
        if (dots && squares)
            oneRow<true, true>(rows + r * d, d, other, dots + r, squares + r);
        else if (dots)
            oneRow<true, false>(rows + r * d, d, other, dots + r, nullptr);
        else
            oneRow<false, true>(rows + r * d, d, nullptr, nullptr, squares + r);
    }
}

void widenFloats(const float* from, I count, double* to) {
    I i = 0;
    for (; i + kLanes <= count; i += kLanes) store(to + i, widen(from + i));
    for (; i < count; ++i) to[i] = double(from[i]);
}

void exactProduct(const Product& p) { blockProduct<Multiply, 4, kLanes == 8 ? 6 : 3>(p); }

} // namespace kvscope::cpu::KVSCOPE_LEVEL
