#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// One number per layer and head of the whole capture (HeadGridData); a part is delivered after every layer.
ViewDataMaker::Value makeHeadGridData(const LayerRunner& runner, const ViewDataRequest& request,
                                      const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
