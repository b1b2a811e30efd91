#pragma once

#include "views/attention_map/map_cell.h"
#include "views/attention_map/map_colours.h"
#include "views/attention_map/map_layout.h"
#include "views/common/view_facts.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kvscope {

/// What was captured but is not computed yet: the coarse picture of the whole, hatched. Masked cells are not hatched.
void drawUncomputed(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
                    const Theme& theme);
/// The pixels of the map where their rows and keys lie, over that.
void drawMap(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
             double pixelScale, const Theme& theme);
/// Share of kept tokens per pixel: every pane above the plot, the active one beside it.
void drawRails(SceneBuilder& builder, const MapLayout& layout, const ViewInput& input, const Theme& theme);
void drawMarginal(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const Theme& theme);
/// The cut, the selected tokens and the token under the pointer.
void drawMarks(SceneBuilder& builder, const MapLayout& layout, const ViewInput& input, const Theme& theme);

/// The setting change that locks a cell, or unlocks it.
SettingChange lockOf(const std::optional<MapCell>& cell);

/// Draws the neighbourhood of the locked cell, magnified, with the tokens' texts and, where there is room, the values,
/// and its frame on the map. The inset is beside the map or over masked cells, otherwise over the corner farthest from
/// the cell.
void drawLockedCell(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
                    const ViewInput& input, const Viewport& viewport);

/// The whole map small with a frame around the part that is shown: where a part is shown on the screen. It is the
/// handle `kMinimap`.
void drawMinimap(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
                 const ViewInput& input, const Viewport& viewport);
constexpr PickId kMinimap{PickId::Kind::Handle, -3};
/// The shown part with its middle at a point of the small map, inside what was captured.
std::optional<SettingChange> movedOnMinimap(const AttentionMapData& data, const Scene& scene, Point at);

/// Share of the width that the inset needs in the layout: none if it fits over masked cells with its texts, or if the
/// map would not stay clearly wider than high.
double widthForInset(const MapLayout& layout, const AttentionMapData& data, const ViewInput& input,
                     const Viewport& viewport);

/// Query and key of the magnified cell under a point of a scene.
std::optional<std::pair<TokenIndex, TokenIndex>> magnifiedCellAt(const AttentionMapData& data, const Scene& scene,
                                                                 Point at);
/// The ground of the inset; nothing where none is drawn.
std::optional<Box> insetOf(const Scene& scene);

/// "query 920 “was” gives key 615 “7281” the weight 0.0312, rank 5 of 921".
std::string lockedSentence(const ViewInput& input, const AttentionMapData& data);
/// "0.0312", "−3.1", "masked".
std::string cellText(float value);

/// What is under a point: a pixel of the map or a cell of the magnified neighbourhood. A cell's facts carry the lock
/// that a click makes, or, on the locked cell, releases.
PointFacts mapFactsAt(const ViewInput& input, const AttentionMapData& data, const Scene& scene, Point at);

/// A row per cell: the magnified neighbourhood first where a cell is locked, then the pixels. `data` may be null.
ViewTable mapTable(std::shared_ptr<const AttentionMapData> data);

} // namespace kvscope
