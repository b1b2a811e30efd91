#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Runs the active pane's SubGen with its step log (ClusteringData), or counts clusters over radii and centres, as the
/// option `picture` asks. Throws Error when the picture needs SubGen and the pane has another policy.
ViewDataMaker::Value makeClusteringData(const LayerRunner& runner, const ViewDataRequest& request,
                                        const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
