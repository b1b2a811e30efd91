#pragma once

#include "core/parameters/parameters.h"
#include "views/attention_map/attention_map_data.h"

#include <functional>
#include <memory>

namespace kvscope {

/// The cells around the one that the options lock, computed by `draw` one by one from the map whose queries and keys
/// `map` holds; null where no cell is locked or the map has none of it. Looks at the rows of the neighbourhood only:
/// never at n x n. Of a locked rectangle the cell is its largest (of a difference the farthest from 0), looked for in
/// rectangles within rectangles where it is wide.
std::shared_ptr<const MapNeighbourhood>
neighbourhoodOf(const AttentionMapInput& map, const ParameterValues& options,
                const std::function<AttentionMap(const AttentionMapInput&)>& draw);

} // namespace kvscope
