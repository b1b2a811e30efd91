#pragma once

#include "views/scene/scene.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kvscope {

struct TextExtent {
    double width = 0, ascent = 0, descent = 0; ///< logical pixels
};

/// 8-bit coverage of one run of text, rasterised at `scale` device pixels per logical pixel.
struct TextBitmap {
    int width = 0, height = 0; ///< device pixels
    double left = 0, top = 0;  ///< logical offset of the bitmap from the baseline origin
    std::vector<std::uint8_t> coverage;
    std::vector<std::uint32_t> colourPixels; ///< RGBA instead of coverage for colour glyphs (emoji); else empty
};

/// Measures and draws text for all painters and layouts.
class TextService {
public:
    virtual ~TextService() = default;
    virtual TextExtent measure(std::string_view utf8, const TextStyle& style) const = 0;
    virtual TextBitmap rasterise(std::string_view utf8, const TextStyle& style, double scale) const = 0;
};

} // namespace kvscope
