#pragma once

#include "views/scene/scene_builder.h"
#include "views/theory/theory_data.h"
#include "views/view.h"

#include <cstddef>
#include <vector>

namespace kvscope {

/// Least height in which the picture below can be read.
inline constexpr double kTheorySliderHeight = 160;

/// How the rows' margins change with the ε that is asked for: a line for each row that ε moves, the present ε upright,
/// the line at 1 that they have to reach. Nothing where ε moves none.
void drawTheoryOverEpsilon(SceneBuilder& builder, const TheoryData& data, const std::vector<std::size_t>& rows,
                           const Box& area, const Viewport& viewport);

} // namespace kvscope
