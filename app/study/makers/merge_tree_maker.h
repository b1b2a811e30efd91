#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// The merge-and-reduce trees of streaming BalanceKV on one KV head, and the discrepancies of their nodes for one query
/// (MergeTreeData).
ViewDataMaker::Value makeMergeTreeData(const LayerRunner& runner, const ViewDataRequest& request,
                                       const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
