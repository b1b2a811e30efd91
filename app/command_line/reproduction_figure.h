#pragma once

#include "core/studies/reproduction.h"
#include "views/view.h"

namespace kvscope {

/// A line per series with 95 % intervals, a legend, and notes on the data below; taller than requested where many notes
/// would squeeze the plot. An interval much wider than the means is cut at the plot's edge.
Scene drawReproduction(const Reproduction& reproduction, const ReproductionResult& result, const Viewport& wanted);

} // namespace kvscope
