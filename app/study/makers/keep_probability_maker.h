#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Runs the active pane's policy with one seed after the other (KeepProbabilityData), from the request's seed upwards;
/// a part is delivered after every seed.
ViewDataMaker::Value makeKeepProbabilityData(const LayerRunner& runner, const ViewDataRequest& request,
                                             const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
