#pragma once

#include "core/engine/counted_engine.h"
#include "core/run/run.h"

namespace kvscope {

/// Operations of a request's choice without any cache: features, combine and select, counted by running them again. The
/// budget is a fraction or tokens (that of a result). Zero for a recorded list. Throws Error or Cancelled.
Work policyWork(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint);

} // namespace kvscope
