#pragma once

#include "views/scene/axes.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// The colour bar of a map: vertical, low at the bottom, with the histogram of the shown values beside it. The colours
/// run from `low` to `high`; values beyond them have the end colours.
struct ColourColumnSpec {
    std::string map = "viridis";
    bool inverted = false;
    std::vector<Tick> ticks;                   ///< value: 0 bottom .. 1 top
    std::vector<double> histogram;             ///< relative counts, low to high; may be empty
    double low = 0, high = 1;                  ///< 0 bottom .. 1 top
    std::string lowLabel = {}, highLabel = {}; ///< labels of low and high; ticks too close to them are left out
    std::string lowNote = {}, highNote = {};   ///< notes below low and above high, where the bar goes on
};

constexpr double kLabelledColumnWidth = 82; ///< with labels of low and high too

/// `box`: left edge and height of the whole. From left to right: histogram, bar, labels.
void drawColourColumn(SceneBuilder& builder, const Box& box, const ColourColumnSpec& spec, const Theme& theme);

constexpr PickId kColourColumn{PickId::Kind::Legend, 100}; ///< of the bar
/// The place of a point on a scene's colour column, 0 bottom .. 1 top, also beyond its ends; nothing without a column.
std::optional<double> placeOnColumn(const Scene& scene, Point at);

} // namespace kvscope
