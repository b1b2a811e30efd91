#pragma once

#include "core/engine/counted_engine.h"
#include "core/run/run.h"

namespace kvscope {

/// What the choice of a request costs when nothing is cached: features, scores and select, counted by running it once
/// more. The budget is a fraction or tokens (that of a result). Nothing of a recorded list. Throws Error or Cancelled.
Work policyWork(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint);

} // namespace kvscope
