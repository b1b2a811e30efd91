// A reader compares the ends of a bar with its ticks, so all of them have one notation, chosen by the largest and the step.
#include "views/bar_labels.h"

#include "views/scene/axes.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr int kLetters = 8; // in the column
constexpr double kLeastFixed = 0.00995, kMostFixed = 1e6; // smaller or larger: powers of ten

int exponentOf(double magnitude) {
    return static_cast<int>(std::floor(std::log10(magnitude) + 1e-12));
}

std::string powerText(double mantissa, int decimals, int exponent) {
    return formatFixed(mantissa, decimals) + "e" + formatFixed(exponent, 0);
}

bool isWhole(double value) {
    return std::abs(value - std::round(value)) < 1e-9 * std::max(1.0, std::abs(value));
}

} // namespace

BarLabels::BarLabels(double low, double high, double step) {
    const double size = std::max({std::abs(low), std::abs(high), 1e-300});
    const int beyond = 1, sign = low < 0 ? 1 : 0;
    m_isPower = size < kLeastFixed || size >= kMostFixed;
    if (m_isPower) {
        m_exponent = exponentOf(size);
        const int power = 2 + (m_exponent < 0 ? 1 : 0) + (std::abs(m_exponent) >= 10 ? 1 : 0); // "e−4"
        m_mostDecimals = std::max(0, kLetters - beyond - sign - power - 2);
        m_decimals = std::min(2, m_mostDecimals);
        return;
    }
    const int digits = std::max(1, exponentOf(size) + 1), commas = (digits - 1) / 3;
    m_mostDecimals = std::max(0, kLetters - beyond - sign - digits - commas - 1);
    const bool counts = step >= 1 && isWhole(low) && isWhole(high);
    m_decimals = counts ? 0 : std::clamp(2 - exponentOf(step), 0, m_mostDecimals); // a hundredth of a step
}

void BarLabels::showWhole(double value) {
    while (!m_isPower && m_decimals < m_mostDecimals && !isWhole(value * std::pow(10.0, m_decimals)))
        ++m_decimals;
}

std::string BarLabels::text(double value) const {
    if (m_isPower)
        return value == 0 ? "0" : powerText(value / std::pow(10.0, m_exponent), m_decimals, m_exponent);
    return m_decimals == 0 ? formatCount(std::llround(value)) : formatFixed(value, m_decimals);
}

std::string decadeLabel(double value) {
    if (!(value > 0))
        return "0";
    const int exponent = exponentOf(value);
    double mantissa = value / std::pow(10.0, exponent);
    std::string text = formatFixed(mantissa, 2);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
        text.pop_back();
    return exponent == 0 ? text : text + "e" + formatFixed(exponent, 0);
}

} // namespace kvscope
