// The steps that end in a choice: tensors, features, scores, select. Only what lies before the cut is ever given to a
// policy; that is enforced here, by what is cut out of the tensors.
#include "core/run/layer_work.h"

#include "core/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>

namespace kvscope {

namespace {

bool needs(const PolicyCard& card, Need need) {
    return std::find(card.needs.begin(), card.needs.end(), need) != card.needs.end();
}

/// [H, m] over the rows of a cache -> [H, cut] over tokens; NaN for tokens that are no longer in it.
HostTensor byToken(const Engine& engine, const Tensor& rows, const RowPositions& positions, std::int64_t cut) {
    if (rows.empty())
        return {};
    HostTensor given = engine.download(rows);
    if (positions.empty())
        return given;
    HostTensor tokens{{given.shape[0], cut}, {}};
    tokens.data.assign(static_cast<std::size_t>(tokens.shape.count()), std::numeric_limits<float>::quiet_NaN());
    for (std::size_t h = 0; h < positions.size(); ++h)
        for (std::size_t row = 0; row < positions[h].size(); ++row)
            tokens.data[h * static_cast<std::size_t>(cut) + static_cast<std::size_t>(positions[h][row])] =
                given.data[h * positions[h].size() + row];
    return tokens;
}

} // namespace

/// Host and engine forms of a layer's scores in a one-shot run.
struct LayerWork::Scored {
    Scores scores;
    HostTensor total, anchor;
    std::map<std::string, HostTensor> parts;
};

/// What does not fit into a PolicyOutcome for block runs: scores by token.
struct LayerWork::Chosen {
    PolicyOutcome outcome;
    HostTensor total;
    std::map<std::string, HostTensor> parts;

    std::size_t bytes() const {
        std::size_t sum = bytesOf(total.shape);
        for (const auto& [name, part] : parts)
            sum += bytesOf(part.shape);
        for (const HeadSelection& head : outcome.selection.heads)
            sum += (head.kept.size() + head.protectedTokens.size()) * sizeof(TokenIndex);
        for (const BlockStep& step : outcome.steps)
            for (const auto& evicted : step.evicted)
                sum += evicted.size() * sizeof(TokenIndex);
        return sum;
    }
};

LayerWork::LayerWork(const Engine& engine, StageCache& cache, const std::string& prefix, const CaptureReader& capture,
                     LayerIndex layer)
    : m_engine(engine), m_cache(cache), m_prefix(prefix + std::to_string(layer.value) + "|"), m_capture(capture),
      m_layer(capture.info().layerInfo(layer)) {}

AttentionRule LayerWork::attentionRule() const {
    return {m_layer.scaling, m_layer.softcap, m_layer.slidingWindow, m_layer.kvOfQ};
}

Tensor LayerWork::tensor(TensorRole role, const Checkpoint& checkpoint, double* milliseconds) const {
    double ignored = 0;
    const Stopwatch watch(milliseconds ? *milliseconds : ignored);
    const std::string key = fmt::format("{}tensor|{}", m_prefix, static_cast<int>(role));
    return *m_cache.get<Tensor>(key, checkpoint, [&] {
        Tensor tensor = m_engine.upload(m_capture.read(m_layer.layer, role, checkpoint));
        return StageCache::Made<Tensor>{tensor, bytesOf(tensor.shape())};
    });
}

std::string LayerWork::keyOf(const char* step, const RunRequest& request, Stage stage) const {
    const bool seeded = policyById(request.policy.policy).card().usesSeed;
    std::string key = fmt::format("{}{}|{}|{}|{}|{}", m_prefix, step, request.cut.token, request.policy.policy,
                                  seeded ? std::to_string(request.seed) : "-", request.policy.values.key(stage));
    return stage == Stage::Select ? key + "|" + request.budget.text() : key;
}

PolicyInput LayerWork::policyInput(const RunResult& result, const Policy& policy, const Checkpoint& checkpoint,
                                   double& milliseconds) const {
    const Cut& cut = result.request.cut;
    const auto seen = [&](TensorRole role) { return m_engine.rows(tensor(role, checkpoint, &milliseconds), 0, cut.token); };
    const std::int64_t firstCaptured = m_capture.info().numTokens - m_layer.queryCount;
    const bool wantsQueries = needs(policy.card(), Need::Queries) && firstCaptured < cut.token;
    return PolicyInput{.engine = m_engine,
                       .keys = seen(TensorRole::Keys),
                       .values = needs(policy.card(), Need::Values) ? seen(TensorRole::Values) : Tensor(),
                       .queries = wantsQueries ? m_engine.rows(tensor(TensorRole::Queries, checkpoint, &milliseconds), 0,
                                                               cut.token - firstCaptured)
                                               : Tensor(),
                       .firstQuery = static_cast<TokenIndex>(firstCaptured),
                       .end = cut.token,
                       .positions = {},
                       .carried = {},
                       .attention = attentionRule(),
                       .layer = m_layer.layer,
                       .numLayers = m_capture.info().numLayers,
                       .seed = result.request.seed,
                       .checkpoint = checkpoint};
}

std::shared_ptr<const LayerWork::Scored> LayerWork::score(RunResult& result, const Policy& policy,
                                                          const PolicyInput& input) const {
    const RunRequest& request = result.request;
    StageTimes& times = result.times;
    times.featuresFromCache = true; // unless they are needed and not there
    const auto features = [&] {
        const Stopwatch watch(times.featuresMs);
        return m_cache.get<Features>(
            keyOf("features", request, Stage::Features), input.checkpoint,
            [&] {
                Features made = policy.features(input, request.policy.values);
                std::size_t bytes = 0;
                for (const auto& [name, tensor] : made)
                    bytes += bytesOf(tensor.shape());
                return StageCache::Made<Features>{std::move(made), bytes};
            },
            &times.featuresFromCache);
    };
    return m_cache.get<Scored>(
        keyOf("scores", request, Stage::Combine), input.checkpoint,
        [&] {
            const auto made = features();
            const Stopwatch watch(times.combineMs);
            Scored scored{policy.combine(input, *made, request.policy.values), {}, {}, {}};
            scored.total = byToken(m_engine, scored.scores.total, {}, request.cut.token);
            for (const auto& [name, part] : scored.scores.parts)
                scored.parts[name] = byToken(m_engine, part, {}, request.cut.token);
            if (const auto anchor = made->find("anchor"); anchor != made->end())
                scored.anchor = m_engine.download(anchor->second);
            const std::size_t tables = 1 + scored.parts.size();
            return StageCache::Made<Scored>{std::move(scored), 2 * tables * bytesOf(input.keys.shape()) /
                                                                   static_cast<std::size_t>(input.keys.size(2))};
        },
        &times.scoresFromCache);
}

void LayerWork::chooseByPolicy(RunResult& result, const Checkpoint& checkpoint) const {
    const RunRequest& request = result.request;
    const Policy& policy = policyById(request.policy.policy);
    const Checkpoint whole = checkpoint.part(0.1, 1);
    PolicyInput input = policyInput(result, policy, whole, result.times.readMs);
    const bool oneShot = isOneShot(request.policy.values);
    std::shared_ptr<const Scored> scored;
    if (oneShot)
        scored = score(result, policy, input);
    const Stopwatch watch(result.times.selectMs);
    const auto chosen = m_cache.get<Chosen>(
        keyOf("choice", request, Stage::Select), checkpoint,
        [&] {
            Chosen made;
            made.outcome = oneShot ? selectOneShot(policy, request.policy.values, request.budget, input, scored->scores)
                                   : runPolicy(policy, request.policy.values, request.budget, input);
            if (!oneShot) {
                const RowPositions& positions = made.outcome.positions;
                made.total = byToken(m_engine, made.outcome.scores.total, positions, request.cut.token);
                for (const auto& [name, part] : made.outcome.scores.parts)
                    made.parts[name] = byToken(m_engine, part, positions, request.cut.token);
            }
            made.outcome.scores = {};
            made.outcome.positions = {};
            const std::size_t bytes = made.bytes();
            return StageCache::Made<Chosen>{std::move(made), bytes};
        },
        &result.times.selectionFromCache);
    result.selection = chosen->outcome.selection;
    result.requested = chosen->outcome.requested;
    result.steps = chosen->outcome.steps;
    result.simulated = chosen->outcome.simulated;
    result.notes = chosen->outcome.notes;
    result.scores = oneShot ? scored->total : chosen->total;
    result.parts = oneShot ? scored->parts : chosen->parts;
    result.anchor = oneShot ? scored->anchor : HostTensor();
}

void LayerWork::choose(RunResult& result, const Checkpoint& checkpoint) const {
    assert(result.request.cut.token >= 1 && result.request.cut.token <= m_capture.info().numTokens);
    if (result.request.recorded)
        takeRecorded(result);
    else
        chooseByPolicy(result, checkpoint);
}

} // namespace kvscope
