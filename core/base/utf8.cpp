// UTF-8 as far as tokens need it: a token may end in the middle of a character, so every sequence is checked.
#include "core/base/utf8.h"

namespace kvscope {

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

} // namespace kvscope
