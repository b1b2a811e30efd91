#pragma once

#include "core/calibration/calibration.h"
#include "core/run/run.h"

namespace kvscope {

/// Makes a fraction kept of a budget that is a quality, `tau=T[:CURVE]`. CURVE: nothing, the capture's measured rows;
/// `proxy`; `k=NUMBER`; FILE.json of `kvscope calibrate`; FILE.csv of triples. Throws Error that names the remedy.
CalibratedBudget calibratedBudget(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint);

/// The budget as asked for: the quality where there was one.
const Budget& askedBudget(const RunResult& result);

} // namespace kvscope
