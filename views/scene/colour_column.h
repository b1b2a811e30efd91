#pragma once

#include "views/scene/axes.h"

#include <string>
#include <vector>

namespace kvscope {

/// The scale of a map: an upright bar, low at the bottom, with the histogram of the shown values beside it.
struct ColourColumnSpec {
    std::string map = "viridis";
    bool inverted = false;
    std::vector<Tick> ticks;       ///< value: 0 bottom .. 1 top
    std::vector<double> histogram; ///< relative counts, low to high; may be empty
};

constexpr double kColourColumnWidth = 66; ///< with histogram and labels

/// `box`: left edge and height of the whole; the bar stands behind the histogram, labels to its right.
void drawColourColumn(SceneBuilder& builder, const Box& box, const ColourColumnSpec& spec, const Theme& theme);

} // namespace kvscope
