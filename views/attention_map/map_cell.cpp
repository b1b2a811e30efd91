// Text form of a locked cell, for the command line.
#include "views/attention_map/map_cell.h"

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/parameters/parameter_rows.h"

#include <fmt/format.h>

namespace kvscope {

namespace {

[[noreturn]] void refuse(std::string_view text) {
    throw Error({fmt::format("'{}' is no cell of an attention map", text), "option cell",
                 "Write none, QUERY,KEY like 920,615, or rectangles of both like 920-922,612-615"});
}

/// "920" or "920-922".
void readSpan(std::string_view whole, std::string_view text, TokenIndex& first, TokenIndex& last) {
    const auto number = [&](std::string_view digits) {
        const auto value = parseNumber<TokenIndex>(digits);
        if (!value || *value < 0) refuse(whole);
        return *value;
    };
    const std::size_t dash = text.find('-');
    first = number(text.substr(0, dash));
    last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
    if (last < first) refuse(whole);
}

void check(std::string_view text) { (void)MapCell::parse(text); }

std::string spanText(TokenIndex first, TokenIndex last) {
    return first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
}

} // namespace

std::optional<MapCell> MapCell::parse(std::string_view text) {
    if (text == "none") return std::nullopt;
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) refuse(text);
    MapCell cell;
    readSpan(text, text.substr(0, comma), cell.firstQuery, cell.lastQuery);
    readSpan(text, text.substr(comma + 1), cell.firstKey, cell.lastKey);
    return cell;
}

std::string MapCell::text() const { return spanText(firstQuery, lastQuery) + "," + spanText(firstKey, lastKey); }

ParameterSpec mapCellOption() {
    return textRow("cell", "Cell", "none", Stage::Combine,
                   "QUERY,KEY of the cell whose neighbourhood is shown large, like 920,615; none.",
                   "a click on the map", check);
}

ParameterSpec mapAroundOption() {
    return integerRow("around", "Neighbourhood", "", "cells", {9, 15, 11, 2}, Stage::Combine,
                      "Cells across the neighbourhood of the locked cell.", "the magnified neighbourhood");
}

} // namespace kvscope
