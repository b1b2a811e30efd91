// Runs a request step by step, each step through the cache: tensors, features, scores, choice, exact attention of the
// evaluation queries, measures. A changed parameter recomputes only the steps that depend on it.
#include "core/run/run.h"

#include "core/base/error.h"
#include "core/capture/named_dataset.h"
#include "core/engine/recent_sums.h"
#include "core/lists/selection_file.h"
#include "core/metrics/measures.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy_needs.h"
#include "core/policies/policy_run.h"
#include "core/run/attention_rule.h"
#include "core/run/cache_positions.h"
#include "core/run/calibrated_budget.h"
#include "core/run/choice.h"
#include "core/run/layer_work.h"
#include "core/run/record_results.h"
#include "core/run/stage_cache.h"

#include <fmt/format.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace kvscope {

namespace {

void blank(HostTensor& table, std::vector<double>& means, std::size_t row) {
    const auto width = table.shape[1];
    const auto begin = table.data.begin() + static_cast<std::int64_t>(row) * width;
    std::fill(begin, begin + width, std::numeric_limits<float>::quiet_NaN());
    means[row] = std::numeric_limits<double>::quiet_NaN();
}

/// Query heads of a KV head that the list leaves out have no measures (NaN).
void leaveOutHeads(Fidelity& fidelity, const std::vector<std::int32_t>& missing,
                   const std::vector<std::int32_t>& gqaGroupOf) {
    for (std::size_t head = 0; head < gqaGroupOf.size(); ++head) {
        if (!std::ranges::binary_search(missing, gqaGroupOf[head])) continue;
        blank(fidelity.outputError, fidelity.meanOutputError, head);
        blank(fidelity.retainedMass, fidelity.meanRetainedMass, head);
    }
}

/// The same for any measure of kept tokens; one of the whole layer has no number as soon as one head is missing.
void leaveOutHeads(MeasureValues& values, const std::vector<std::int32_t>& missing,
                   const std::vector<std::int32_t>& gqaGroupOf) {
    const MeasureCard& card = measureById(values.id);
    if (missing.empty() || card.subject == MeasureSubject::Layer) return;
    for (std::size_t row = 0; row < values.perHead.size(); ++row) {
        const std::int32_t kvHead =
            card.shape == MeasureShape::PerKvHead ? static_cast<std::int32_t>(row) : gqaGroupOf[row];
        if (card.isPerHead() && !std::ranges::binary_search(missing, kvHead)) continue;
        if (values.perQuery.empty())
            values.perHead[row] = std::numeric_limits<double>::quiet_NaN();
        else
            blank(values.perQuery, values.perHead, row);
    }
}

/// Stamps of the files that the curve is made from: rows may be added to a capture while it is open.
std::string stampOfCurve(const RunRequest& request) {
    const std::string& curve = request.budget.curve;
    return pathStamp(curve.empty() ? request.capture->info().path : curve) +
           (readsImportedScores(request.policy) ? fileStamp(request.policy.values.text("file")) : std::string());
}

} // namespace

struct LayerRunner::Caches {
    explicit Caches(std::size_t bytes) : stages(bytes) {}

    StageCache stages;

    /// Key prefix of a reader ("7|"), never reused for another. Drops the cache entries of closed captures, but not in
    /// a call that must be answered at once: freeing gigabytes takes a quarter of a second.
    std::string prefixOf(const std::shared_ptr<const CaptureReader>& capture) {
        std::vector<std::string> closed;
        std::string prefix;
        {
            const std::lock_guard lock(mutex);
            for (auto at = readers.begin(); at != readers.end();) {
                const bool goes = at->first.expired() && !StageCache::AtOnce::isAsked();
                if (goes) closed.push_back(at->second);
                at = goes ? readers.erase(at) : std::next(at);
            }
            std::string& known = readers[capture];
            if (known.empty()) known = std::to_string(++count) + "|";
            prefix = known;
        }
        for (const std::string& old : closed) stages.drop(old);
        return prefix;
    }

private:
    std::mutex mutex;
    std::map<std::weak_ptr<const CaptureReader>, std::string, std::owner_less<>> readers;
    std::uint64_t count = 0;
};

LayerRunner::LayerRunner(std::shared_ptr<const Engine> engine, std::size_t cacheBytes)
    : m_engine(std::move(engine)), m_caches(std::make_unique<Caches>(cacheBytes)) {}

LayerRunner::~LayerRunner() = default;

const Engine& LayerRunner::engine() const { return *m_engine; }

StageCache& LayerRunner::cache() const { return m_caches->stages; }

std::string LayerRunner::keyOf(const std::shared_ptr<const CaptureReader>& capture) const {
    return m_caches->prefixOf(capture);
}

Tensor LayerRunner::tensor(const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer, TensorRole role,
                           const Checkpoint& checkpoint) const {
    return LayerWork(*this, capture, layer).tensor(role, checkpoint);
}

std::shared_ptr<const RunResult> LayerRunner::run(const RunRequest& request, const Checkpoint& checkpoint,
                                                  const Partial& partial) const {
    assert(request.capture);
    if (request.budget.unit == Budget::Unit::Quality) return runCalibrated(request, checkpoint, partial);
    return runOnce(request, checkpoint, partial);
}

namespace {
std::vector<std::string> notesOf(const EngineState& state) {
    std::vector<std::string> notes;
    if (!state.notice.empty()) notes.push_back(state.notice);
    if (!state.fallbacks.empty())
        notes.push_back("calls that failed on the device so far and ran on the CPU: " + textOf(state.fallbacks) +
                        "; the last: " + state.failure);
    return notes;
}
} // namespace

std::shared_ptr<const RunResult> LayerRunner::runOnce(const RunRequest& request, const Checkpoint& checkpoint,
                                                      const Partial& partial) const {
    const LayerWork work(*this, request.capture, request.layer);
    auto result = std::make_shared<RunResult>();
    result->request = request;
    result->visible = request.cut.token;
    result->engine = m_engine->name();
    result->arithmetic = m_engine->arithmetic();
    work.choose(*result, request.measure ? checkpoint.part(0, 0.5) : checkpoint);
    if (const std::string warning = request.capture->info().checkWarning(); !warning.empty())
        result->notes.push_back(warning);
    const std::vector<std::string> before = notesOf(m_engine->state());
    result->notes.insert(result->notes.end(), before.begin(), before.end());
    if (!request.measure) {
        if (partial) partial(result);
        return result;
    }
    if (partial) partial(std::make_shared<const RunResult>(*result));
    work.measure(*result, checkpoint.part(0.5, 1));
    result->request.later.clear();
    const std::vector<std::string> after = notesOf(m_engine->state()); // the measures may have failed on the device
    std::erase_if(result->notes, [&](const std::string& note) { return std::ranges::count(before, note) > 0; });
    result->notes.insert(result->notes.end(), after.begin(), after.end());
    return result;
}

// The curve belongs to the capture, not to the layer: it is found once and cached.
std::shared_ptr<const CalibratedBudget> LayerRunner::calibrated(const RunRequest& request,
                                                                const Checkpoint& checkpoint) const {
    PolicySpec policy = request.policy;
    policy.budget.reset();
    const std::string key = fmt::format("{}calibrated|{}|{}|{}|{}|{}|{}", m_caches->prefixOf(request.capture),
                                        policy.text(), request.budget.text(), stampOfCurve(request), request.cut.token,
                                        request.seed, request.random ? request.random->id() : "");
    return m_caches->stages.get<CalibratedBudget>(key, checkpoint, [&] {
        return StageCache::Made<CalibratedBudget>{calibratedBudget(*this, request, checkpoint),
                                                  sizeof(CalibratedBudget)};
    });
}

std::shared_ptr<const RunResult> LayerRunner::runCalibrated(const RunRequest& request, const Checkpoint& checkpoint,
                                                            const Partial& partial) const {
    RunRequest resolved = request;
    resolved.budget = {};
    if (!policyById(request.policy.policy).card().usesBudget) return run(resolved, checkpoint, partial);
    const auto budget = calibrated(request, checkpoint.part(0, 0.5));
    resolved.budget.value = budget->retention;
    if (roundingOf(request.policy.values) != Rounding::Ceil) // ceil(r* N), whatever rounding the policy's variant has
        resolved.budget = {Budget::Unit::Tokens,
                           static_cast<double>(resolveBudget(resolved.budget, request.cut.token, Rounding::Ceil)),
                           {}};
    const auto marked = [&](const std::shared_ptr<const RunResult>& plain) {
        auto result = std::make_shared<RunResult>(*plain);
        result->calibrated = budget;
        result->notes.insert(result->notes.begin(), budget->text());
        return std::shared_ptr<const RunResult>(std::move(result));
    };
    const Partial delivered = [&](const std::shared_ptr<const RunResult>& plain) { partial(marked(plain)); };
    return marked(run(resolved, checkpoint.part(0.5, 1), partial ? delivered : Partial{}));
}

std::vector<MeasureValues> LayerRunner::measure(const RunResult& result, std::span<const std::string> ids,
                                                const Checkpoint& checkpoint) const {
    return LayerWork(*this, result.request.capture, result.request.layer).measures(result, ids, checkpoint);
}

std::shared_ptr<const RunResult> chooseAtOnce(const LayerRunner& runner, const RunRequest& request) {
    const std::int64_t heads = request.capture->info().numKvHeads;
    if (request.recorded || std::cmp_greater(heads * request.cut.token, kMostRowsAtOnce) ||
        readsImportedScores(request.policy))
        return nullptr;
    RunRequest choice = request;
    choice.measure = false;
    std::shared_ptr<const RunResult> chosen;
    tbb::task_arena alone(1);
    alone.execute([&] {
        const StageCache::AtOnce atOnce;
        try {
            chosen = runner.run(choice, {});
        } catch (const StageCache::Missing&) {
        } catch (const std::exception&) { // the worker meets and reports the same error
        }
    });
    return chosen;
}

void readLayer(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer,
               std::span<const LayerRead> reads, const Checkpoint& checkpoint) {
    const LayerWork work(runner, capture, layer);
    for (const LayerRead& read : reads) work.rows(read, checkpoint);
}

void forgetLayer(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer) {
    runner.cache().drop(LayerWork::prefixOf(runner.keyOf(capture), layer));
}

std::shared_ptr<const RunResult> measureChoice(const LayerRunner& runner, const RunResult& chosen,
                                               const Checkpoint& checkpoint) {
    auto measured = std::make_shared<RunResult>(chosen);
    measured->request.measure = true;
    LayerWork(runner, chosen.request.capture, chosen.request.layer).measure(*measured, checkpoint);
    return measured;
}

FidelityInput LayerWork::left(FidelityInput input, const RunResult& result, const Checkpoint& checkpoint) const {
    if (hasCachePositions(result.request))
        input.moved = moveIntoCache(m_engine, input, result.selection, m_capture, m_layer, checkpoint);
    return input;
}

FidelityInput LayerWork::fidelityInput(RunResult& result, const Checkpoint& checkpoint) const {
    const Cut& cut = result.request.cut;
    const QueryRows evaluation = evaluationQueries(result.request);
    if (evaluation.count() <= 0) {
        result.notes.push_back("not measured: the capture holds no queries; capture them to measure a selection");
        return {};
    }
    if (cut.evaluatedOnSeen && hasCachePositions(result.request)) {
        result.notes.push_back(
            "not measured: positions are re-assigned after the cut, and cut none leaves no query there; "
            "choose another cut or positions=kept");
        return {};
    }
    if (evaluation.count() < evaluation.wanted)
        result.notes.push_back(
            fmt::format("measured on the last {} of {} queries after the cut: the capture holds no others",
                        evaluation.count(), evaluation.wanted));
    double& readMs = result.times.readMs;
    FidelityInput input;
    input.queries = queries(evaluation, checkpoint, &readMs);
    input.keys = tensor(TensorRole::Keys, checkpoint, &readMs);
    input.values = tensor(TensorRole::Values, checkpoint, &readMs);
    input.firstQuery = evaluation.firstQuery;
    input.cut = cut.token;
    input.seenQueries = cut.evaluatedOnSeen;
    input.rule = attentionRuleOf(m_layer);
    return input;
}

namespace {
/// For each of kMost sums: dv + 5 doubles per query, in blocks of 32 queries, and the kept tokens of each head.
std::size_t mostBytesOfRecentSums(const FidelityInput& input) {
    const auto heads = static_cast<std::size_t>(input.queries.size(0)),
               queries = static_cast<std::size_t>((input.queries.size(1) + 31) / 32 * 32),
               numbers = static_cast<std::size_t>(input.values.size(2)) + 5;
    return RecentSums::kMost * (std::min(heads * queries * numbers * sizeof(double), RecentSums::kMostBytes) +
                                heads * static_cast<std::size_t>(input.cut) * sizeof(TokenIndex));
}
} // namespace

// Only policies that rank scores choose again at little cost.
std::vector<std::vector<WeightedSet>> LayerWork::nestedSets(const RunResult& chosen,
                                                            const Checkpoint& checkpoint) const {
    const RunRequest& request = chosen.request;
    if (request.later.empty() || chosen.scores.empty() || !isOneShot(request.policy.values) ||
        hasCachePositions(request))
        return {};
    std::vector<std::vector<WeightedSet>> sets = {weightedSetsOf(chosen.selection, m_layer.gqaGroupOf)};
    for (const Budget& budget : request.later) {
        RunResult other;
        other.request = request;
        other.request.budget = budget;
        try {
            choose(other, checkpoint.silent());
        } catch (const Error&) { // its own request reports it
            continue;
        }
        sets.push_back(weightedSetsOf(other.selection, m_layer.gqaGroupOf));
    }
    return nestedFamilies(std::move(sets));
}

std::shared_ptr<const ExactAttention> LayerWork::exact(const FidelityInput& input, const Checkpoint& checkpoint,
                                                       std::vector<std::vector<WeightedSet>> nested) const {
    const std::string key = fmt::format("{}exact|{}|{}", m_prefix, input.cut, input.seenQueries);
    return m_cache.get<ExactAttention>(key, checkpoint, [&] {
        ExactAttention all = exactAttention(m_engine, input, checkpoint, std::move(nested));
        const std::size_t table = bytesOf(all.logDenominator.shape);
        std::size_t bytes = bytesOf(all.output.shape()) + 2 * table + mostBytesOfRecentSums(input);
        for (const std::vector<WeightedSet>& family : all.nested) {
            bytes += 3 * table;
            for (const WeightedSet& set : family) bytes += set.numerator.size() * sizeof(TokenIndex);
        }
        return StageCache::Made<ExactAttention>{std::move(all), bytes};
    });
}

std::vector<MeasureValues> LayerWork::measures(const RunResult& result, std::span<const std::string> ids,
                                               const Checkpoint& checkpoint) const {
    const Fidelity& fidelity = requireFidelity(result);
    RunResult scratch; // takes the notes and times, which `result` already has
    scratch.request = result.request;
    const FidelityInput input = left(fidelityInput(scratch, checkpoint.silent()), result, checkpoint.silent());
    const auto cached = exact(input, checkpoint.part(0, 0.3));
    const WeightedAttention all{m_engine.download(cached->output), cached->logDenominator, cached->logNorm, {}};
    const std::vector<WeightedSet> kept = weightedSetsOf(result.selection, m_layer.gqaGroupOf);
    const ValuesOfLayer ofLayer = [&](const std::string& name, const std::function<MeasureValues()>& make) {
        const std::string key = fmt::format("{}measure|{}|{}|{}", m_prefix, name, input.cut, input.seenQueries);
        return m_cache.get<MeasureValues>(key, checkpoint, [&] {
            MeasureValues made = make();
            const std::size_t bytes =
                bytesOf(made.perQuery.shape) + bytesOf(made.perVector.shape) + made.perHead.size() * sizeof(double);
            return StageCache::Made<MeasureValues>{std::move(made), bytes};
        });
    };
    const auto anyNeeds = [&](MeasureNeed need) {
        return std::ranges::any_of(ids, [&](const std::string& id) { return measureById(id).need == need; });
    };
    HostTensor projection;
    if (anyNeeds(MeasureNeed::OutputProjection) && m_layer.hasOutputProjection)
        projection = m_capture.read(m_layer.layer, TensorRole::OutputProjection, checkpoint.silent());
    Tensor preRopeKeys;
    if (anyNeeds(MeasureNeed::PreRopeKeys)) preRopeKeys = tensor(TensorRole::KeysPreRope, checkpoint.silent());
    Tensor allQueries;
    if (anyNeeds(MeasureNeed::AllQueries)) allQueries = tensor(TensorRole::Queries, checkpoint.silent());
    const bool perQueryHead = !result.queryHeadScores.empty();
    const HostTensor& scores = perQueryHead ? result.queryHeadScores : result.scores;
    std::vector<MeasureValues> values =
        measureLayer({m_engine, input, all, fidelity, kept, scores, projection, preRopeKeys, allQueries,
                      cached->recent.get(), ofLayer, perQueryHead},
                     ids, checkpoint.part(0.3, 1));
    const std::vector<std::int32_t> missing = headsNotRecorded(result);
    for (MeasureValues& one : values) leaveOutHeads(one, missing, m_layer.gqaGroupOf);
    return values;
}

void LayerWork::measure(RunResult& result, const Checkpoint& checkpoint) const {
    const RunRequest& request = result.request;
    const FidelityInput input = fidelityInput(result, checkpoint);
    if (input.queries.empty()) return;
    const auto make = [&] {
        auto nested = nestedSets(result, checkpoint); // choices have a time of their own
        auto made = timed([&] {
            const auto all = exact(input, checkpoint.part(0, 0.5), std::move(nested));
            return std::make_shared<Fidelity>(measureFidelity(m_engine, left(input, result, checkpoint.silent()), *all,
                                                              weightedSetsOf(result.selection, m_layer.gqaGroupOf),
                                                              checkpoint.part(0.5, 1)));
        });
        const std::size_t bytes = 2 * bytesOf(made.value->outputError.shape);
        return StageCache::Made<Timed<std::shared_ptr<Fidelity>>>{std::move(made), bytes};
    };
    if (request.recorded) {
        const Timed<std::shared_ptr<Fidelity>> made = make().value;
        leaveOutHeads(*made.value, headsNotRecorded(result), m_layer.gqaGroupOf);
        result.fidelity = made.value;
        result.times.measureMs = made.milliseconds;
        return;
    }
    const std::string key = keyOf(input.seenQueries ? "seen fidelity" : "fidelity", request, Stage::Select);
    const auto measured =
        m_cache.get<Timed<std::shared_ptr<Fidelity>>>(key, checkpoint, make, &result.times.fidelityFromCache);
    result.fidelity = measured->value;
    result.times.measureMs = measured->milliseconds;
}

} // namespace kvscope
