#pragma once

#include "views/attention_map/attention_map_data.h"
#include "views/view.h"

#include <memory>

namespace kvscope {

/// What is under a point: a pixel of the map or a cell of the magnified neighbourhood. A cell's facts carry the lock
/// that a click makes, or, on the locked cell, releases.
PointFacts mapFactsAt(const ViewInput& input, const AttentionMapData& data, const Scene& scene, Point at);

/// A row per cell: the magnified neighbourhood first where a cell is locked, then the pixels. `data` may be null.
ViewTable mapTable(std::shared_ptr<const AttentionMapData> data);

} // namespace kvscope
