// The steps up to the choice: tensors, features, scores, select. A policy is given slices before the cut and nothing
// else; this file enforces that.
#include "core/run/layer_work.h"

#include "core/capture/named_dataset.h"
#include "core/capture/rope.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy_needs.h"
#include "core/policies/policy_run.h"
#include "core/run/attention_rule.h"
#include "core/run/cache_positions.h"
#include "core/run/choice.h"
#include "core/run/random_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>

namespace kvscope {

namespace {

/// Note on the source of the keys before RoPE; derived ones of 16-bit captures were rounded after the rotation.
std::string sourceOfPreRopeKeys(const LayerInfo& layer) {
    if (!layer.hasRope) return "keys before RoPE: the layer has no RoPE, its keys are used as they are";
    return layer.hasKeysPreRope ? "keys before RoPE: from the file"
                                : "keys before RoPE: derived from the keys by inverse rotation";
}

/// [H, m] over the rows of a cache -> [H, cut] over tokens; NaN for tokens that are no longer cached.
HostTensor byToken(const HostTensor& given, const RowPositions& positions, std::int64_t cut) {
    if (given.empty() || positions.empty()) return given;
    HostTensor tokens = HostTensor::filled({given.shape[0], cut}, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t h = 0; h < positions.size(); ++h)
        for (std::size_t row = 0; row < positions[h].size(); ++row)
            tokens.data[h * static_cast<std::size_t>(cut) + static_cast<std::size_t>(positions[h][row])] =
                given.data[h * positions[h].size() + row];
    return tokens;
}

/// Notes kept tokens that a sliding window hides, and that kvpress may ignore the window and the attention sinks.
void noteWindowAndSinks(RunResult& result, const LayerInfo& layer, bool readsQueries) {
    const RunRequest& request = result.request;
    const std::int64_t unseen = request.cut.token - layer.slidingWindow + 1; // later queries see tokens from it on
    const bool hides = layer.slidingWindow > 0 && unseen > 0;
    const bool moved = hasCachePositions(request); // then only a cache longer than the window has hidden keys
    std::int64_t kept = 0, gone = 0;
    for (const HeadSelection& head : result.selection.heads) {
        const std::int64_t own = std::ssize(head.kept);
        kept += own;
        gone += moved ? std::max<std::int64_t>(0, own - layer.slidingWindow + 1)
                      : std::ranges::lower_bound(head.kept, unseen) - head.kept.begin();
    }
    if (hides && gone > 0 && !request.cut.evaluatedOnSeen)
        result.notes.push_back(fmt::format("layer {} has a window of {} tokens: {} of {} kept tokens lie behind it, no "
                                           "later query sees them",
                                           layer.layer.value, layer.slidingWindow, gone, kept));
    if (request.policy.variant != "kvpress" || !readsQueries || (!hides && layer.sinks.empty())) return;
    const char* ignored = layer.sinks.empty() ? "window" : hides ? "window and the attention sinks" : "attention sinks";
    result.notes.push_back(fmt::format("kvpress may not count the {} of layer {} as this list does: its own list there "
                                       "may differ",
                                       ignored, layer.layer.value));
}

/// Notes what `whole_layers` did, or that the capture has no layer of that kind.
void noteWholeLayers(RunResult& result, const CaptureInfo& capture, bool whole) {
    const ParameterValues& values = result.request.policy.values;
    if (!values.has("whole_layers") || values.choice("whole_layers") == "none") return;
    const bool some = std::ranges::any_of(
        capture.layers, [&](const LayerInfo& layer) { return leavesWhole(values, layer.slidingWindow); });
    if (whole)
        result.notes.push_back(fmt::format("layer {} is left whole (whole_layers={}); only the other layers are pruned",
                                           result.request.layer.value, values.choice("whole_layers")));
    else if (!some)
        result.notes.push_back(fmt::format("whole_layers={}: the capture has no such layer, all are pruned",
                                           values.choice("whole_layers")));
}

/// A table that is a member of `owner` and keeps it alive.
SharedTable sharedIn(const std::shared_ptr<const void>& owner, const HostTensor& table) {
    return std::shared_ptr<const HostTensor>(owner, &table);
}

std::size_t ownTokens(const HeadSelection& head) {
    std::size_t count = 0;
    for (const QueryHeadSet& own : head.queryHeads) count += own.kept.size();
    return count;
}

} // namespace

/// A layer's scores in a one-shot run.
struct LayerWork::Scored {
    Scores scores;
    HostTensor anchor;
    double featuresMs = 0, combineMs = 0;
};

/// A choice, with the scores by token of a block run, or the total of a one-shot run whose scores depend on the budget.
struct LayerWork::Chosen {
    PolicyOutcome outcome;
    HostTensor total;
    std::map<std::string, HostTensor> parts;
    double selectMs = 0;

    std::size_t bytes() const {
        std::size_t sum = bytesOf(total.shape);
        for (const auto& [name, part] : parts) sum += bytesOf(part.shape);
        for (const HeadSelection& head : outcome.selection.heads)
            sum += (head.kept.size() + head.protectedTokens.size() + ownTokens(head)) * sizeof(TokenIndex);
        for (const BlockStep& step : outcome.steps)
            for (const auto& evicted : step.evicted) sum += evicted.size() * sizeof(TokenIndex);
        return sum;
    }
};

LayerWork::LayerWork(const Engine& engine, StageCache& cache, const std::string& prefix, const CaptureReader& capture,
                     LayerIndex layer)
    : m_engine(engine), m_cache(cache), m_ofCapture(prefix), m_prefix(prefixOf(prefix, layer)), m_capture(capture),
      m_layer(capture.info().layerInfo(layer)) {}

std::string LayerWork::keyOf(TensorRole role) const {
    return fmt::format("{}tensor|{}", m_prefix, static_cast<int>(role));
}

/// Derives keys before RoPE from cached keys, because the capture would read the keys from its file again.
HostTensor LayerWork::read(TensorRole role, const Checkpoint& checkpoint) const {
    const bool derived = role == TensorRole::KeysPreRope && m_layer.hasRope && !m_layer.hasKeysPreRope;
    const std::vector<float>& frequencies = m_capture.inverseFrequencies(m_layer.layer);
    if (!derived || frequencies.empty() || !m_cache.has(keyOf(TensorRole::Keys)))
        return m_capture.read(m_layer.layer, role, checkpoint);
    HostTensor keys = m_engine.download(tensor(TensorRole::Keys, checkpoint));
    rotateBack(keys, m_capture.tokens().positions, frequencies, m_capture.info().rope);
    return keys;
}

Tensor LayerWork::tensor(TensorRole role, const Checkpoint& checkpoint, double* milliseconds) const {
    const auto make = [&] {
        const auto rows = m_capture.rows(m_layer.layer, role);
        if (rows && rows->shape()[1] > kMostRowsInMemory) {
            Tensor tensor = m_engine.onDemand(rows);
            return StageCache::Made<Tensor>{tensor, tensor.storage()->isOnDemand() ? 0 : bytesOf(tensor.shape())};
        }
        Tensor tensor = m_engine.upload(read(role, checkpoint));
        return StageCache::Made<Tensor>{tensor, bytesOf(tensor.shape())};
    };
    const auto made = timed([&] { return m_cache.get<Tensor>(keyOf(role), checkpoint, make); });
    if (milliseconds) *milliseconds += made.milliseconds;
    return *made.value;
}

Tensor LayerWork::rows(const LayerRead& read, const Checkpoint& checkpoint, double* milliseconds) const {
    const std::string key = fmt::format("{}|{}|{}", keyOf(read.role), read.begin, read.end);
    const bool all = read == LayerRead{read.role, 0, rowsOf(read.role, m_capture.info(), m_layer)};
    assert(all || read.role == TensorRole::Queries);
    // A slice of the whole tensor gets no cache entry: it would keep the tensor in memory after the cache drops it.
    if (all || m_cache.has(keyOf(read.role)) || !m_capture.readsQueriesInParts())
        return m_engine.rows(tensor(read.role, checkpoint, milliseconds), read.begin, read.end);
    const auto make = [&] {
        Tensor part = m_engine.upload(m_capture.readQueries(m_layer.layer, read.begin, read.end, checkpoint));
        return StageCache::Made<Tensor>{part, bytesOf(part.shape())};
    };
    const auto made = timed([&] { return m_cache.get<Tensor>(key, checkpoint, make); });
    if (milliseconds) *milliseconds += made.milliseconds;
    return *made.value;
}

Tensor LayerWork::queries(const QueryRows& queries, const Checkpoint& checkpoint, double* milliseconds) const {
    const LayerRead read = readOf(queries, m_layer);
    return m_engine.rows(rows(read, checkpoint, milliseconds), queries.begin - read.begin, queries.end - read.begin);
}

std::string LayerWork::keyOf(const char* step, const RunRequest& request, Stage stage) const {
    const bool seeded = policyById(request.policy.policy).card().usesSeed;
    std::string random = request.random ? request.random->id() : std::string();
    if (readsImportedScores(request.policy)) random += fileStamp(request.policy.values.text("file"));
    std::string key =
        fmt::format("{}{}|{}|{}|{}|{}|{}", m_prefix, step, request.cut.token, request.policy.policy,
                    seeded ? std::to_string(request.seed) : "-", random, request.policy.values.key(stage));
    return stage == Stage::Select ? fmt::format("{}|{}|{}", key, request.budget.text(), request.recordSteps) : key;
}

PolicyInput LayerWork::policyInput(const RunResult& result, const Checkpoint& checkpoint, double& milliseconds) const {
    const Cut& cut = result.request.cut;
    const auto seen = [&](TensorRole role) {
        return m_engine.rows(tensor(role, checkpoint, &milliseconds), 0, cut.token);
    };
    const QueryRows own = policyQueries(result.request);
    const auto wants = [&](Need need) { return policyNeeds(result.request.policy, need); };
    const std::int64_t kvHeads = m_capture.info().numKvHeads, width = m_capture.info().headDim;
    // Keys are read first if a measure needs them later: keys before RoPE are then derived from them.
    const bool wantsKeys = wants(Need::Keys) || (wants(Need::PreRopeKeys) && result.request.measure);
    return PolicyInput{.engine = m_engine,
                       .keys = wantsKeys ? seen(TensorRole::Keys) : Tensor({kvHeads, cut.token, width}, {}),
                       .values = wants(Need::Values) ? seen(TensorRole::Values) : Tensor(),
                       .queries = own.count() > 0 ? queries(own, checkpoint, &milliseconds) : Tensor(),
                       .firstQuery = own.firstQuery,
                       .end = cut.token,
                       .positions = {},
                       .carried = {},
                       .attention = attentionRuleOf(m_layer),
                       .layer = m_layer.layer,
                       .numLayers = m_capture.info().numLayers,
                       .seed = result.request.seed,
                       .checkpoint = checkpoint,
                       .preRopeKeys = wants(Need::PreRopeKeys) ? seen(TensorRole::KeysPreRope) : Tensor(),
                       .random = result.request.random ? result.request.random.get() : &drawnRandom(),
                       .keysOfLayer =
                           [this, &cut, checkpoint](LayerIndex other) {
                               const LayerWork there(m_engine, m_cache, m_ofCapture, m_capture, other);
                               return m_engine.rows(there.tensor(TensorRole::Keys, checkpoint), 0, cut.token);
                           },
                       .recordSteps = result.request.recordSteps,
                       .imported = importedBy(result.request, checkpoint),
                       .memo = nullptr};
}

std::shared_ptr<const Timed<Features>> LayerWork::features(RunResult& result, const Policy& policy,
                                                           const PolicyInput& input) const {
    const std::string key = keyOf("features", result.request, Stage::Features);
    const auto make = [&] {
        Timed<Features> made = timed([&] { return policy.features(input, result.request.policy.values); });
        std::size_t bytes = 0;
        for (const auto& [name, tensor] : made.value) bytes += bytesOf(tensor.shape);
        return StageCache::Made<Timed<Features>>{std::move(made), bytes};
    };
    return m_cache.get<Timed<Features>>(key, input.checkpoint, make, &result.times.featuresFromCache);
}

LayerWork::Scored LayerWork::combined(const RunRequest& request, const Policy& policy, const PolicyInput& input,
                                      const Features& features) const {
    Scored scored;
    scored.scores = policy.combine(input, features, request.policy.values);
    if (const auto anchor = features.find("anchor"); anchor != features.end()) scored.anchor = anchor->second;
    return scored;
}

std::shared_ptr<const LayerWork::Scored> LayerWork::score(RunResult& result, const Policy& policy,
                                                          const PolicyInput& input) const {
    const RunRequest& request = result.request;
    result.times.featuresFromCache = true; // reset below if they are computed
    const auto make = [&] {
        const auto made = features(result, policy, input);
        auto [scored, combineMs] = timed([&] { return combined(request, policy, input, made->value); });
        scored.featuresMs = made->milliseconds;
        scored.combineMs = combineMs;
        const std::size_t bytes = (1 + scored.scores.parts.size()) * bytesOf(scored.scores.total.shape) +
                                  bytesOf(scored.scores.perQueryHead.shape);
        return StageCache::Made<Scored>{std::move(scored), bytes};
    };
    const auto scored = m_cache.get<Scored>(keyOf("scores", request, Stage::Combine), input.checkpoint, make,
                                            &result.times.scoresFromCache);
    result.times.featuresMs = scored->featuresMs;
    result.times.combineMs = scored->combineMs;
    result.scores = sharedIn(scored, scored->scores.total);
    result.queryHeadScores = sharedIn(scored, scored->scores.perQueryHead);
    for (const auto& [name, part] : scored->scores.parts) result.parts[name] = sharedIn(scored, part);
    result.anchor = sharedIn(scored, scored->anchor);
    return scored;
}

LayerWork::Chosen LayerWork::chosen(const RunRequest& request, const Policy& policy, const PolicyInput& input,
                                    const Scored* scored) const {
    Chosen made;
    PolicyOutcome& outcome = made.outcome;
    if (scored) {
        outcome = selectOneShot(policy, request.policy.values, request.budget, input, scored->scores);
        made.total = std::move(outcome.scores.total);
    } else {
        outcome = runPolicy(policy, request.policy.values, request.budget, input);
        made.total = byToken(outcome.scores.total, outcome.positions, request.cut.token);
        for (const auto& [name, part] : outcome.scores.parts)
            made.parts[name] = byToken(part, outcome.positions, request.cut.token);
    }
    outcome.scores = {};
    outcome.positions = {};
    return made;
}

std::shared_ptr<const LayerWork::Chosen> LayerWork::decide(RunResult& result, const Policy& policy,
                                                           const PolicyInput& input, const Scored* scored) const {
    const RunRequest& request = result.request;
    const auto make = [&] {
        auto [made, selectMs] = timed([&] { return chosen(request, policy, input, scored); });
        made.selectMs = selectMs;
        const std::size_t bytes = made.bytes();
        return StageCache::Made<Chosen>{std::move(made), bytes};
    };
    // Ranking scores is linear in the tokens; SnapKV ranks a row for each query head.
    const bool ranks = scored && !scored->scores.total.empty() && !request.recordSteps &&
                       scored->scores.perQueryHead.data.size() <= kMostRowsAtOnce;
    // A caller under AtOnce keeps the choice itself: caching every step of a drag would evict values that took long.
    if (ranks && StageCache::AtOnce::isAsked()) return std::make_shared<const Chosen>(make().value);
    return m_cache.get<Chosen>(keyOf("choice", request, Stage::Select), input.checkpoint, make,
                               &result.times.selectionFromCache,
                               ranks ? StageCache::Cost::Quick : StageCache::Cost::Long);
}

// Cached for as long as the cache has room for the memo's estimated size, a few numbers per row.
std::shared_ptr<ChoiceMemo> LayerWork::memoOf(const RunRequest& request, const Checkpoint& checkpoint) const {
    using Shared = std::shared_ptr<ChoiceMemo>;
    const auto rows =
        static_cast<std::size_t>(request.cut.token) * static_cast<std::size_t>(m_capture.info().numKvHeads);
    const auto make = [rows] {
        return StageCache::Made<Shared>{std::make_shared<ChoiceMemo>(), 5 * rows * sizeof(double)};
    };
    return *m_cache.get<Shared>(keyOf("memo", request, Stage::Features), checkpoint, make, nullptr,
                                StageCache::Cost::Quick);
}

// Cache keys hold the file's date and size, so that a rewritten file counts as another one.
std::function<std::shared_ptr<const HostTensor>()> LayerWork::importedBy(const RunRequest& request,
                                                                         const Checkpoint& checkpoint) const {
    if (!readsImportedScores(request.policy) || request.policy.values.text("file").empty()) return {};
    return [this, &request, checkpoint] {
        return m_cache.get<HostTensor>(keyOf("scores of a file", request, Stage::Features), checkpoint, [&] {
            HostTensor scores =
                readImportedScores(request.policy.values.text("file"), m_capture, m_layer.layer, request.cut.token);
            const std::size_t bytes = bytesOf(scores.shape);
            return StageCache::Made<HostTensor>{std::move(scores), bytes};
        });
    };
}

void LayerWork::chooseByPolicy(RunResult& result, const Checkpoint& checkpoint) const {
    const RunRequest& request = result.request;
    const Policy& policy = policyById(request.policy.policy);
    const Checkpoint afterReading = checkpoint.part(0.1, 1);
    PolicyInput input = policyInput(result, afterReading, result.times.readMs);
    std::shared_ptr<const Scored> scored;
    std::shared_ptr<ChoiceMemo> memo;
    if (isOneShot(request.policy.values)) {
        scored = score(result, policy, input);
        memo = memoOf(request, checkpoint);
        input.memo = memo.get();
    }
    const auto chosen = decide(result, policy, input, scored.get());
    result.selection = chosen->outcome.selection;
    result.requested = chosen->outcome.requested;
    result.steps = chosen->outcome.steps;
    result.log = chosen->outcome.log;
    result.simulated = chosen->outcome.simulated;
    result.notes = chosen->outcome.notes;
    result.times.selectMs = chosen->selectMs;
    if (!scored)
        for (const auto& [name, part] : chosen->parts) result.parts[name] = sharedIn(chosen, part);
    if (!scored || !chosen->total.empty())
        result.scores = sharedIn(chosen, chosen->total); // scores of a block run, or scores that depend on the budget
    if (policyNeeds(request.policy, Need::PreRopeKeys)) result.notes.push_back(sourceOfPreRopeKeys(m_layer));
    if (request.random && policy.card().usesSeed)
        std::ranges::copy(notesOfRandom(*request.random), std::back_inserter(result.notes));
    if (readsImportedScores(request.policy))
        std::ranges::copy(notesOfScores(request.policy.values.text("file"), request.cut.token),
                          std::back_inserter(result.notes));
}

void LayerWork::choose(RunResult& result, const Checkpoint& checkpoint) const {
    assert(result.request.cut.token >= 1 && result.request.cut.token <= m_capture.info().numTokens);
    if (hasCachePositions(result.request)) requireRotatableKeys(m_capture, m_layer);
    if (result.request.recorded)
        takeRecorded(result);
    else
        chooseByPolicy(result, checkpoint);
    const PolicySpec& policy = result.request.policy;
    const bool whole = !result.request.recorded && leavesWhole(policy.values, m_layer.slidingWindow);
    noteWindowAndSinks(result, m_layer, !result.request.recorded && !whole && policyNeeds(policy, Need::Queries));
    if (!result.request.recorded) noteWholeLayers(result, m_capture.info(), whole);
}

} // namespace kvscope
