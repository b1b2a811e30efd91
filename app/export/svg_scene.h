#pragma once

#include "app/export/embedded_fonts.h"
#include "views/scene/scene.h"

#include <QString>

#include <string>

namespace kvscope {

struct SvgOptions {
    std::string title, description; ///< of a file; empty: none
    std::string label;              ///< for screen readers, of a picture inside a page
    std::string name;               ///< of a picture inside a page: prefix of the ids in it
    std::size_t rasteriseAbove = 0; ///< as in PaintOptions
    bool outlines = false;          ///< texts as shapes
};

/// The scene as an <svg> element that looks as paintScene paints it: sizes in millimetres (96 logical pixels an inch),
/// clips, texts anchored where they are aligned. A text is text where the bundled fonts have its characters, and shapes
/// otherwise. `fonts`: gathers the texts; the caller embeds them in the page. Null: they are embedded in the element.
std::string sceneAsSvg(const Scene& scene, const SvgOptions& options, EmbeddedFonts* fonts = nullptr);

/// The text as XML holds it: escaped, without the characters that XML forbids (control characters, U+FFFE, U+FFFF).
QString xmlText(const std::string& text);

} // namespace kvscope
