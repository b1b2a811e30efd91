#pragma once

#include "core/studies/reproduction.h"
#include "views/view.h"

namespace kvscope {

/// A line per series with its intervals or deviations as bars, a legend, and notes on the data below; taller than
/// requested where many notes would squeeze the plot. A bar much longer than the range of the means is cut at the edge.
Scene drawReproduction(const Reproduction& reproduction, const ReproductionResult& result, const Viewport& wanted);

} // namespace kvscope
