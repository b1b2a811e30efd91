// Comma-separated values as RFC 4180 describes them: the one place that knows when a field needs quotes.
#include "core/base/csv.h"

#include <algorithm>

namespace kvscope {

std::string csvField(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string quoted(1, '"');
    for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
    return quoted + '"';
}

std::string csvLine(const std::vector<std::string>& fields) {
    std::string line;
    for (const std::string& field : fields) line += csvField(field) + ',';
    if (line.empty()) return "\n";
    line.back() = '\n';
    return line;
}

bool CsvRecords::takeComment(std::string& comment) {
    if (atEnd() || m_text[m_at] != '#') return false;
    const std::size_t end = std::min(m_text.find('\n', m_at), m_text.size());
    comment = m_text.substr(m_at + 1, end - m_at - 1);
    if (!comment.empty() && comment.back() == '\r') comment.pop_back();
    m_at = end + 1;
    ++m_line;
    return true;
}

std::vector<std::string> CsvRecords::takeRecord() {
    std::vector<std::string> fields(1);
    bool inQuotes = false;
    ++m_line;
    for (; m_at < m_text.size(); ++m_at) {
        const char c = m_text[m_at];
        m_line += c == '\n' && inQuotes ? 1 : 0;
        if (c == '"' && inQuotes && m_at + 1 < m_text.size() && m_text[m_at + 1] == '"')
            fields.back() += m_text[m_at++];
        else if (c == '"')
            inQuotes = !inQuotes;
        else if (c == ',' && !inQuotes)
            fields.emplace_back();
        else if (c == '\n' && !inQuotes)
            break;
        else if (c != '\r' || inQuotes)
            fields.back() += c;
    }
    ++m_at;
    return fields;
}

} // namespace kvscope
