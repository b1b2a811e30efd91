#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Exact and sketched leverage of one head (LeverageData), by the policy `leverage` itself, so that the sketch is the
/// one that it draws with the same seed.
ViewDataMaker::Value makeLeverageData(const LayerRunner& runner, const ViewDataRequest& request,
                                      const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
