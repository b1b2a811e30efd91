#pragma once

#include "views/attention_map/map_colours.h"
#include "views/view_facts.h"

#include <vector>

namespace kvscope {

/// Where the parts of the picture lie.
struct MapLayout {
    PlotFrame frame;      ///< x keys, y queries downwards
    Box marginal;         ///< column sums; no height: none
    Box rails;            ///< above the plot, one row per pane
    Box sideRail;         ///< right of the plot, active pane
    Box column;           ///< colour column; no width: none
};

constexpr double kRailHeight = 8, kRailGap = 2;

/// Rows and columns of the image that the map is drawn as: a pixel a cell, or fewer where there are more cells than pixels.
struct MapImage {
    Box box;
    std::int64_t rows = 1, columns = 1;
};
MapImage mapImageOf(const MapLayout& layout, const AttentionMapData& data, double pixelScale);

/// The pixels of the map where their rows and keys lie; everything else inside the plot is masked ground.
void drawMap(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
             double pixelScale, const Theme& theme);
/// Share of kept tokens per pixel: every pane above the plot, the active one beside it.
void drawRails(SceneBuilder& builder, const MapLayout& layout, const ViewInput& input, const Theme& theme);
void drawMarginal(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const Theme& theme);
/// The cut, the selected tokens and the token under the pointer.
void drawMarks(SceneBuilder& builder, const MapLayout& layout, const ViewInput& input, const Theme& theme);

} // namespace kvscope
