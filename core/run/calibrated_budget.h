#pragma once

#include "core/calibration/calibration.h"
#include "core/run/run.h"

namespace kvscope {

/// Converts a budget in quality, `tau=T[:CURVE]`, to a fraction kept. CURVE: nothing (the capture's measured rows);
/// `proxy`; `k=NUMBER`; FILE.json of `kvscope calibrate`; FILE.csv of triples. Throws Error that names the remedy.
CalibratedBudget calibratedBudget(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint);

/// The budget that the user asked for: the quality if it was one.
const Budget& askedBudget(const RunResult& result);
/// False for a policy whose parameters alone decide how much is kept; its result's `requested` is all tokens.
bool takesBudget(const RunResult& result);

/// Attention-output fidelity as a proxy for the model's losses: on a grid of retentions, y = 1 - relative output error
/// (BalanceKV B.1; mean over query heads, then over the capture's layers; at least 1e-6). Each y stands at the
/// retention asked for, because the curve must give a budget to ask for; layers may keep more (`whole_layers`) or less.
/// One context per capture. No model is run, so results carry the word proxy. The proxy is measured on the evaluation
/// queries, so the resulting retention depends on them; the policy does not.
struct ProxyRequest {
    std::vector<std::shared_ptr<const CaptureReader>> captures;
    PolicySpec policy;
    std::string cut = "default";
    std::uint64_t seed = 0;
    std::shared_ptr<const RandomSource> random = {};
};
const std::vector<double>& proxyBudgetGrid(); ///< ascending retentions
CalibrationData proxyTriples(const LayerRunner& runner, const ProxyRequest& request, const Checkpoint& checkpoint);

} // namespace kvscope
