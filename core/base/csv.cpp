// Comma-separated values as RFC 4180 describes them: the one place that knows when a field needs quotes.
#include "core/base/csv.h"

namespace kvscope {

std::string csvField(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos)
        return std::string(text);
    std::string quoted(1, '"');
    for (const char c : text)
        quoted.append(c == '"' ? 2 : 1, c);
    return quoted + '"';
}

std::string csvLine(const std::vector<std::string>& fields) {
    std::string line;
    for (const std::string& field : fields)
        line += csvField(field) + ',';
    if (line.empty())
        return "\n";
    line.back() = '\n';
    return line;
}

} // namespace kvscope
