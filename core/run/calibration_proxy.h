#pragma once

#include "core/calibration/calibration.h"
#include "core/run/run.h"

namespace kvscope {

/// Attention-output fidelity in place of the model's losses: at a grid of retentions, y = 1 - relative output error
/// (BalanceKV B.1; mean over query heads, then over the layers of the capture; at least 1e-6), at the realised
/// retention. One context per capture. No model saw any of it: a proxy, and called so wherever it goes. The queries
/// after the cut judge it, as they judge the measures: the retention that follows has seen them, the policy has not.
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
