#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// The self-balancing walks of BalanceKV on one KV head, with their kernels and bands of fair coins (WalkData).
/// Delivers the walks first.
ViewDataMaker::Value makeWalkData(const LayerRunner& runner, const ViewDataRequest& request,
                                  const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
