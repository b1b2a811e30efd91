#pragma once

#include "core/studies/reproduction.h"
#include "views/view.h"

namespace kvscope {

/// A line per series with its 95 % intervals, a legend, and below it what the data are; higher than wanted where many
/// notes would leave the plot no room. An interval that is much wider than the means ends at the edge of the plot.
Scene drawReproduction(const Reproduction& reproduction, const ReproductionResult& result, const Viewport& wanted);

} // namespace kvscope
