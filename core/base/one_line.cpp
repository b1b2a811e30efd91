// Messages quote files, file names and command lines, which can hold anything: quoted text is escaped and shortened
// here before it is shown.
#include "core/base/one_line.h"

#include <algorithm>
#include <cstdio>

namespace kvscope {

namespace {

constexpr std::size_t kLongestValue = 200, kLongestMessage = 1000;

std::string escape(const char* form, std::uint32_t value) {
    char text[16];
    std::snprintf(text, sizeof text, form, value);
    return text;
}

/// Whether the character breaks a line, moves the cursor or changes the direction of the text after it.
bool isHarmful(std::uint32_t point) {
    return point < 0x20 || (point >= 0x7f && point <= 0x9f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0x200e || point == 0x200f || point == 0xfeff;
}

std::string escaped(std::uint32_t point) {
    if (point == '\n') return "\\n";
    if (point == '\r') return "\\r";
    if (point == '\t') return "\\t";
    return escape(point < 0x80 ? "\\x%02x" : "\\u%04x", point);
}

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u; }

/// Where a quoted value that begins at `open` ends: at a quote before a space, a punctuation mark or the end.
std::size_t closingQuote(std::string_view text, std::size_t open) {
    for (std::size_t at = text.find('\'', open + 1); at != std::string_view::npos; at = text.find('\'', at + 1))
        if (at + 1 == text.size() || std::string_view(" ,.;:)").find(text[at + 1]) != std::string_view::npos) return at;
    return std::string_view::npos;
}

/// The end of the space, word or quoted value that begins at `begin`.
std::size_t valueEnd(std::string_view text, std::size_t begin) {
    if (text[begin] == ' ') return begin + 1;
    if (text[begin] == '\'')
        if (const std::size_t close = closingQuote(text, begin); close != std::string_view::npos) return close + 1;
    return std::min(text.find(' ', begin), text.size());
}

} // namespace

std::string oneLine(std::string_view text) {
    std::string line;
    while (!text.empty()) {
        const CodePoint point = codePointAt(text);
        if (point.length == 0)
            line += escape("\\x%02x", static_cast<unsigned char>(text[0]));
        else if (isHarmful(point.value))
            line += escaped(point.value);
        else
            line += text.substr(0, point.length);
        text.remove_prefix(point.length == 0 ? 1 : point.length);
    }
    return line;
}

std::string shortened(std::string_view utf8, std::size_t most) {
    if (utf8.size() <= most) return std::string(utf8);
    std::size_t head = (most - 3) * 2 / 3, tail = utf8.size() - (most - 3 - head);
    while (head > 0 && continues(utf8[head])) --head;
    while (tail < utf8.size() && continues(utf8[tail])) ++tail;
    std::string text(utf8.substr(0, head));
    return text.append("...").append(utf8.substr(tail));
}

std::string messageText(std::string_view text) {
    const std::string line = oneLine(text);
    std::string message;
    for (std::size_t begin = 0; begin < line.size();) {
        const std::size_t end = valueEnd(line, begin);
        message += shortened(std::string_view(line).substr(begin, end - begin), kLongestValue);
        begin = end;
    }
    return shortened(message, kLongestMessage);
}

CodePoint codePointAt(std::string_view bytes) {
    const auto lead = static_cast<unsigned char>(bytes[0]);
    const std::size_t length = lead < 0x80         ? 1
                               : (lead >> 5) == 6  ? 2
                               : (lead >> 4) == 14 ? 3
                               : (lead >> 3) == 30 ? 4
                                                   : 0;
    if (length == 0 || length > bytes.size()) return {};
    std::uint32_t point = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        if ((byte & 0xC0u) != 0x80u) return {};
        point = (point << 6) | (byte & 0x3Fu);
    }
    const bool overlong =
        (length == 2 && point < 0x80) || (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    return overlong || surrogate || point > 0x10FFFF ? CodePoint{} : CodePoint{point, length};
}

bool isUtf8(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::size_t length = codePointAt(bytes).length;
        if (length == 0) return false;
        bytes.remove_prefix(length);
    }
    return true;
}

std::string_view withoutByteOrderMark(std::string_view text) {
    return text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;
}

} // namespace kvscope
