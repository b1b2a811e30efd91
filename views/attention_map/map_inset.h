#pragma once

#include "views/attention_map/map_cell.h"
#include "views/attention_map/map_painter.h"

#include <optional>
#include <string>
#include <utility>

namespace kvscope {

/// What a click on a cell stores, or what releases it.
SettingChange lockOf(const std::optional<MapCell>& cell);

/// The neighbourhood of the locked cell, magnified, with the tokens' texts and, where there is room, the values; and on
/// the map itself where it lies. It stands beside the map or over masked cells, and only where neither has room over
/// the corner that is farthest from the cell.
void drawLockedCell(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
                    const ViewInput& input, const Viewport& viewport);

/// How much of the width the magnified neighbourhood asks the layout for: none where it stands over masked cells with
/// its texts, or where the map would not stay clearly wider than high.
double widthForInset(const MapLayout& layout, const AttentionMapData& data, const ViewInput& input,
                     const Viewport& viewport);

/// Query and key of the magnified cell under a point of a scene.
std::optional<std::pair<TokenIndex, TokenIndex>> magnifiedCellAt(const AttentionMapData& data, const Scene& scene,
                                                                 Point at);
/// Whether the point lies on the inset at all.
bool isOnInset(const Scene& scene, Point at);

/// "query 920 “was” gives key 615 “7281” the weight 0.0312, rank 5 of 921".
std::string lockedSentence(const ViewInput& input, const AttentionMapData& data);
/// "0.0312", "−3.1", "masked".
std::string cellText(float value);

} // namespace kvscope
