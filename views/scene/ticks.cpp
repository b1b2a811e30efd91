// Round numbers for axes and the way numbers are written.
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope {

namespace {

std::string withMinus(std::string text) {
    for (std::size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 3) text.replace(at, 1, "−");
    return text;
}

std::string trimmed(std::string text) {
    if (text.find('.') == std::string::npos) return text;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
double roundStep(double rough) {
    const double power = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (factor * power >= rough * (1 - 1e-9)) return factor * power;
    return 10 * power;
}

/// These multiples of every step-th power of ten.
std::vector<Tick> decadeTicks(double low, double high, const std::vector<double>& factors, int step) {
    std::vector<Tick> ticks;
    for (double decade = std::floor(std::log10(low)); decade <= std::ceil(std::log10(high)); ++decade)
        for (const double factor : factors)
            if (const double v = factor * std::pow(10, decade);
                v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9) && std::fmod(decade, step) == 0)
                ticks.push_back({v, v >= 1000 && v < 1e6 ? formatCount(std::llround(v)) : formatShort(v)});
    return ticks;
}

} // namespace

std::string formatCount(std::int64_t value) {
    std::string digits = std::to_string(value < 0 ? -value : value);
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return value < 0 ? "−" + digits : digits;
}

std::string formatFixed(double value, int decimals) {
    if (std::isnan(value)) return "n/a";
    const std::string text = fmt::format("{:.{}f}", value, decimals);
    return withMinus(text.find_first_not_of("-0.") == std::string::npos && text[0] == '-' ? text.substr(1) : text);
}

std::string formatPercent(double share) { return formatFixed(100 * share, 1) + " %"; }

std::string formatCounted(std::int64_t count, std::string_view thing) {
    if (count == 1) return fmt::format("1 {}", thing);
    const bool endsInY = thing.ends_with('y');
    return fmt::format("{} {}{}", formatCount(count), thing.substr(0, thing.size() - (endsInY ? 1 : 0)),
                       endsInY ? "ies" : "s");
}

std::string formatBudget(std::int64_t tokens, std::int64_t of) {
    const std::string count = formatCounted(tokens, "token");
    return of > 0 ? fmt::format("{} ({})", count, formatPercent(static_cast<double>(tokens) / static_cast<double>(of)))
                  : count;
}

std::string formatShort(double value) {
    if (std::isnan(value)) return "n/a";
    if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
    const double magnitude = std::fabs(value);
    if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e6)) {
        const int exponent = static_cast<int>(std::floor(std::log10(magnitude)));
        return withMinus(trimmed(fmt::format("{:.1f}", value / std::pow(10, exponent))) + "e" +
                         std::to_string(exponent));
    }
    if (magnitude >= 1000) return formatCount(std::llround(value));
    const int decimals =
        magnitude >= 100 || magnitude == 0 ? 0 : 2 - static_cast<int>(std::floor(std::log10(magnitude)));
    return withMinus(trimmed(fmt::format("{:.{}f}", value, std::max(0, decimals))));
}

std::vector<Tick> linearTicks(double low, double high, int most) {
    std::vector<Tick> ticks;
    if (!(high > low)) return ticks;
    const auto count = [&](double step) { return std::floor(high / step + 1e-9) - std::ceil(low / step - 1e-9) + 1; };
    double step = roundStep((high - low) / (std::max(1, most) + 1)); // a finer one has too many wherever it begins
    while (count(step) > most) step = roundStep(step * 1.5);
    // A single tick does not show the scale. Around 0 one finer step may not suffice.
    for (int finer = 0; finer < 3 && count(step) < 2; ++finer) step = roundStep(step * 0.3);
    const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
    for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k)
        ticks.push_back(
            {k * step, decimals == 0 ? formatCount(std::llround(k * step)) : formatFixed(k * step, decimals)});
    return ticks;
}

std::vector<Tick> logarithmicTicks(double low, double high, int most) {
    if (!(low > 0) || !(high > low)) return {};
    std::vector<Tick> ticks;
    const std::array<std::vector<double>, 3> patterns = {{{1, 2, 5}, {1, 3}, {1}}};
    for (const std::vector<double>& pattern : patterns) {
        ticks = decadeTicks(low, high, pattern, 1);
        if (&pattern == patterns.data() &&
            ticks.size() < 2) // even 1, 2, 5 miss a narrow range, over which a logarithm is nearly straight
            return linearTicks(low, high, most);
        if (static_cast<int>(ticks.size()) <= most) return ticks;
    }
    for (int step = 2; static_cast<int>(ticks.size()) > std::max(2, most); ++step)
        ticks = decadeTicks(low, high, patterns.back(), step);
    return ticks;
}

std::vector<Tick> positionTicks(std::int64_t low, std::int64_t high, int most) {
    std::vector<Tick> ticks;
    std::int64_t step = 1;
    while ((high - low) / step > most - 1) step *= 2;
    for (std::int64_t v = (low + step - 1) / step * step; v <= high; v += step)
        ticks.push_back({static_cast<double>(v), formatCount(v)});
    return ticks;
}

} // namespace kvscope
