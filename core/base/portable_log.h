#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace kvscope {

/// ln x within 3 units in the last place of std::log (measured in tests/base), from +, -, *, / and bits alone, so that
/// every compiler and machine gives the same number. -infinity at 0, NaN below.
/// Method: x = 2^e m with m in [sqrt 1/2, sqrt 2), ln m = 2 atanh s by its series, s = (m - 1) / (m + 1), |s| < 0.172.
inline double portableLog(double x) {
    if (!(x > 0)) return x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    if (x == std::numeric_limits<double>::infinity()) return x;
    const bool tiny = x < std::numeric_limits<double>::min();
    const auto bits = std::bit_cast<std::uint64_t>(tiny ? x * 0x1p54 : x);
    auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023 - (tiny ? 54 : 0);
    auto m = std::bit_cast<double>((bits & 0x000fffffffffffffU) | 0x3ff0000000000000U);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        ++exponent;
    }
    const double s = (m - 1) / (m + 1), s2 = s * s;
    double series = 0;
    for (int power = 23; power >= 3; power -= 2) series = series * s2 + 1.0 / power;
    constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45; // high part: 42 bits
    const auto e = static_cast<double>(exponent);
    return e * kLn2High + (2 * s + (2 * s * s2 * series + e * kLn2Low));
}

} // namespace kvscope
