#pragma once

#include "app/view_data/view_data_maker.h"

namespace kvscope {

/// Runs every pane's policy through a ladder of budgets (CurvesData); parts are delivered as they come.
ViewDataMaker::Value makeCurvesData(const LayerRunner& runner, const ViewDataRequest& request,
                                    const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
