#pragma once

#include "core/run/run.h"

namespace kvscope {

/// Cost of a computation by its formulas, independent of the machine.
struct Work {
    double operations = 0; ///< additions, multiplications, divisions, roots, exponentials and comparisons, one each
    double bytes = 0;      ///< tensors read and written once per primitive, float
};

/// Operations of a request's choice without any cache: features, combine and select, counted by running them again. The
/// budget is a fraction or tokens (that of a result). Zero for a recorded list.
/// Counts the primitives that policies are made of (the costs that their sources state), but not those of measures and
/// views, moves between host and engine, or what a policy does on the host (arithmetic on score tables, which are d
/// times smaller, and the choice). Throws Error or Cancelled.
Work policyWork(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint);

} // namespace kvscope
