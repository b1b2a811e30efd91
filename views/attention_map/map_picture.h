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

/// Draws what was captured but is not computed yet: the coarse overview, hatched. drawMap covers computed cells.
void drawUncomputed(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
                    const Theme& theme);
/// Draws what is not computed, and over it the pixels of the map where their rows and keys lie.
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

/// Draws the whole map small, with a frame around the part that is shown; only on the screen and only where a part is
/// shown. The minimap is the handle `kMinimap`.
void drawMinimap(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
                 const ViewInput& input, const Viewport& viewport);
constexpr PickId kMinimap{PickId::Kind::Handle, -3};
/// Moves the middle of the shown part to a point of the minimap; the part stays inside what was captured.
std::optional<SettingChange> movedOnMinimap(const AttentionMapData& data, const Scene& scene, Point at);

/// Width in pixels that the inset needs in the layout: 0 if it fits over masked cells with its texts, or if the map
/// would not stay clearly wider than high.
double widthForInset(const MapLayout& layout, const AttentionMapData& data, const ViewInput& input,
                     const Viewport& viewport);

/// Query and key of the magnified cell under a point of a scene.
std::optional<std::pair<TokenIndex, TokenIndex>> magnifiedCellAt(const AttentionMapData& data, const Scene& scene,
                                                                 Point at);
/// The box of the inset; nothing where no inset is drawn.
std::optional<Box> insetOf(const Scene& scene);

/// "Query 920 “was”, key 615 “7281”: weight 0.0312 · rank 5 of 921".
std::string lockedSentence(const ViewInput& input, const AttentionMapData& data);
/// "0.0312", "−3.1", "masked".
std::string cellText(float value);

/// What is under a point: a pixel of the map or a cell of the magnified neighbourhood. A cell's facts carry the lock
/// that a click makes, or, on the locked cell, releases.
PointFacts mapFactsAt(const ViewInput& input, const AttentionMapData& data, const Scene& scene, Point at);

/// A row per cell: the magnified neighbourhood first where a cell is locked, then the pixels. `data` may be null.
ViewTable mapTable(std::shared_ptr<const AttentionMapData> data);

} // namespace kvscope
