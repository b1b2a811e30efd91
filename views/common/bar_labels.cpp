// A reader compares the ticks of a bar with each other, so they have one notation, chosen by the largest and the step;
// the ends are read by themselves and keep their digits.
#include "views/common/bar_labels.h"

#include "views/scene/axes.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr int kLetters = 8;                               // in the column, one of them for the sign of values beyond
constexpr double kLeastFixed = 0.00995, kMostFixed = 1e6; // beyond these a bar has powers of ten
constexpr int kSignificant = 3, kMostDecimals = 9;

int exponentOf(double magnitude) { return static_cast<int>(std::floor(std::log10(magnitude) + 1e-12)); }

/// Exponent after rounding the mantissa to so many decimals: 9.996e−5 becomes 1.00e−4.
int roundedExponent(double magnitude, int decimals) {
    const int exponent = exponentOf(magnitude);
    const double scale = std::pow(10.0, decimals);
    return std::round(magnitude / std::pow(10.0, exponent) * scale) >= 10 * scale ? exponent + 1 : exponent;
}

std::string powerText(double value, int decimals, int exponent) {
    return formatFixed(value / std::pow(10.0, exponent), decimals) + "e" + formatFixed(exponent, 0);
}

bool isWhole(double value) { return std::abs(value - std::round(value)) < 1e-9 * std::max(1.0, std::abs(value)); }

/// The decimals with which a value is exact, up to `most`.
int decimalsOf(double value, int most) {
    int decimals = 0;
    while (decimals < most && !isWhole(value * std::pow(10.0, decimals))) ++decimals;
    return decimals;
}

int lettersOf(const std::string& text) { // of UTF-8
    return static_cast<int>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// The result of `write` with the most decimals that fit.
template <typename Write> std::string shortened(int decimals, const Write& write) {
    while (decimals > 0 && lettersOf(write(decimals)) >= kLetters) --decimals;
    return write(decimals);
}

std::string fixedText(double value, int decimals) {
    return decimals <= 0 ? formatCount(std::llround(value)) : formatFixed(value, decimals);
}

} // namespace

BarLabels::BarLabels(double low, double high, double step) : m_step(step) {
    const double size = std::max({std::abs(low), std::abs(high), 1e-300});
    const int sign = low < 0 ? 1 : 0;
    m_isPower = size < kLeastFixed || size >= kMostFixed;
    if (m_isPower) {
        m_exponent = exponentOf(size);
        const int power = 2 + (m_exponent < 0 ? 1 : 0) + (std::abs(m_exponent) >= 10 ? 1 : 0); // "e−4"
        m_decimals =
            decimalsOf(step / std::pow(10.0, m_exponent), std::clamp(kLetters - sign - power - 2, 0, kMostDecimals));
        return;
    }
    const int digits = std::max(1, exponentOf(size) + 1), commas = (digits - 1) / 3;
    m_counts = step >= 1 && isWhole(low) && isWhole(high);
    m_decimals = decimalsOf(step, std::max(0, kLetters - sign - digits - commas - 1));
}

std::string BarLabels::tick(double value) const {
    if (m_isPower) return value == 0 ? "0" : powerText(value, m_decimals, m_exponent);
    return fixedText(value, m_decimals);
}

std::string BarLabels::end(double value, bool chosen) const {
    if (value == 0) return "0";
    const double magnitude = std::abs(value);
    const int exponent = roundedExponent(magnitude, kSignificant - 1);
    if (m_counts && isWhole(value) && exponent < 6) return formatCount(std::llround(value));
    // Ends that three digits do not tell apart have as many digits as the ticks.
    const int digits = std::max(kSignificant - 1, exponent - exponentOf(m_step)); // after the first
    const auto own = [&](double number) { return chosen ? decimalsOf(number, kMostDecimals) : 0; };
    if (exponent >= -3 && exponent < 6)
        return shortened(std::max(digits - exponent, own(value)),
                         [&](int decimals) { return fixedText(value, decimals); });
    return shortened(std::max(digits, own(value / std::pow(10.0, exponent))),
                     [&](int decimals) { return powerText(value, decimals, roundedExponent(magnitude, decimals)); });
}

std::string decadeLabel(double value) {
    if (!(value > 0)) return "0";
    const int exponent = roundedExponent(value, 2);
    std::string text = formatFixed(value / std::pow(10.0, exponent), 2);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return exponent == 0 ? text : text + "e" + formatFixed(exponent, 0);
}

} // namespace kvscope
