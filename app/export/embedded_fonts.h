#pragma once

#include "views/scene/scene.h"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace kvscope {

/// The bundled fonts that texts use, cut down to the characters in them, for readers who have none of these fonts.
class EmbeddedFonts {
public:
    /// False when a character is in none of the bundled fonts; the others are added all the same.
    bool add(const TextStyle& style, std::string_view utf8);

    /// @font-face rules with the fonts as data URIs, under the names of cssFamilies. Equal texts give equal bytes.
    std::string css() const;

private:
    std::map<std::string, std::set<char32_t>> m_characters; ///< by file
};

/// Value of CSS's font-family: the embedded fonts first, then what most systems have.
const char* cssFamilies(FontFace face);

} // namespace kvscope
