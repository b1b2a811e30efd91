#pragma once

#include "views/scene/axes.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// The scale of a map: an upright bar, low at the bottom, with the histogram of the shown values beside it. The colours
/// run from `low` to `high`; beyond them lie their end colours.
struct ColourColumnSpec {
    std::string map = "viridis";
    bool inverted = false;
    std::vector<Tick> ticks;                   ///< value: 0 bottom .. 1 top
    std::vector<double> histogram;             ///< relative counts, low to high; may be empty
    double low = 0, high = 1;                  ///< 0 bottom .. 1 top
    std::string lowLabel = {}, highLabel = {}; ///< of these two; they take the place of ticks beside them
    bool handles = false;                      ///< the two can be dragged: kLowHandle, kHighHandle
};

constexpr double kColourColumnWidth = 66;   ///< with histogram and labels
constexpr double kLabelledColumnWidth = 82; ///< with labels of low and high too
constexpr PickId kLowHandle{PickId::Kind::Handle, 101}, kHighHandle{PickId::Kind::Handle, 102};

/// `box`: left edge and height of the whole; the bar stands behind the histogram, labels to its right.
void drawColourColumn(SceneBuilder& builder, const Box& box, const ColourColumnSpec& spec, const Theme& theme);

/// Where on the column of a scene a point lies, 0 bottom .. 1 top, beyond its ends too; nothing for a scene without
/// one.
std::optional<double> placeOnColumn(const Scene& scene, Point at);

} // namespace kvscope
