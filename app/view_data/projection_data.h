#pragma once

#include "app/view_data/view_data_maker.h"

namespace kvscope {

/// Principal axes of all keys of one head, the keys on them, and the captured queries of one query head on the same
/// axes (ProjectionData).
ViewDataMaker::Value makeProjectionData(const LayerRunner& runner, const ViewDataRequest& request,
                                        const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
