#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Triples of every pane's policy with their fits and bootstraps (CalibrationViewData); a part is delivered per pane.
ViewDataMaker::Value makeCalibrationData(const LayerRunner& runner, const ViewDataRequest& request,
                                         const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
