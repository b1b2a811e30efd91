#pragma once

#include "core/run/reproduction.h"
#include "views/view.h"

namespace kvscope {

/// A line per series with its 95 % intervals, a legend, and below it what the data are.
Scene drawReproduction(const Reproduction& reproduction, const ReproductionResult& result, const Viewport& viewport);

} // namespace kvscope
