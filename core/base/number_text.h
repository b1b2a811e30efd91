#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace kvscope {

/// The number that the whole text is, whatever the locale; nothing for other texts and numbers out of range.
template <class Number> std::optional<Number> parseNumber(std::string_view text) {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stopped == end ? std::optional(value) : std::nullopt;
}

/// Shortest text that reads back as the same number; "" for NaN, "inf" for infinity.
template <std::floating_point Number> std::string shortest(Number value) {
    if (std::isnan(value)) return {};
    std::array<char, 40> buffer{};
    return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

} // namespace kvscope
