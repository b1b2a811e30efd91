#pragma once

#include "views/scene/scene.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// Pixels of a mark's bitmap per pixel of the screen. Marks lie at fractions of a pixel, where smoothing blurs by half
/// a pixel of the bitmap.
constexpr double kMarkFineness = 2;

/// A mark on a square grid of pixels, its middle in the middle of the grid.
struct MarkerBitmap {
    int size = 0;                       ///< pixels a side, a transparent one around the mark included
    std::vector<std::uint8_t> coverage; ///< [size, size], 255: inside
};

/// Antialiased. Radius and stroke width in pixels; width 0 fills the marker, else its outline is drawn. Plus and cross
/// have only an outline.
MarkerBitmap rasteriseMarker(Marker marker, double radius, double strokeWidth);

} // namespace kvscope
