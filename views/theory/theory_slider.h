#pragma once

#include "views/scene/scene_builder.h"
#include "views/theory/theory_data.h"
#include "views/view.h"

#include <cstddef>
#include <vector>

namespace kvscope {

/// The rows' margins as ε varies: a line for each row that depends on ε, the current ε, and the line at 1 that they
/// must reach. Nothing where no row depends on ε, or in an area too low to be read.
void drawTheoryOverEpsilon(SceneBuilder& builder, const TheoryData& data, const std::vector<std::size_t>& rows,
                           const Box& area, const Viewport& viewport);

} // namespace kvscope
