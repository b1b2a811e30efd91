#pragma once

#include "core/capture/capture.h"
#include "views/scene/text_service.h"

#include <memory>
#include <vector>

namespace kvscope {

constexpr double kStripLead = 27;   ///< from line to line, logical pixels
constexpr double kStripGutter = 62; ///< for positions, left of the text
const TextStyle kStripText{FontFace::Interface, 13};

/// Where every token stands when the text is set in lines of a width.
struct StripLayout {
    std::vector<TokenIndex> lineStarts; ///< first token of each line, then n
    std::vector<float> left, width;     ///< [n] from the left end of the text, logical pixels

    std::int64_t lineCount() const { return static_cast<std::int64_t>(lineStarts.size()) - 1; }
    std::int64_t lineOf(TokenIndex token) const;
};

/// As the strip writes a token: spaces inside stay, a token of white space alone is made visible.
std::string stripText(std::string_view bytes);

/// Sets the whole capture: lines break before words, inside them only where they are longer than half a line; the last
/// few layouts are remembered.
std::shared_ptr<const StripLayout> layoutStrip(const CaptureReader& capture, double width, const TextService& text);

} // namespace kvscope
