#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Exact and sketched leverage of one head (LeverageData), computed by the policy `leverage`, so that the sketch equals
/// that of a run with the same seed.
ViewDataMaker::Value makeLeverageData(const LayerRunner& runner, const ViewDataRequest& request,
                                      const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
