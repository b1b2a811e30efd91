#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// The shown part of the attention map (AttentionMapData): first from sampled rows if the exact picture is slow, then
/// exact. Throws Error when the capture holds no queries.
ViewDataMaker::Value makeAttentionMapData(const LayerRunner& runner, const ViewDataRequest& request,
                                          const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

/// The kind with its dependencies, which also decide when parts of a map are computed again.
const ViewDataMaker& attentionMapMaker();

} // namespace kvscope
