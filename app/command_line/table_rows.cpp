// Tables that subcommands write, for programs as JSON and for spreadsheets as CSV.
#include "app/command_line/table_rows.h"

#include "core/base/atomic_file.h"
#include "core/base/csv.h"
#include "core/base/json/json_text.h"

#include <fmt/format.h>

#include <cmath>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

std::string cellText(const Json& value) {
    if (value.is_null()) return {};
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_number_float()) return jsonLine(value);
    const double number = value.get<double>();
    return std::isnan(number) ? std::string() : fmt::format("{}", number);
}

std::string csvText(const std::vector<TableRow>& rows, const std::string& command) {
    std::string text;
    for (const TableRow& row : rows) {
        std::vector<std::string> names, fields;
        for (const auto& [name, value] : row) {
            names.push_back(name);
            fields.push_back(cellText(value));
        }
        names.push_back("command");
        fields.push_back(command);
        text += text.empty() ? csvLine(names) + csvLine(fields) : csvLine(fields);
    }
    return text;
}

std::string jsonText(const std::string& format, const std::vector<TableRow>& rows, const std::string& command) {
    return jsonLines({{"format", format}, {"version", 1}, {"command", command}, {"rows", objectsOf(rows)}}, 1) + "\n";
}

} // namespace

Json countJson(double count) {
    return count == std::floor(count) ? Json(static_cast<std::int64_t>(count)) : Json(count);
}

Json numberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json objectsOf(std::span<const TableRow> rows) {
    Json list = Json::array();
    for (const TableRow& row : rows) {
        Json& object = list.emplace_back(Json::object());
        for (const auto& [name, value] : row) object[name] = value;
    }
    return list;
}

void writeRows(const std::string& path, const std::string& format, const std::vector<TableRow>& rows,
               const std::string& command) {
    writeFileAtomically(path, path.ends_with(".json") ? jsonText(format, rows, command) : csvText(rows, command));
}

} // namespace kvscope
