// Computes one row of the attention map for every head, and how much of it lies on tokens that the head does not keep.
#include "app/study/answer_attention.h"

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/run/attention_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

constexpr std::size_t kLargest = 8;

std::vector<AnswerAttention::Token> largestOf(const std::vector<double>& weights, const std::vector<double>& keptIn) {
    std::vector<TokenIndex> order(weights.size());
    std::iota(order.begin(), order.end(), 0);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kLargest, order.size()));
    std::ranges::partial_sort(order, order.begin() + count, [&](TokenIndex a, TokenIndex b) {
        const double wa = weights[static_cast<std::size_t>(a)], wb = weights[static_cast<std::size_t>(b)];
        return wa != wb ? wa > wb : a < b;
    });
    std::vector<AnswerAttention::Token> largest;
    for (auto token = order.begin(); token != order.begin() + count; ++token)
        largest.push_back(
            {*token, weights[static_cast<std::size_t>(*token)], keptIn[static_cast<std::size_t>(*token)]});
    return largest;
}

/// The row of one query and head over all keys; NaN for keys that the query does not see.
std::vector<float> rowOf(const Engine& engine, AttentionMapInput input, const LayerInfo& layer, std::int32_t head,
                         TokenIndex query, const Checkpoint& checkpoint) {
    input.rule = attentionRuleOf(layer);
    input.queryHeads = {head};
    input.rowBegin = query;
    input.rowEnd = query + 1;
    input.keyEnd = input.width = input.keys.size(1);
    return engine.attentionMap(input, checkpoint).cells.data;
}

} // namespace

AnswerAttention answerAttention(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture,
                                const Cut& cut, const std::optional<PaneRequest>& pane, TokenIndex query,
                                const Checkpoint& checkpoint) {
    const CaptureInfo& info = capture->info();
    AnswerAttention found{.query = query, .queryHeads = info.numQueryHeads, .heads = {}, .mean = {}};
    const auto seen = static_cast<std::size_t>(cut.token);
    std::vector<double> meanWeights(seen), meanKept(seen);
    std::optional<RunRequest> request;
    if (pane) request = resolvePane(*pane);
    std::size_t done = 0;
    for (const LayerInfo& layer : info.layers) {
        const Checkpoint part = checkpoint.step(done++, info.layers.size());
        const auto firstQuery = static_cast<TokenIndex>(info.numTokens - layer.queryCount);
        if (query < firstQuery)
            throw Error({fmt::format("layer {} has no query of token {}", layer.layer.value, query)});
        std::shared_ptr<const RunResult> result;
        if (request) {
            request->layer = layer.layer;
            request->measure = false;
            result = runner.run(*request, part.part(0, 0.5));
        }
        AttentionMapInput input;
        input.firstQuery = firstQuery;
        input.queries = runner.tensor(capture, layer.layer, TensorRole::Queries, part.silent());
        input.keys = runner.tensor(capture, layer.layer, TensorRole::Keys, part.silent());
        for (std::int32_t head = 0; head < info.numQueryHeads; ++head) {
            const std::vector<float> row = rowOf(runner.engine(), input, layer, head, query, part.silent());
            std::vector<double> weights(seen), kept(seen, result ? 0.0 : 1.0);
            for (std::size_t i = 0; i < seen; ++i) weights[i] = std::isnan(row[i]) ? 0 : row[i];
            if (result) {
                const auto group = static_cast<std::size_t>(layer.gqaGroupOf[static_cast<std::size_t>(head)]);
                for (const TokenIndex token : result->selection.heads[group].attendedBy(head))
                    if (static_cast<std::size_t>(token) < seen) kept[static_cast<std::size_t>(token)] = 1;
            }
            double evicted = 0;
            for (std::size_t i = 0; i < seen; ++i) {
                evicted += weights[i] * (1 - kept[i]);
                meanWeights[i] += weights[i];
                meanKept[i] += kept[i];
            }
            found.heads.push_back({layer.layer, QueryHeadIndex(head), evicted, largestOf(weights, kept)});
            found.mean.evicted += evicted;
        }
        part.at(1, 1);
    }
    const auto heads = static_cast<double>(found.heads.size());
    for (std::vector<double>* sums : {&meanWeights, &meanKept})
        for (double& sum : *sums) sum /= heads;
    found.mean.evicted /= heads;
    found.mean.largest = largestOf(meanWeights, meanKept);
    return found;
}

} // namespace kvscope
