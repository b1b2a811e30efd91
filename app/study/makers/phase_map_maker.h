#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Runs the active pane's policy, or all panes', at every pair of values of two parameters (PhaseMapData), coarse to
/// fine; a part is delivered after every pair.
ViewDataMaker::Value makePhaseMapData(const LayerRunner& runner, const ViewDataRequest& request,
                                      const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
