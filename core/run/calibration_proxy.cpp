// A proxy for losses that no model measured: the fidelity of the attention output on a grid of retentions. It ranks
// policies and shapes a curve, but it is not a model's quality, and every name and message says "proxy".
#include "core/run/calibration_proxy.h"

#include "core/base/error.h"
#include "core/policies/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kvscope {

namespace {

constexpr double kLeastQuality = 1e-6; // a relative error above 1 has no quality, and y must be positive

/// The mean over the layers of the capture.
struct BudgetGridPoint {
    double retention = 0, outputError = 0;
};

BudgetGridPoint budgetGridPointOf(const LayerRunner& runner, RunRequest run, const Checkpoint& checkpoint) {
    const CaptureInfo& info = run.capture->info();
    const auto layers = static_cast<double>(info.layers.size());
    BudgetGridPoint gridPoint;
    double done = 0;
    for (const LayerInfo& layer : info.layers) {
        run.layer = layer.layer;
        const auto result = runner.run(run, checkpoint.part(done / layers, (done + 1) / layers));
        ++done;
        double kept = 0;
        for (const HeadSelection& head : result->selection.heads)
            kept += head.attendedTokens() / static_cast<double>(result->visible);
        gridPoint.retention += kept / static_cast<double>(result->selection.heads.size()) / layers;
        gridPoint.outputError += meanOfNumbers(requireFidelity(*result).meanOutputError) / layers;
    }
    return gridPoint;
}

} // namespace

const std::vector<double>& proxyBudgetGrid() {
    static const std::vector<double> grid = {0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
    return grid;
}

CalibrationData proxyTriples(const LayerRunner& runner, const ProxyRequest& request, const Checkpoint& checkpoint) {
    if (!policyById(request.policy.policy).card().usesBudget)
        throw Error({request.policy.policy + " takes no budget: there is nothing to calibrate",
                     "--policy",
                     "Choose a policy with a budget",
                     {}});
    CalibrationData data;
    data.proxy = true;
    data.origin = fmt::format("proxy: 1 - relative output error at {} retentions, by the queries after the cut",
                              proxyBudgetGrid().size());
    const auto total = static_cast<double>(request.captures.size() * proxyBudgetGrid().size());
    double done = 0;
    for (const auto& capture : request.captures) {
        RunRequest run;
        run.capture = capture;
        run.policy = request.policy;
        run.policy.budget.reset();
        run.cut = Cut::resolve(request.cut, *capture);
        run.seed = request.seed;
        run.random = request.random;
        for (const double retention : proxyBudgetGrid()) {
            run.budget = {Budget::Unit::Fraction, retention, {}};
            const BudgetGridPoint gridPoint =
                budgetGridPointOf(runner, run, checkpoint.part(done / total, (done + 1) / total));
            ++done;
            data.triples.push_back({capture->info().fileName, gridPoint.retention,
                                    contextNllOf(*capture, run.cut.token),
                                    std::max(kLeastQuality, 1 - gridPoint.outputError)});
        }
    }
    return data;
}

} // namespace kvscope
