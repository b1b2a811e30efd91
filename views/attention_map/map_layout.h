#pragma once

#include "views/attention_map/attention_map_data.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <cstdint>

namespace kvscope {

constexpr double kRailHeight = 8, kCaptionPitch = 14;

/// Largest aspect ratio: beyond it the diagonal is meaningless.
inline constexpr double kWidestMap = 4, kHighestMap = 1.5, kBesidePlot = 190; // rough width of axis, rail and column

/// Where the parts of the picture lie. The map is square where every token's query was captured, about as many keys as
/// queries are shown and the room is high enough; else the map fills what the other parts leave.
struct MapLayout {
    PlotFrame frame; ///< x keys, y queries downwards
    AxesStyle axes;
    Box caption; ///< above everything, or at the right in a dock that is wide and low
    bool captionBeside = false;
    Box marginal;                                 ///< column sums; no height: none
    Box rails;                                    ///< above the plot, one row per pane
    double railHeight = kRailHeight, railGap = 2; ///< thin in a low dock, and without letters
    bool railLetters = true;
    Box sideRail; ///< right of the plot, active pane
    Box column;   ///< colour column; no width: none
};

/// What the caller decides about the layout.
struct MapMargins {
    int captionRows = 1; ///< above the map
    double right = 0;    ///< width that stays free at the right of everything else
};
MapLayout layoutOfMap(const ViewInput& input, const AttentionMapData& data, const Viewport& viewport,
                      const MapMargins& margins);

/// Size of the image that the map is drawn as: one pixel per cell, or fewer where there are more cells than pixels.
struct MapImage {
    Box box;
    std::int64_t rows = 1, columns = 1;
};
MapImage mapImageOf(const MapLayout& layout, const AttentionMapData& data, double pixelScale);

} // namespace kvscope
