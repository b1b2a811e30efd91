#pragma once

#include "core/calibration/calibration.h"
#include "core/run/run.h"

namespace kvscope {

/// Converts a budget in quality, `tau=T[:CURVE]`, to a fraction kept. CURVE: nothing (the capture's measured rows);
/// `proxy`; `k=NUMBER`; FILE.json of `kvscope calibrate`; FILE.csv of triples. Throws Error that names the remedy.
CalibratedBudget calibratedBudget(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint);

/// The budget that the user asked for: the quality if it was one.
const Budget& askedBudget(const RunResult& result);

} // namespace kvscope
