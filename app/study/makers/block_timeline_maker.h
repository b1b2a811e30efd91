#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// BlockTimelineData of the active pane: the drift of the anchor from the steps of its run, or the same request with
/// one block size after the other. Empty for policies that do not read the prompt in blocks.
ViewDataMaker::Value makeBlockTimelineData(const LayerRunner& runner, const ViewDataRequest& request,
                                           const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
