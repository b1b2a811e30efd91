// Runs captures x policies x parameter values x budgets x seeds, the points of one grid, as rows of one table.
#include "core/studies/sweep.h"

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"
#include "core/policies/policy_needs.h"
#include "core/run/calibrated_budget.h"
#include "core/run/head_means.h"
#include "core/run/run_grid.h"
#include "core/run/stored_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

/// The policy with every combination of the varied parameters that it has.
std::vector<PolicySpec> variedSpecs(const PolicySpec& spec, const std::vector<VariedParameter>& varied) {
    std::vector<PolicySpec> specs = {spec};
    for (const VariedParameter& parameter : varied) {
        if (!spec.values.has(parameter.id)) continue;
        std::vector<PolicySpec> next;
        for (const PolicySpec& one : specs)
            for (const std::string& value : parameter.values) {
                next.push_back(one);
                next.back().values.setText(parameter.id, value);
            }
        specs = std::move(next);
    }
    return specs;
}

void checkVaried(const SweepRequest& request) {
    for (const VariedParameter& parameter : request.varied) {
        if (parameter.values.empty())
            throw Error({"the varied parameter has no values", parameter.id, "Write " + parameter.id + "=v1,v2", ""});
        const bool known = std::ranges::any_of(request.policies,
                                               [&](const PolicySpec& spec) { return spec.values.has(parameter.id); });
        if (!known)
            throw Error({"no policy of the sweep has the parameter '" + parameter.id + "'", "varied parameter",
                         "kvscope policies lists the parameters of each", ""});
    }
}

std::vector<Budget> budgetsOf(const PolicySpec& spec, const SweepRequest& request) {
    if (spec.budget) return {*spec.budget};
    if (!policyById(spec.policy).card().usesBudget) return {Budget{}};
    if (request.budgets.empty())
        throw Error(
            {spec.policy + " needs a budget", "budget", "Give retentions, or write " + spec.policy + "@0.25", ""});
    return request.budgets;
}

std::vector<LayerIndex> layersOf(const CaptureReader& capture, const std::vector<int>& wanted) {
    std::vector<LayerIndex> layers;
    for (const int layer : wanted) layers.push_back(capture.info().layerInfo(LayerIndex(layer)).layer);
    if (wanted.empty())
        for (const LayerInfo& layer : capture.info().layers) layers.push_back(layer.layer);
    return layers;
}

/// The points of one policy on one layer.
void addPoints(std::vector<GridPoint>& points, RunRequest run, const PolicySpec& spec, const SweepRequest& request) {
    const PolicyCard& card = policyById(spec.policy).card();
    for (const PolicySpec& one : variedSpecs(spec, request.varied))
        for (const Budget& budget : budgetsOf(one, request)) {
            if (card.usesBudget && budget.unit != Budget::Unit::Quality)
                resolveBudget(budget, run.cut.token,
                              roundingOf(one.values)); // throws for a budget that does not fit
            run.policy = one;
            run.budget = budget;
            for (std::size_t i = 0; i < (card.usesSeed ? request.seeds.size() : 1); ++i) {
                run.seed = request.seeds[i];
                points.push_back({run});
            }
        }
}

std::vector<GridPoint> pointsOf(const SweepRequest& request) {
    if (request.captures.empty() || request.policies.empty() || request.seeds.empty())
        throw Error({"the sweep is empty", "", "Give at least one capture, one policy and one seed", ""});
    if (request.captures.size() > 1 && std::ranges::any_of(request.policies, readsImportedScores))
        throw Error({"imported scores belong to one capture", "policy", "Sweep one capture", ""});
    checkVaried(request);
    for (const std::string& id : request.measures) measureById(id);
    std::vector<GridPoint> points;
    RunRequest run;
    run.random = request.random;
    for (const auto& capture : request.captures) {
        run.capture = capture;
        run.cut = Cut::resolve(request.cut, *capture);
        for (const LayerIndex layer : layersOf(*capture, request.layers)) {
            run.layer = layer;
            for (const PolicySpec& spec : request.policies) addPoints(points, run, spec, request);
        }
    }
    return points;
}

/// The means of the requested measures; NaN for measures that need scores where the policy has none.
std::vector<double> measuresOf(const LayerRunner& runner, const RunResult& result, const std::vector<std::string>& ids,
                               const Checkpoint& checkpoint) {
    std::vector<double> means(ids.size(), NAN);
    std::vector<std::string> possible;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < ids.size() && result.fidelity; ++i) {
        if (measureById(ids[i]).need == MeasureNeed::Scores && result.scores.empty()) continue;
        possible.push_back(ids[i]);
        places.push_back(i);
    }
    if (possible.empty()) return means;
    const std::vector<MeasureValues> values = runner.measure(result, possible, checkpoint);
    for (std::size_t i = 0; i < values.size(); ++i) means[places[i]] = values[i].mean();
    return means;
}

SweepRow rowOf(const LayerRunner& runner, const SweepRequest& request, const std::shared_ptr<const RunResult>& result,
               const Checkpoint& checkpoint) {
    const Fidelity* fidelity = result->fidelity.get();
    return {.result = result,
            .keptTokens = meanAttendedTokens(*result),
            .retention = keptShareOf(*result),
            .storedTokens = meanStoredTokens(*result),
            .outputError = fidelity ? meanOfNumbers(fidelity->meanOutputError) : NAN,
            .retainedMass = fidelity ? meanOfNumbers(fidelity->meanRetainedMass) : NAN,
            .measures = measuresOf(runner, *result, request.measures, checkpoint.silent()),
            .storedBytes = storedBytes(*result),
            .work = request.countWork ? policyWork(runner, result->request, checkpoint.silent()) : Work{}};
}

} // namespace

void runSweep(const LayerRunner& runner, const SweepRequest& request, const Checkpoint& checkpoint,
              const std::function<void(const SweepRow&)>& row) {
    const std::vector<GridPoint> points = pointsOf(request);
    const auto deliver = [&](std::size_t, const auto& result, const Checkpoint& part) {
        row(rowOf(runner, request, result, part));
    };
    const auto nameCapture = [&](std::size_t point, const Error& error) {
        Error::Parts parts = error.parts();
        if (parts.path.empty() && request.captures.size() > 1) parts.path = points[point].run.capture->info().path;
        throw Error(std::move(parts));
    };
    runGrid(runner, points, checkpoint, {deliver, nameCapture}, LayersLeft::Forget);
}

std::vector<std::string> sweepColumns(const SweepRequest& request) {
    std::vector<std::string> names = {"capture", "capture_hash", "layer", "policy", "variant", "spec"};
    for (const VariedParameter& parameter : request.varied) names.push_back(parameter.id);
    for (const char* name : {"cut", "cut_token", "budget", "requested_tokens", "kept_tokens", "retention",
                             "stored_tokens", "seed", "output_error", "retained_mass"})
        names.emplace_back(name);
    names.insert(names.end(), request.measures.begin(), request.measures.end());
    if (request.countWork) names.insert(names.end(), {"operations", "bytes_touched"});
    for (const char* name : {"queries", "seen_queries", "skipped", "features_ms", "combine_ms", "select_ms",
                             "measure_ms", "stored_bytes", "simulated", "engine", "arithmetic", "notes"})
        names.emplace_back(name);
    return names;
}

std::vector<std::string> sweepFields(const SweepRequest& request, const SweepRow& row) {
    const RunResult& result = *row.result;
    const RunRequest& run = result.request;
    PolicySpec spec = run.policy;
    spec.budget = askedBudget(result);
    if (!policyById(spec.policy).card().usesBudget) spec.budget.reset();
    const Fidelity* fidelity = result.fidelity.get();
    const CaptureInfo& info = run.capture->info();
    const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
    std::vector<std::string> fields = {info.fileName, info.hash,    std::to_string(run.layer.value),
                                       spec.policy,   spec.variant, spec.text()};
    for (const VariedParameter& parameter : request.varied)
        fields.push_back(spec.values.has(parameter.id) ? spec.values.text(parameter.id) : "");
    fields.insert(fields.end(), {run.cut.text, std::to_string(run.cut.token), spec.budget ? spec.budget->text() : "",
                                 std::to_string(result.requested), shortest(row.keptTokens), shortest(row.retention),
                                 shortest(row.storedTokens), std::to_string(run.seed), shortest(row.outputError),
                                 shortest(row.retainedMass)});
    for (const double value : row.measures) fields.push_back(shortest(value));
    if (request.countWork)
        fields.insert(fields.end(),
                      {fmt::format("{:.0f}", row.work.operations), fmt::format("{:.0f}", row.work.bytes)});
    fields.insert(fields.end(),
                  {std::to_string(fidelity ? fidelity->queryCount : 0), truth(fidelity && fidelity->seenQueries),
                   std::to_string(fidelity ? fidelity->skipped : 0)});
    const StageTimes& times = result.times;
    for (const double milliseconds : {times.featuresMs, times.combineMs, times.selectMs, times.measureMs})
        fields.push_back(fmt::format("{:.4f}", milliseconds));
    fields.insert(fields.end(), {std::to_string(row.storedBytes), truth(result.simulated), result.engine,
                                 result.arithmetic, fmt::format("{}", fmt::join(result.notes, "; "))});
    return fields;
}

} // namespace kvscope
