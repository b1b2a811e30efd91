// A range of colours or of an axis is the same word on a command line, in a session and in an input field, so that none
// rounds it.
#include "views/common/value_range.h"

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/parameters/parameter_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kvscope {

namespace {

[[noreturn]] void refuse(std::string_view text, const char* why) {
    throw Error(
        {fmt::format("'{}' is no range of values{}", text, why), "option range",
         "Write auto, each, or two numbers like 0.001..0.2, the first below the second; either may be missing"});
}

std::optional<double> readEnd(std::string_view whole, std::string_view text) {
    if (text.empty()) return std::nullopt;
    const auto value = parseNumber<double>(text);
    if (!value || !std::isfinite(*value)) refuse(whole, "");
    return value;
}

} // namespace

ValueRange ValueRange::parse(std::string_view text) {
    ValueRange range;
    range.each = text == "each";
    if (range.each || text == "auto") return range;
    std::string_view ends = text;
    if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
        range.quantity = text.substr(0, colon);
        ends = text.substr(colon + 1);
    }
    const std::size_t dots = ends.find("..");
    if (dots == std::string_view::npos) refuse(text, "");
    range.low = readEnd(text, ends.substr(0, dots));
    range.high = readEnd(text, ends.substr(dots + 2));
    if (!range.isChosen()) refuse(text, ": it has no end");
    if (range.low && range.high && !(*range.low < *range.high)) refuse(text, ": it ends before it begins");
    return range;
}

std::string ValueRange::text() const {
    if (!isChosen()) return each ? "each" : "auto";
    const auto end = [](const std::optional<double>& value) {
        return value ? fmt::format("{}", *value) : std::string();
    };
    return (quantity.empty() ? "" : quantity + ":") + end(low) + ".." + end(high);
}

ParameterSpec valueRangeOption(void (*check)(std::string_view)) {
    return textRow(kValueRangeOption, "Colour range", "auto", Stage::Select,
                   "Values at the ends of the colours, like 0.001..0.2; auto: as the scale has them, one range for "
                   "pictures of two captures or of all heads; each: every picture its own.",
                   "the handles of the colour column", check);
}

void checkValueRange(std::string_view text, std::span<const std::string_view> known, const char* whose) {
    const ValueRange range = ValueRange::parse(text);
    if (range.quantity.empty() || std::ranges::find(known, range.quantity) != known.end()) return;
    throw Error({fmt::format("{} has no values called '{}'", whose, range.quantity), "option range",
                 fmt::format("Write one of {} before the colon, or leave it out", fmt::join(known, ", "))});
}

double roundedValue(double value) {
    double rounded = 0;
    const std::string text = fmt::format("{:.3g}", value);
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    return rounded;
}

std::string formatBound(double value) {
    const double magnitude = std::abs(value);
    const bool hasExponent = magnitude != 0 && (magnitude < 0.00995 || magnitude >= 1e6);
    std::string text = hasExponent || magnitude < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
    if (hasExponent) {
        const int exponent = static_cast<int>(std::floor(std::log10(magnitude) + 1e-12));
        text = fmt::format("{:.3g}e{}", value / std::pow(10.0, exponent), exponent);
    }
    std::string result;
    for (const char c : text) result += c == '-' ? "\u2212" : std::string(1, c);
    return result;
}

} // namespace kvscope
