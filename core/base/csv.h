#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// A field as RFC 4180 writes it: in quotes, with quotes doubled, where it holds a comma, a quote or a line end.
std::string csvField(std::string_view text);

/// The fields with commas between them and a line end after them.
std::string csvLine(const std::vector<std::string>& fields);

/// The records of a text one after the other (RFC 4180): fields separated by commas, quoted ones may hold commas,
/// quotes (doubled) and line ends. The text must outlive the object.
class CsvRecords {
public:
    explicit CsvRecords(std::string_view text) : m_text(text) {}

    bool atEnd() const { return m_at >= m_text.size(); }
    std::int64_t line() const { return m_line; } ///< lines taken so far
    /// If the next line begins with '#', takes it and sets `comment` to the text after the '#'.
    bool takeComment(std::string& comment);
    std::vector<std::string> takeRecord();

private:
    std::string_view m_text;
    std::size_t m_at = 0;
    std::int64_t m_line = 0;
};

} // namespace kvscope
