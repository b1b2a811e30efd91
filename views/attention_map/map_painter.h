#pragma once

#include "views/attention_map/map_colours.h"
#include "views/attention_map/map_layout.h"
#include "views/common/view_facts.h"

namespace kvscope {

/// The pixels of the map where their rows and keys lie; everything else inside the plot is masked ground.
void drawMap(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
             double pixelScale, const Theme& theme);
/// Share of kept tokens per pixel: every pane above the plot, the active one beside it.
void drawRails(SceneBuilder& builder, const MapLayout& layout, const ViewInput& input, const Theme& theme);
void drawMarginal(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const Theme& theme);
/// The cut, the selected tokens and the token under the pointer.
void drawMarks(SceneBuilder& builder, const MapLayout& layout, const ViewInput& input, const Theme& theme);

} // namespace kvscope
