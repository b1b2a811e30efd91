#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// The part of the attention map that is looked at (AttentionMapData): first from sampled rows where the exact picture
/// takes longer than a glance, then exact. Throws Error when the capture holds no queries to make rows of.
ViewDataMaker::Value makeAttentionMapData(const LayerRunner& runner, const ViewDataRequest& request,
                                          const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

/// The kind with what it depends on, which also says when parts of a map are made again.
const ViewDataMaker& attentionMapMaker();

} // namespace kvscope
