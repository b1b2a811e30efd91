#pragma once

#include "core/base/portable_math.h"

#include <cmath>
#include <cstdint>

// How tiles add up products: in double, in float (fast), or in pairs of floats, which is exact arithmetic for 16-bit
// rows where double is slow.
//
// The error of a pair is far below a float's last digit, although only floats are added. Let u = 2^-24, x_c y_c the n
// products, S the sum of their magnitudes, H the largest |high| at any time.
// - Products have no error: a bfloat16 has 8 significand bits and a half 11, so a product has 16 or 22, a float 24. A
//   fused multiply-add gives what a multiplication and an addition give: contraction changes nothing.
// - Nothing underflows or overflows. Halves are multiples of 2^-24 below 2^16: products, sums and what is cut off them
//   are multiples of 2^-48, which floats hold as normal numbers. A bfloat16 has the range of a float, so only rows of
//   elements that are 0 or 2^-50 .. 2^50 in size are added up so (fitsFloatPair): multiples of 2^-57, products and all
//   else multiples of 2^-114, and sums of 2^20 products below 2^121.
// - twoSum loses nothing, whichever summand is larger (Knuth), so an addition errs in `low` alone. Behind settle
//   |low| <= u H. Each product then cuts at most u H off `high`: |low| <= (k + 1) u H (1 + u)^k behind k products, and
//   adding to it errs by at most u times that. Over 32 products that is u^2 H sum_{k=1..32} (k + 1) = 560 u^2 H, which
//   is 17.5 u^2 H for each.
// - H is at most S and the largest |low|, about 33 u H: H <= (1 + 2^-18) S.
// So |value - sum x_c y_c| <= 18 n u^2 S: the half above 17.5 is more than what that 2^-18 and the rounding of
// high + low to a double, 2^-53 S, take. For n = 128 it is 2^-36.8 S at worst, where double has 2^-46 S. And where all
// products are multiples of some g and S is below 2^42 g, `low` is below 2^24 g and nothing errs at all: pairs and
// double then both give the exact sum.
namespace kvscope::gpu {

struct FloatPair {
    float high = 0, low = 0; ///< the number is high + low
};

/// Products between two calls of settle.
inline constexpr int kSettledProducts = 32;

/// Bound on |valueOf(sum) - sum x_c y_c| / sum |x_c y_c| for a pair over so many products, at most 2^20.
constexpr double pairErrorShare(std::int64_t products) { return 18 * 0x1p-48 * static_cast<double>(products); }

/// Whether a bfloat16 element may be summed in pairs; every finite half may. Infinity and NaN may not: pairs would make
/// NaN of an infinity that a double keeps.
KVSCOPE_PORTABLE bool fitsFloatPair(float element) {
    const float size = element < 0 ? -element : element;
    return size == 0 || (size >= 0x1p-50F && size <= 0x1p50F);
}

/// a * b + c for floats a and b: their product is exact in double, so fused and separate operations agree.
KVSCOPE_PORTABLE double exactMultiplyAdd(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

/// The same in float; fused and separate operations agree where the product is exact.
KVSCOPE_PORTABLE float multiplyAdd(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/// a + b exactly: high is their float sum.
KVSCOPE_PORTABLE FloatPair twoSum(float a, float b) {
    const float high = a + b, ofB = high - a;
    return {high, (a - (high - ofB)) + (b - ofB)};
}

KVSCOPE_PORTABLE void addProduct(double& sum, double a, double b) { sum = exactMultiplyAdd(a, b, sum); }

KVSCOPE_PORTABLE void addProduct(float& sum, float a, float b) { sum = multiplyAdd(a, b, sum); }

/// twoSum of `high` and the product, with the rounding error added to `low`: 7 float operations, where double takes 1.
KVSCOPE_PORTABLE void addProduct(FloatPair& sum, float a, float b) {
    const float high = multiplyAdd(a, b, sum.high), ofProduct = high - sum.high;
    sum.low += (sum.high - (high - ofProduct)) + multiplyAdd(a, b, -ofProduct);
    sum.high = high;
}

/// Call at least once per kSettledProducts products, and after the last.
KVSCOPE_PORTABLE void settle(double&) {}
KVSCOPE_PORTABLE void settle(float&) {}
KVSCOPE_PORTABLE void settle(FloatPair& sum) { sum = twoSum(sum.high, sum.low); }

KVSCOPE_PORTABLE double valueOf(double sum) { return sum; }
KVSCOPE_PORTABLE float valueOf(float sum) { return sum; }
KVSCOPE_PORTABLE double valueOf(const FloatPair& sum) { return double(sum.high) + double(sum.low); }

/// Factor type of a kind of sum, and the type that the sum is read as.
template <class Sum> struct ProductSum {
    using Factor = Sum;
    using Value = Sum;
};
template <> struct ProductSum<FloatPair> {
    using Factor = float;
    using Value = double;
};

} // namespace kvscope::gpu
