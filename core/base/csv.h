#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// A field as RFC 4180 has it: in quotes, with quotes doubled, where it holds a comma, a quote or a line end.
std::string csvField(std::string_view text);

/// The fields with commas between them and a line end behind them.
std::string csvLine(const std::vector<std::string>& fields);

} // namespace kvscope
