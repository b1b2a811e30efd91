#pragma once

#include "views/attention_map/map_colours.h"
#include "views/view.h"

#include <optional>

namespace kvscope {

/// Between which values the colours run when one end is pulled to a place of the column, 0 bottom .. 1 top. The ends keep
/// their order and a hundredth of the column between them; of signed values both ends move.
std::optional<Adoption> endMovedTo(const MapScale& scale, bool highEnd, double place);
/// The range as given; nothing where it is none on this scale: low not below high, or no logarithm.
std::optional<Adoption> rangeSetTo(const MapScale& scale, double low, double high);
/// What the colour column says at a point: the value there and the cells beyond the colours; nothing beside it.
PointFacts rangeFacts(const MapScale& scale, const Scene& scene, Point at);

} // namespace kvscope
