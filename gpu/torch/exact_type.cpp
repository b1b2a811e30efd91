// Captures are widened to floats when they are read. Stored in 16 bits on a device they take half the memory and feed
// tensor cores; widening them again gives the same floats.
#include "gpu/torch/exact_type.h"

#include "gpu/kernels/product_sums.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kvscope::gpu {

namespace {

bool isBFloat16(float x) { return (std::bit_cast<std::uint32_t>(x) & 0xffffU) == 0; }

/// Zeros and normal halves; not infinities and NaN.
bool isNormalHalf(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t exponent = bits >> 23 & 0xffU;
    constexpr std::uint32_t kSmallest = 127 - 14, kLargest = 127 + 15;
    return (bits & 0x7fffffffU) == 0 || ((bits & 0x1fffU) == 0 && exponent >= kSmallest && exponent <= kLargest);
}

/// Subnormal halves are multiples of 2^-24 below 2^-14.
bool isSubnormalHalf(float x) {
    const float scaled = x * 0x1p24F;
    return std::abs(x) < 0x1p-14F && scaled == static_cast<float>(static_cast<int>(scaled));
}

} // namespace

StoredAs exactTypeOf(std::span<const float> numbers) {
    if (std::ranges::all_of(numbers, isBFloat16))
        return StoredAs::BFloat16;
    if (std::ranges::all_of(numbers, [](float x) { return isNormalHalf(x) || isSubnormalHalf(x); }))
        return StoredAs::Float16;
    return StoredAs::Float32;
}

bool fitFloatPairs(std::span<const float> numbers) {
    return std::ranges::all_of(numbers, [](float x) { return fitsFloatPair(x); });
}

} // namespace kvscope::gpu
