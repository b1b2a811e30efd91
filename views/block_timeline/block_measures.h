#pragma once

#include "core/base/index.h"
#include "views/block_timeline/block_timeline_data.h"
#include "views/scene/axes.h"
#include "views/scene/theme.h"
#include "views/view.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace kvscope {

/// The cosine of the cache's mean key with the mean of all keys read, step by step.
Scene drawAnchorDrift(const BlockTimelineData& data, const ViewInput& input, const PaneData& pane,
                      const Viewport& viewport);
/// The output error against the size of the blocks, with the prompt at once as a level. The pick of a mark is the index
/// of its size, counted without the prompt at once.
Scene drawBlockSizes(const BlockTimelineData& data, const ViewInput& input, const PaneData& pane,
                     const Viewport& viewport);

std::string driftFinding(const BlockTimelineData& data, const PaneData& pane);
std::string sizesFinding(const BlockTimelineData& data, const PaneData& pane);

/// Number of events at or before the cursor; without a cursor all of them.
inline std::size_t eventsUntil(const std::vector<TokenIndex>& events, std::optional<TokenIndex> cursor) {
    if (!cursor) return events.size();
    return static_cast<std::size_t>(std::ranges::upper_bound(events, *cursor) - events.begin());
}

/// Shades tokens to the right of the cursor ("not read yet") and draws the cursor's line; the x axis counts tokens of
/// the stream. Draws nothing outside the axis.
void drawStepCursor(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme, TokenIndex cursor);
/// The number of the cursor, which must not lie under marks: drawn after them.
void drawStepChip(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme, TokenIndex cursor);

} // namespace kvscope
