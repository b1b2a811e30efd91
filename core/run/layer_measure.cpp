// The measuring step: the evaluation queries attend once to all tokens and once to the kept ones. With cut "none" there
// are no queries after the cut; the last queries are used although the policy has seen them.
#include "core/lists/selection_file.h"
#include "core/metrics/measures.h"
#include "core/policies/common_parameters.h"
#include "core/run/attention_rule.h"
#include "core/run/cache_positions.h"
#include "core/run/layer_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kvscope {

namespace {

constexpr std::int64_t kSeenQueries = 256; // used with cut "none", as many as in BalanceKV B.1

/// The evaluation queries as rows of the captured queries.
struct EvaluationQueries {
    std::int64_t firstRow = 0, count = 0;
    TokenIndex firstQuery = 0;
    std::int64_t wanted = 0; ///< number of queries if all had been captured
};

EvaluationQueries evaluationQueriesOf(const Cut& cut, std::int64_t tokens, std::int64_t captured) {
    const std::int64_t firstCaptured = tokens - captured;
    const std::int64_t wantedFirst = cut.evaluatedOnSeen ? std::max<std::int64_t>(0, tokens - kSeenQueries) : cut.token;
    const std::int64_t first = std::max(wantedFirst, firstCaptured);
    return {first - firstCaptured, tokens - first, static_cast<TokenIndex>(first), tokens - wantedFirst};
}

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

} // namespace

bool hasCachePositions(const RunRequest& request) {
    if (!request.recorded) return reassignsPositions(request.policy.values);
    const auto& parameters = request.recorded->parameters;
    return std::ranges::find(parameters, std::pair<std::string, std::string>("positions", "rerotated")) !=
           parameters.end();
}

FidelityInput LayerWork::left(FidelityInput input, const RunResult& result, const Checkpoint& checkpoint) const {
    if (hasCachePositions(result.request))
        input.moved = moveIntoCache(m_engine, input, result.selection, m_capture, m_layer, checkpoint);
    return input;
}

FidelityInput LayerWork::fidelityInput(RunResult& result, const Checkpoint& checkpoint) const {
    const Cut& cut = result.request.cut;
    const EvaluationQueries evaluation = evaluationQueriesOf(cut, m_capture.info().numTokens, m_layer.queryCount);
    if (evaluation.count <= 0) {
        result.notes.push_back("not measured: the capture holds no queries; capture them to measure a selection");
        return {};
    }
    if (cut.evaluatedOnSeen && hasCachePositions(result.request)) {
        result.notes.push_back(
            "not measured: positions are re-assigned after the cut, and cut none leaves no query there; "
            "choose another cut or positions=kept");
        return {};
    }
    if (evaluation.count < evaluation.wanted)
        result.notes.push_back(
            fmt::format("measured on the last {} of {} queries after the cut: the capture holds no others",
                        evaluation.count, evaluation.wanted));
    double& readMs = result.times.readMs;
    FidelityInput input;
    input.queries = m_engine.rows(tensor(TensorRole::Queries, checkpoint, &readMs), evaluation.firstRow,
                                  evaluation.firstRow + evaluation.count);
    input.keys = tensor(TensorRole::Keys, checkpoint, &readMs);
    input.values = tensor(TensorRole::Values, checkpoint, &readMs);
    input.firstQuery = evaluation.firstQuery;
    input.cut = cut.token;
    input.seenQueries = cut.evaluatedOnSeen;
    input.rule = attentionRuleOf(m_layer);
    return input;
}

std::shared_ptr<const ExactAttention> LayerWork::exact(const FidelityInput& input, const Checkpoint& checkpoint) const {
    const std::string key = fmt::format("{}exact|{}|{}", m_prefix, input.cut, input.seenQueries);
    return m_cache.get<ExactAttention>(key, checkpoint, [&] {
        ExactAttention all = exactAttention(m_engine, input, checkpoint);
        const std::size_t bytes = bytesOf(all.output.shape()) + 2 * bytesOf(all.logDenominator.shape);
        return StageCache::Made<ExactAttention>{std::move(all), bytes};
    });
}

std::vector<MeasureValues> LayerWork::measures(const RunResult& result, std::span<const std::string> ids,
                                               const Checkpoint& checkpoint) const {
    const Fidelity& fidelity = requireFidelity(result);
    RunResult scratch; // holds the notes and times that `result` already has
    scratch.request = result.request;
    const FidelityInput input = left(fidelityInput(scratch, checkpoint.silent()), result, checkpoint.silent());
    const auto cached = exact(input, checkpoint.part(0, 0.3));
    const WeightedAttention all{m_engine.download(cached->output), cached->logDenominator, cached->logNorm, {}};
    const std::vector<WeightedSet> kept = weightedSetsOf(result.selection, m_layer.gqaGroupOf);
    const auto anyNeeds = [&](MeasureNeed need) {
        return std::ranges::any_of(ids, [&](const std::string& id) { return measureById(id).need == need; });
    };
    HostTensor projection;
    if (anyNeeds(MeasureNeed::OutputProjection) && m_layer.hasOutputProjection)
        projection = m_capture.read(m_layer.layer, TensorRole::OutputProjection, checkpoint.silent());
    Tensor preRopeKeys;
    if (anyNeeds(MeasureNeed::PreRopeKeys)) preRopeKeys = tensor(TensorRole::KeysPreRope, checkpoint.silent());
    return measureLayer({m_engine, input, all, fidelity, kept,
                         result.queryHeadScores.empty() ? result.scores : result.queryHeadScores, projection,
                         preRopeKeys, tensor(TensorRole::Queries, checkpoint.silent())},
                        ids, checkpoint.part(0.3, 1));
}

void LayerWork::measure(RunResult& result, const Checkpoint& checkpoint) const {
    const RunRequest& request = result.request;
    const FidelityInput input = fidelityInput(result, checkpoint);
    if (input.queries.empty()) return;
    const auto make = [&] {
        auto made = timed([&] {
            const auto all = exact(input, checkpoint.part(0, 0.5));
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
