#pragma once

#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Names and values of the columns, in their order.
using TableRow = std::vector<std::pair<std::string, nlohmann::ordered_json>>;

/// A mean count of tokens, as an integer where it is whole.
nlohmann::ordered_json countJson(double count);
nlohmann::ordered_json numberOrNull(double value); ///< null unless it is finite
nlohmann::ordered_json objectsOf(std::span<const TableRow> rows);

/// Writes FILE.json, an object with the format's name and the command beside the rows, or FILE.csv, where the command
/// is the last column. Throws Error.
void writeRows(const std::string& path, const std::string& format, const std::vector<TableRow>& rows,
               const std::string& command);

} // namespace kvscope
