// IEEE 754 half precision by plain arithmetic: Clang before 15 has no type for it on x86.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kvscope::testing {

/// The half nearest to the value, of two the even one.
inline std::uint16_t halfBits(float value) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const float size = std::abs(value);
    if (std::isnan(value)) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00; // nearer to 2^16 than to the largest half
    const int exponent = size > 0 ? std::max(std::ilogb(size), -14) : -14;
    const auto steps =
        static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent))); // 2048 is the next exponent's 1024
    return static_cast<std::uint16_t>(sign + (exponent + 14) * 1024 + steps);
}

inline float halfOf(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float size = std::ldexp(static_cast<float>(exponent > 0 ? 1024 + mantissa : mantissa), std::max(exponent, 1) - 25);
    if (exponent == 31)
        size = mantissa > 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
    return bits >= 0x8000 ? -size : size;
}

} // namespace kvscope::testing
