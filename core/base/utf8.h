#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvscope {

/// The code point at the start of some bytes.
struct CodePoint {
    std::uint32_t value = 0;
    std::size_t length = 0; ///< bytes; 0: no valid UTF-8 sequence starts here
};

/// `bytes` is not empty. Overlong forms, surrogates and cut sequences are invalid.
CodePoint codePointAt(std::string_view bytes);

bool isUtf8(std::string_view bytes);

} // namespace kvscope
