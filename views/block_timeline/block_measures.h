#pragma once

#include "views/block_timeline/block_timeline_data.h"
#include "views/view.h"

namespace kvscope {

/// The cosine of the cache's mean key with that of all keys read, step by step.
Scene drawAnchorDrift(const BlockTimelineData& data, const ViewInput& input, const PaneData& pane,
                      const Viewport& viewport);
/// The output error against the size of the blocks, with the prompt at once as a level. Marks have the index of their
/// size as pick.
Scene drawBlockSizes(const BlockTimelineData& data, const ViewInput& input, const PaneData& pane,
                     const Viewport& viewport);

std::string driftFinding(const BlockTimelineData& data, const PaneData& pane);
std::string sizesFinding(const BlockTimelineData& data, const PaneData& pane);

} // namespace kvscope
