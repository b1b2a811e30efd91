#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Principal axes of all keys (or values, or queries) of one head, those on them with their norms, and the captured
/// queries of one query head on the same axes; or the t-SNE of those keys, with what it looks like on its way
/// (ProjectionData).
ViewDataMaker::Value makeProjectionData(const LayerRunner& runner, const ViewDataRequest& request,
                                        const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

/// The greedy centres of the head, where the colour needs them: each costs a pass over the keys.
std::string projectionDetail(const ViewDataRequest& request);

} // namespace kvscope
