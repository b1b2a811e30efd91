// Runs captures x policies x parameter values x budgets x seeds as rows of one table. The runner's caches make the
// inner loops cheap: a new budget repeats only select, a new seed only the draws.
#include "core/studies/sweep.h"

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/engine/prefetching.h"
#include "core/lists/selection_formats.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"
#include "core/run/calibrated_budget.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>

namespace kvscope {

namespace {

/// One combination on one layer: everything but the seed.
struct Plan {
    std::shared_ptr<const CaptureReader> capture;
    Cut cut;
    LayerIndex layer;
    PolicySpec policy;
    Budget budget;
};

/// The policy with every combination of the varied parameters that it has.
std::vector<PolicySpec> variedSpecs(const PolicySpec& spec, const std::vector<VariedParameter>& varied) {
    std::vector<PolicySpec> specs = {spec};
    for (const VariedParameter& parameter : varied) {
        if (!spec.values.has(parameter.id))
            continue;
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
            throw Error({"the varied parameter has no values", parameter.id, "Write " + parameter.id + "=v1,v2", {}});
        const bool known = std::any_of(request.policies.begin(), request.policies.end(),
                                       [&](const PolicySpec& spec) { return spec.values.has(parameter.id); });
        if (!known)
            throw Error({"no policy of the sweep has the parameter '" + parameter.id + "'",
                         "varied parameter",
                         "kvscope policies lists the parameters of each",
                         {}});
    }
}

std::vector<Budget> budgetsOf(const PolicySpec& spec, const SweepRequest& request) {
    if (spec.budget)
        return {*spec.budget};
    if (!policyById(spec.policy).card().usesBudget)
        return {Budget{}};
    if (request.budgets.empty())
        throw Error(
            {spec.policy + " needs a budget", "budget", "Give retentions, or write " + spec.policy + "@0.25", {}});
    return request.budgets;
}

std::vector<LayerIndex> layersOf(const CaptureReader& capture, const std::vector<int>& wanted) {
    std::vector<LayerIndex> layers;
    for (const int layer : wanted)
        layers.push_back(capture.info().layerInfo(LayerIndex(layer)).layer);
    if (wanted.empty())
        for (const LayerInfo& layer : capture.info().layers)
            layers.push_back(layer.layer);
    return layers;
}

void planPolicy(std::vector<Plan>& plans, Plan plan, const PolicySpec& spec, const SweepRequest& request) {
    for (const PolicySpec& one : variedSpecs(spec, request.varied))
        for (const Budget& budget : budgetsOf(one, request)) {
            if (policyById(one.policy).card().usesBudget && budget.unit != Budget::Unit::Quality)
                resolveBudget(budget, plan.cut.token, roundingOf(one.values)); // throws for a budget that does not fit
            plan.policy = one;
            plan.budget = budget;
            plans.push_back(plan);
        }
}

std::vector<Plan> planAll(const SweepRequest& request) {
    if (request.captures.empty() || request.policies.empty() || request.seeds.empty())
        throw Error({"the sweep is empty", {}, "Give at least one capture, one policy and one seed", {}});
    checkVaried(request);
    for (const std::string& id : request.measures)
        measureById(id);
    std::vector<Plan> plans;
    for (const auto& capture : request.captures) {
        const Cut cut = Cut::resolve(request.cut, *capture);
        for (const LayerIndex layer : layersOf(*capture, request.layers))
            for (const PolicySpec& spec : request.policies)
                planPolicy(plans, {capture, cut, layer, {}, {}}, spec, request);
    }
    return plans;
}

std::size_t seedCount(const Plan& plan, const SweepRequest& request) {
    return policyById(plan.policy.policy).card().usesSeed ? request.seeds.size() : 1;
}

/// The means of the requested measures; NaN for measures that need scores where the policy has none.
std::vector<double> measuresOf(const LayerRunner& runner, const RunResult& result, const std::vector<std::string>& ids,
                               const Checkpoint& checkpoint) {
    std::vector<double> means(ids.size(), std::numeric_limits<double>::quiet_NaN());
    std::vector<std::string> possible;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < ids.size() && result.fidelity; ++i) {
        if (measureById(ids[i]).need == MeasureNeed::Scores && result.scores.empty())
            continue;
        possible.push_back(ids[i]);
        places.push_back(i);
    }
    if (possible.empty())
        return means;
    const std::vector<MeasureValues> values = runner.measure(result, possible, checkpoint);
    for (std::size_t i = 0; i < values.size(); ++i)
        means[places[i]] = values[i].mean();
    return means;
}

SweepRow rowOf(std::shared_ptr<const RunResult> result) {
    SweepRow row;
    const std::vector<HeadSelection>& heads = result->selection.heads;
    for (const HeadSelection& head : heads)
        row.keptTokens += head.attendedTokens() / static_cast<double>(heads.size());
    row.retention = row.keptTokens / static_cast<double>(result->visible);
    row.storedBytes = storedBytes(*result);
    row.outputError = row.retainedMass = std::numeric_limits<double>::quiet_NaN();
    if (result->fidelity) {
        row.outputError = meanOfNumbers(result->fidelity->meanOutputError);
        row.retainedMass = meanOfNumbers(result->fidelity->meanRetainedMass);
    }
    row.result = std::move(result);
    return row;
}

SweepRow madeRow(const LayerRunner& runner, const SweepRequest& request, const RunRequest& run,
                 const Checkpoint& checkpoint) {
    SweepRow made = rowOf(runner.run(run, checkpoint));
    if (request.countWork)
        made.work = policyWork(runner, made.result->request, checkpoint.silent());
    made.measures = measuresOf(runner, *made.result, request.measures, checkpoint.silent());
    return made;
}

/// With several captures an error names the capture.
SweepRow rowOfRun(const LayerRunner& runner, const SweepRequest& request, const RunRequest& run,
                  const Checkpoint& checkpoint) {
    try {
        return madeRow(runner, request, run, checkpoint);
    } catch (const Error& error) {
        if (!error.parts().path.empty() || request.captures.size() < 2)
            throw;
        Error::Parts parts = error.parts();
        parts.path = run.capture->info().path;
        throw Error(std::move(parts));
    }
}

bool sameLayer(const Plan& a, const Plan& b) { return a.capture == b.capture && a.layer == b.layer; }

/// The first plan after `from` that reads another layer; plans.size() if there is none.
std::size_t nextLayer(const std::vector<Plan>& plans, std::size_t from) {
    std::size_t next = from;
    while (next < plans.size() && sameLayer(plans[next], plans[from]))
        ++next;
    return next;
}

/// The tensors that the plans of the layer starting at `first` will read.
std::vector<TensorRole> rolesFrom(const std::vector<Plan>& plans, std::size_t first) {
    std::vector<TensorRole> roles = {TensorRole::Keys, TensorRole::Values};
    if (plans[first].capture->info().layerInfo(plans[first].layer).queryCount > 0)
        roles.push_back(TensorRole::Queries);
    const bool preRope =
        std::any_of(plans.begin() + static_cast<std::ptrdiff_t>(first),
                    plans.begin() + static_cast<std::ptrdiff_t>(nextLayer(plans, first)), [](const Plan& plan) {
                        const auto needs = policyById(plan.policy.policy).needs(plan.policy.values);
                        return std::find(needs.begin(), needs.end(), Need::PreRopeKeys) != needs.end();
                    });
    if (preRope)
        roles.push_back(TensorRole::KeysPreRope);
    return roles;
}

// Two layers with their intermediate results must fit into the runner's cache, or they would evict each other. The next
// layer may take an eighth of the machine's memory, and on small machines at least a usual layer.
double mostBytesAhead() {
    return std::max(1.5 * 0x1p30,
                    static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 8);
}

double bytesToRead(const CaptureInfo& info, LayerIndex layer, const std::vector<TensorRole>& roles) {
    double floats = 0;
    for (const TensorRole role : roles) {
        const bool queries = role == TensorRole::Queries;
        floats += static_cast<double>(queries ? info.layerInfo(layer).queryCount : info.numTokens) *
                  (queries ? info.numQueryHeads : info.numKvHeads) *
                  (role == TensorRole::Values ? info.valueDim : info.headDim);
    }
    return floats * sizeof(float);
}

/// Reads the next layer while the current one is computed, and prefetches it to the engine's device; the runner's cache
/// passes it on. An error here is ignored: it occurs again when the layer is read for use.
class ReadAhead {
public:
    ReadAhead(const LayerRunner& runner, const Checkpoint& checkpoint)
        : m_runner(runner), m_checkpoint(checkpoint.silent()) {}

    void start(const Plan& plan, const std::vector<TensorRole>& roles) {
        if (bytesToRead(plan.capture->info(), plan.layer, roles) > mostBytesAhead())
            return;
        m_reading = std::async(std::launch::async, [this, plan, roles] {
            try {
                const auto* device = dynamic_cast<const Prefetching*>(&m_runner.engine());
                for (const TensorRole role : roles) {
                    const Tensor tensor = m_runner.tensor(plan.capture, plan.layer, role, m_checkpoint);
                    if (device)
                        device->prefetch(tensor);
                }
            } catch (const Error&) {
            } catch (const Cancelled&) {
            }
        });
    }

private:
    const LayerRunner& m_runner;
    Checkpoint m_checkpoint;
    std::future<void> m_reading; ///< finished before the next one starts
};

} // namespace

void runSweep(const LayerRunner& runner, const SweepRequest& request, const Checkpoint& checkpoint,
              const std::function<void(const SweepRow&)>& row) {
    const std::vector<Plan> plans = planAll(request);
    double total = 0, done = 0;
    for (const Plan& plan : plans)
        total += static_cast<double>(seedCount(plan, request));
    ReadAhead ahead(runner, checkpoint);
    for (std::size_t p = 0; p < plans.size(); ++p) {
        const Plan& plan = plans[p];
        const bool begins = p == 0 || !sameLayer(plan, plans[p - 1]);
        if (const std::size_t next = begins ? nextLayer(plans, p) : plans.size(); next < plans.size())
            ahead.start(plans[next], rolesFrom(plans, next));
        for (std::size_t i = 0; i < seedCount(plan, request); ++i) {
            checkpoint.at(done, total);
            RunRequest run;
            run.capture = plan.capture;
            run.layer = plan.layer;
            run.policy = plan.policy;
            run.budget = plan.budget;
            run.cut = plan.cut;
            run.seed = request.seeds[i];
            run.random = request.random;
            row(rowOfRun(runner, request, run, checkpoint.part(done / total, (done + 1) / total)));
            ++done;
        }
    }
    checkpoint.at(total, total);
}

std::string sweepCsvHeader(const SweepRequest& request) {
    std::string varied;
    for (const VariedParameter& parameter : request.varied)
        varied += parameter.id + ",";
    std::string measures;
    for (const std::string& id : request.measures)
        measures += "," + id;
    measures += request.countWork ? ",operations,bytes_touched" : "";
    return "capture,capture_hash,layer,policy,variant,spec," + varied +
           "cut,cut_token,budget,requested_tokens,kept_tokens,retention,seed,output_error,retained_mass" + measures +
           ",queries,"
           "seen_queries,skipped,features_ms,combine_ms,select_ms,measure_ms,stored_bytes,simulated,engine,arithmetic,"
           "notes\n";
}

std::string sweepCsvLine(const SweepRequest& request, const SweepRow& row) {
    const RunResult& result = *row.result;
    const RunRequest& run = result.request;
    PolicySpec spec = run.policy;
    spec.budget = askedBudget(result);
    if (!policyById(spec.policy).card().usesBudget)
        spec.budget.reset();
    std::string varied;
    for (const VariedParameter& parameter : request.varied)
        varied += (spec.values.has(parameter.id) ? spec.values.text(parameter.id) : "") + ",";
    const Fidelity* fidelity = result.fidelity.get();
    const CaptureInfo& info = run.capture->info();
    std::string line = fmt::format("{},{},{},{},{},{},{}", csvField(info.fileName), csvField(info.hash),
                                   run.layer.value, spec.policy, csvField(spec.variant), csvField(spec.text()), varied);
    std::string measures;
    for (const double value : row.measures)
        measures += "," + (std::isnan(value) ? std::string() : shortest(value));
    if (request.countWork)
        measures += fmt::format(",{:.0f},{:.0f}", row.work.operations, row.work.bytes);
    line += fmt::format("{},{},{},{},{},{},{},{},{}{},{},{},{},", csvField(run.cut.text), run.cut.token,
                        spec.budget ? spec.budget->text() : "", result.requested, shortest(row.keptTokens),
                        shortest(row.retention), run.seed, shortest(row.outputError), shortest(row.retainedMass),
                        measures, fidelity ? fidelity->queryCount : 0, fidelity && fidelity->seenQueries,
                        fidelity ? fidelity->skipped : 0);
    line += fmt::format("{:.4f},{:.4f},{:.4f},{:.4f},{},{},{},{},{}\n", result.times.featuresMs, result.times.combineMs,
                        result.times.selectMs, result.times.measureMs, row.storedBytes, result.simulated,
                        csvField(result.engine), csvField(result.arithmetic),
                        csvField(fmt::format("{}", fmt::join(result.notes, "; "))));
    return line;
}

} // namespace kvscope
