// Turns a budget in quality ("keep 95 % of the quality") into a fraction of tokens: the budget names a curve, and the
// curve's inverse gives the retention. The result keeps both and the origin of the curve.
#include "core/run/calibrated_budget.h"

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/metrics/averages.h"
#include "core/metrics/fidelity.h"
#include "core/policies/balance/balance_rounds.h"
#include "core/policies/policy.h"
#include "core/policies/policy_needs.h"
#include "core/run/head_means.h"
#include "core/run/run_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

constexpr std::string_view kGivenPrefix = "k=";

double givenCurvature(const Budget& budget) {
    const std::string_view text = std::string_view(budget.curve).substr(kGivenPrefix.size());
    const auto k = parseNumber<double>(text);
    if (!k || !std::isfinite(*k))
        throw Error({"budget '" + budget.text() + "' has no number after k=", "budget", "Write it like tau=0.95:k=-5"});
    return *k;
}

std::string fitText(const Calibration& calibration, double k, double nll) {
    const CalibrationFit& fit = calibration.fit;
    if (calibration.given) return fmt::format("k = {} given by hand", shortest(k));
    std::string text = fmt::format("k = {:.4g} fitted to {} triples ({}), w = {}", k, fit.triples,
                                   calibration.data.origin, shortest(fit.weight));
    if (fit.slopeKnown)
        text += fmt::format(", alpha = {:.4g}, beta = {:.4g}, NLL(c) = {:.4g}", fit.alpha, fit.beta, nll);
    for (const std::string& note : calibration.data.notes) text += "; " + note;
    if (misfitOf(calibration).isPoor()) text += "; POOR FIT: the curve misses its points, so the retention says little";
    return fit.atEdge ? text + "; k lies at the end of the searched range" : text;
}

/// A curve from a file belongs to one policy; it must not be used with another.
void checkPolicy(const Calibration& calibration, const RunRequest& request, const std::string& path) {
    if (calibration.policy != request.policy.policy || calibration.variant != request.policy.variant)
        throw Error({fmt::format("the calibration is of {}:{}, the policy is {}:{}", calibration.policy,
                                 calibration.variant, request.policy.policy, request.policy.variant),
                     "budget", "Calibrate this policy: kvscope calibrate", path});
}

CalibrationData triplesOf(const std::string& table, const RunRequest& request) {
    CalibrationData data = readTriplesCsv(table, request.policy.policy, request.policy.variant);
    noteParametersOfTable(data, request.policy);
    noteOtherCut(data, *request.capture, request.cut.token);
    return data;
}

void noteOtherParameters(Calibration& calibration, const PolicySpec& policy) {
    if (calibration.given) return;
    const PolicySpec measured = PolicySpec::parse(calibration.spec);
    const auto theirs = [&](const std::string& id) { return std::optional<std::string>(measured.values.text(id)); };
    if (const std::string note = otherParameters(calibration.data.origin, policy.values, theirs); !note.empty())
        calibration.data.notes.push_back(note);
}

Calibration curveOf(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint) {
    const std::string& curve = request.budget.curve;
    const double tau = request.budget.value;
    const auto fitted = [&](CalibrationData data) {
        return calibrate(request.policy, std::move(data), tau, kCalibrationWeight, 0);
    };
    if (curve.empty()) return fitted(measuredTriples(*request.capture, request.policy, request.cut.token));
    if (curve == "proxy")
        return fitted(proxyTriples(
            runner, {{request.capture}, request.policy, request.cut.text, request.seed, request.random}, checkpoint));
    if (curve.starts_with(kGivenPrefix)) return calibrationOfK(request.policy, givenCurvature(request.budget), tau);
    if (curve.ends_with(".csv")) return fitted(triplesOf(curve, request));
    if (!curve.ends_with(".json"))
        throw Error({"budget '" + request.budget.text() + "' names no curve", "budget",
                     "After tau=T: write proxy, k=NUMBER, FILE.json of kvscope calibrate or FILE.csv of triples"});
    Calibration read = readCalibrationFile(curve);
    checkPolicy(read, request, curve);
    noteOtherParameters(read, request.policy);
    noteOtherCut(read.data, *request.capture, request.cut.token);
    return read;
}

/// Curvature k for the run's context: the fit's own if it has a single context, otherwise from the capture's losses
/// before the cut. A capture without losses takes those of the context that has its name.
double curvatureFor(const Calibration& calibration, const RunRequest& request, double& nll) {
    const CalibrationFit& fit = calibration.fit;
    nll = contextNllOf(*request.capture, request.cut.token);
    for (const CalibratedContext& context : calibration.contexts)
        if (std::isnan(nll) && isContextOf(context.name, request.capture->info())) nll = context.nll;
    if (fit.slopeKnown && std::isnan(nll))
        throw Error({"the capture has no losses of its tokens, and the curve needs NLL(c)", "tokens/nll",
                     "Capture the prompt with losses, or give k: tau=...:k=-5", request.capture->info().path});
    return fit.k(nll);
}

constexpr double kLeastQuality = 1e-6; // a relative error above 1 has no quality, and y must be positive

/// The triples of one capture: every retention on every layer, then the mean over the layers.
void addTriples(const LayerRunner& runner, RunRequest run, const std::string& context, const Checkpoint& checkpoint,
                CalibrationData& data) {
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
    std::vector<Selection> smallest; // of each layer, at the first retention
    bool budgetCounts = false;
    double nothing = 0; // largest retention at which nothing was balanced
    const auto addLayer = [&](std::size_t point, const auto& result, const Checkpoint&) {
        const std::size_t at = point % grid.size();
        const std::int32_t layer = result->request.layer.value;
        if (at == 0) smallest.push_back(result->selection);
        budgetCounts |= !result->selection.sameLists(smallest.back());
        const double asked = static_cast<double>(result->requested) / static_cast<double>(result->visible);
        retentions[at].push_back(Sample::of(SampleLevel::Layers, layer, asked));
        errors[at].push_back(
            Sample::of(SampleLevel::Layers, layer, meanOfNumbers(requireFidelity(*result).meanOutputError)));
        data.simulated |= result->simulated;
        data.arithmetic = result->arithmetic;
        if (balancedNothing(*result)) nothing = std::max(nothing, grid[at]);
    };
    runGrid(runner, points, checkpoint, {addLayer});
    if (!budgetCounts)
        throw Error({run.policy.text() + " keeps the same tokens at every budget: there is nothing to calibrate",
                     "--policy", "Choose settings whose budget decides how much is kept", info.path});
    data.cuts[context] = run.cut.token;
    data.seenQueries |= run.cut.evaluatedOnSeen;
    const auto mean = [](const std::vector<Sample>& samples) { return meanByLevels(samples).summary.mean; };
    for (std::size_t i = 0; i < grid.size(); ++i)
        if (const double error = mean(errors[i]); !std::isnan(error)) // without an error there is no triple
            data.triples.push_back({context, mean(retentions[i]), contextNllOf(*run.capture, run.cut.token),
                                    std::max(kLeastQuality, 1 - error)});
    if (const std::string warning = info.checkWarning(); !warning.empty())
        data.notes.push_back(context + ": " + warning);
    if (nothing > 0) data.notes.push_back(fmt::format("{} up to retention {}: {}", context, nothing, kNothingBalanced));
}

} // namespace

std::string CalibratedBudget::text() const {
    return fmt::format("retention {:.4f} for tau = {}, {}{}", retention, shortest(asked.value),
                       proxy ? "by proxy: " : "", origin);
}

CalibratedBudget calibratedBudget(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint) {
    const Calibration calibration = curveOf(runner, request, checkpoint);
    double nll = std::numeric_limits<double>::quiet_NaN();
    CalibratedBudget budget;
    budget.asked = request.budget;
    budget.k = curvatureFor(calibration, request, nll);
    budget.retention = std::clamp(retentionNeeded(budget.k, request.budget.value), 1e-12, 1.0);
    budget.proxy = calibration.data.proxy;
    budget.origin = fitText(calibration, budget.k, nll);
    return budget;
}

const Budget& askedBudget(const RunResult& result) {
    return result.calibrated ? result.calibrated->asked : result.request.budget;
}

bool takesBudget(const RunResult& result) {
    return result.request.recorded || policyById(result.request.policy.policy).card().usesBudget;
}

const std::vector<double>& proxyBudgetGrid() {
    static const std::vector<double> grid = {0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
    return grid;
}

CalibrationData proxyTriples(const LayerRunner& runner, const ProxyRequest& request, const Checkpoint& checkpoint) {
    if (!policyById(request.policy.policy).card().usesBudget)
        throw Error({request.policy.policy + " takes no budget: there is nothing to calibrate", "--policy",
                     "Choose a policy with a budget"});
    if (request.captures.size() > 1 && readsImportedScores(request.policy))
        throw Error({"imported scores belong to one capture", "--policy", "Calibrate one capture"});
    CalibrationData data;
    data.proxy = true;
    RunRequest run;
    run.policy = request.policy;
    run.policy.budget.reset();
    run.seed = request.seed;
    run.random = request.random;
    const std::vector<std::string> names = contextNamesOf(request.captures);
    for (std::size_t i = 0; i < request.captures.size(); ++i) {
        run.capture = request.captures[i];
        run.cut = Cut::resolve(request.cut, *run.capture);
        addTriples(runner, run, names[i], checkpoint.step(i, request.captures.size()), data);
    }
    data.origin =
        fmt::format("proxy: 1 - relative output error at {} retentions, {}", proxyBudgetGrid().size(),
                    data.seenQueries ? "by queries that the policy saw (cut none)" : "by the queries after the cut");
    if (data.seenQueries) // a CSV keeps the notes, not the origin
        data.notes.emplace_back("measured by queries that the policy saw (cut none)");
    noteMeasuring(data, data.simulated, data.arithmetic);
    return data;
}

} // namespace kvscope
