// A proxy for losses that no model measured: the fidelity of the attention output on a grid of retentions. It ranks
// policies and shapes a curve, but it is not a model's quality, and every name and message says "proxy".
#include "core/run/calibration_proxy.h"

#include "core/base/error.h"
#include "core/metrics/averages.h"
#include "core/policies/balance/balance_rounds.h"
#include "core/policies/policy.h"
#include "core/run/head_means.h"
#include "core/run/run_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kLeastQuality = 1e-6; // a relative error above 1 has no quality, and y must be positive

/// The triples of one capture: every retention on every layer, then the mean over the layers.
void addTriples(const LayerRunner& runner, RunRequest run, const Checkpoint& checkpoint, CalibrationData& data) {
    const CaptureInfo& info = run.capture->info();
    const std::vector<double>& grid = proxyBudgetGrid();
    std::vector<GridPoint> points;
    for (const LayerInfo& layer : info.layers)
        for (const double retention : grid) {
            run.layer = layer.layer;
            run.budget = {Budget::Unit::Fraction, retention, {}};
            points.push_back({run});
        }
    std::vector<std::vector<Sample>> retentions(grid.size()), errors(grid.size());
    double nothing = 0; // balanced up to this retention
    const auto addLayer = [&](std::size_t point, const auto& result, const Checkpoint&) {
        const std::size_t at = point % grid.size();
        const std::int32_t layer = result->request.layer.value;
        retentions[at].push_back(Sample::of(SampleLevel::Layers, layer, keptShareOf(*result)));
        errors[at].push_back(
            Sample::of(SampleLevel::Layers, layer, meanOfNumbers(requireFidelity(*result).meanOutputError)));
        if (balancedNothing(*result)) nothing = std::max(nothing, grid[at]);
    };
    runGrid(runner, points, checkpoint, {addLayer});
    const auto mean = [](const std::vector<Sample>& samples) { return meanByLevels(samples).summary.mean; };
    for (std::size_t i = 0; i < grid.size(); ++i)
        if (const double error = mean(errors[i]); !std::isnan(error)) // no triple without an error
            data.triples.push_back({info.fileName, mean(retentions[i]), contextNllOf(*run.capture, run.cut.token),
                                    std::max(kLeastQuality, 1 - error)});
    if (const std::string warning = info.checkWarning(); !warning.empty())
        data.notes.push_back(info.fileName + ": " + warning);
    if (nothing > 0)
        data.notes.push_back(fmt::format("{} up to retention {}: {}", info.fileName, nothing, kNothingBalanced));
}

} // namespace

const std::vector<double>& proxyBudgetGrid() {
    static const std::vector<double> grid = {0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
    return grid;
}

CalibrationData proxyTriples(const LayerRunner& runner, const ProxyRequest& request, const Checkpoint& checkpoint) {
    if (!policyById(request.policy.policy).card().usesBudget)
        throw Error({request.policy.policy + " takes no budget: there is nothing to calibrate", "--policy",
                     "Choose a policy with a budget"});
    CalibrationData data;
    data.proxy = true;
    data.origin = fmt::format("proxy: 1 - relative output error at {} retentions, by the queries after the cut",
                              proxyBudgetGrid().size());
    RunRequest run;
    run.policy = request.policy;
    run.policy.budget.reset();
    run.seed = request.seed;
    run.random = request.random;
    for (std::size_t i = 0; i < request.captures.size(); ++i) {
        run.capture = request.captures[i];
        run.cut = Cut::resolve(request.cut, *run.capture);
        addTriples(runner, run, checkpoint.step(i, request.captures.size()), data);
    }
    return data;
}

} // namespace kvscope
