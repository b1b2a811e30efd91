#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// One figure of the geometry of keys and queries (GeometryData); a part is delivered after every layer.
ViewDataMaker::Value makeGeometryData(const LayerRunner& runner, const ViewDataRequest& request,
                                      const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

} // namespace kvscope
