#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// The rows of `kvscope theory` for the active pane and the layer that is looked at (TheoryData). Throws Error for a
/// policy that no theorem speaks about.
ViewDataMaker::Value makeTheoryData(const LayerRunner& runner, const ViewDataRequest& request,
                                    const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
