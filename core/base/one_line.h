#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvscope {

/// `text` as one line that a terminal can show: line breaks, control and direction-changing characters become \n, \t,
/// \x07 or \u202e, bytes that are no UTF-8 become \xff. Printable text is unchanged.
std::string oneLine(std::string_view text);

/// The text in at most `most` bytes: a longer text is cut to its beginning and its end with "..." between them. No
/// character is cut. `most` is at least 16.
std::string shortened(std::string_view utf8, std::size_t most);

/// A message as it is printed: one line of at most 1,000 bytes, in which no word and no value in single quotes has more
/// than 200.
std::string messageText(std::string_view text);

/// The code point at the start of some bytes.
struct CodePoint {
    std::uint32_t value = 0;
    std::size_t length = 0; ///< bytes; 0: no valid UTF-8 sequence starts here
};

/// `bytes` is not empty. Overlong forms, surrogates and cut sequences are invalid.
CodePoint codePointAt(std::string_view bytes);

bool isUtf8(std::string_view bytes);

/// The text of a file without the byte-order mark that some editors begin it with.
std::string_view withoutByteOrderMark(std::string_view text);

} // namespace kvscope
