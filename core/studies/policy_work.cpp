// Counts a policy's operations by running it once more with an empty cache, so that the count does not depend on
// earlier runs. The counts follow from the arguments of its primitives and are the same on every machine, so that
// policies are compared by their arithmetic and not by their implementation.
#include "core/studies/policy_work.h"

#include "core/engine/forwarding_engine.h"

#include <algorithm>
#include <cmath>
#include <mutex>

namespace kvscope {

namespace {

constexpr double kPerLogit = 3; // of a softmax beside the product: exponential, sum, normalisation

double numbersOf(const Tensor& tensor) { return static_cast<double>(tensor.shape().count()); }

/// Number of (query head, query, key) triples that causality and the sliding window leave visible.
double visiblePairs(const AttentionInput& input) {
    double pairs = 0;
    for (std::int64_t query = 0; query < input.queries.size(1); ++query) {
        const std::int64_t position = input.firstQuery + query;
        const std::int64_t first =
            input.rule.slidingWindow > 0 ? std::max<std::int64_t>(0, position + 1 - input.rule.slidingWindow) : 0;
        for (const std::int32_t kvHead : input.rule.gqaGroupOf) {
            if (input.keyPositions.empty()) {
                pairs +=
                    static_cast<double>(std::max<std::int64_t>(0, std::min(position + 1, input.keys.size(1)) - first));
                continue;
            }
            const auto& rows = input.keyPositions[kvHead];
            pairs +=
                static_cast<double>(std::ranges::upper_bound(rows, position) - std::ranges::lower_bound(rows, first));
        }
    }
    return pairs;
}

/// Sum of the squares of the chunks' lengths.
double chunkPairs(std::int64_t rows, std::int64_t chunk) {
    const auto whole = static_cast<double>(rows / chunk), last = static_cast<double>(rows % chunk);
    return whole * static_cast<double>(chunk) * static_cast<double>(chunk) + last * last;
}

/// Counts attention over visible pairs only, half of a symmetric kernel, and cubic terms of factorisations with their
/// leading constant.
class CountedEngine final : public ForwardingEngine {
public:
    using ForwardingEngine::ForwardingEngine;

    Work total() const {
        const std::lock_guard lock(m_mutex);
        return m_total;
    }

    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override {
        Tensor gathered = ForwardingEngine::gatherRows(tensor, rows);
        count(0, 2 * numbersOf(gathered));
        return gathered;
    }

    HostTensor rowNorms(const Tensor& keys, const Checkpoint& c) const override {
        const auto rows = static_cast<double>(keys.size(0) * keys.size(1));
        count(2 * numbersOf(keys) + rows, numbersOf(keys) + rows);
        return ForwardingEngine::rowNorms(keys, c);
    }

    HostTensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& c) const override {
        const double numbers = numbersOf(keys),
                     logarithm = std::log2(std::max<double>(2, static_cast<double>(keys.size(1))));
        count(kind == AnchorKind::Mean     ? numbers
              : kind == AnchorKind::Median ? numbers * logarithm
                                           : 4 * numbers,
              numbers);
        return ForwardingEngine::anchor(keys, kind, c);
    }

    HostTensor similarity(const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric,
                          const Checkpoint& c) const override {
        const double numbers = numbersOf(keys), rows = numbers / static_cast<double>(keys.size(2));
        const double each = metric == SimilarityMetric::Cosine ? 4 : metric == SimilarityMetric::Dot ? 2 : 3;
        count(each * numbers + rows, numbers + rows);
        return ForwardingEngine::similarity(keys, anchor, metric, c);
    }

    HostTensor pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& c) const override {
        const auto n = static_cast<double>(keys.size(1));
        count((metric == SimilarityMetric::Euclidean ? 3 : 2) * numbersOf(keys) * n,
              numbersOf(keys) + n * static_cast<double>(keys.size(0)));
        return ForwardingEngine::pairwiseSums(keys, metric, c);
    }

    HostTensor attentionColumnSums(const AttentionInput& input, const Checkpoint& c) const override {
        count(visiblePairs(input) * (2 * static_cast<double>(input.keys.size(2)) + kPerLogit),
              numbersOf(input.queries) + numbersOf(input.keys) +
                  static_cast<double>(input.queries.size(0) * input.keys.size(1)));
        return ForwardingEngine::attentionColumnSums(input, c);
    }

    HostTensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& c) const override {
        const double pairs = static_cast<double>(input.queries.size(0)) * chunkPairs(input.keys.size(1), input.chunk);
        count(pairs * (2 * static_cast<double>(input.keys.size(2)) + kPerLogit),
              numbersOf(input.queries) + numbersOf(input.keys) +
                  static_cast<double>(input.queries.size(0) * input.keys.size(1)));
        return ForwardingEngine::attentionChunkSums(input, c);
    }

    // 2ndk for the sketch, 2nk^2 for the Gram matrix or the triangular factor, its factorisation, 2nk^2 for the scores.
    Leverage leverage(const LeverageRequest& request, const Checkpoint& c) const override {
        const auto heads = static_cast<double>(request.rows.size(0)), n = static_cast<double>(request.rows.size(1));
        const auto d = static_cast<double>(request.rows.size(2));
        const bool sketched = !request.sketch.empty();
        const double k = sketched ? static_cast<double>(request.sketch.shape[2]) : d;
        const double chunks = request.chunk > 0 ? std::ceil(n / static_cast<double>(request.chunk)) : 1;
        const double factor = request.route == LeverageRoute::Cholesky ? k * k * k / 3 : 10 * k * k * k;
        count(heads * ((sketched ? 2 * n * d * k : 0) + (request.centred ? 2 * n * k : 0) + 4 * n * k * k +
                       chunks * factor),
              numbersOf(request.rows) + heads * n);
        return ForwardingEngine::leverage(request, c);
    }

    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                             const Checkpoint& c) const override {
        const double known = request.known.empty() ? 0 : static_cast<double>(request.known.front().order.size());
        const double fresh = std::max(0.0, static_cast<double>(request.count) - known);
        count(3 * numbersOf(keys) * fresh, numbersOf(keys));
        return ForwardingEngine::greedyCenters(keys, request, c);
    }

    std::vector<StreamClusters> streamClusters(const Tensor& keys, std::span<const double> radii, std::int64_t most,
                                               const Checkpoint& c) const override {
        std::vector<StreamClusters> made = ForwardingEngine::streamClusters(keys, radii, most, c);
        double compared = 0; // comparisons of a row with every earlier representative
        for (const StreamClusters& clusters : made)
            for (std::size_t i = 0; i < clusters.representatives.size(); ++i)
                compared += static_cast<double>(std::ssize(clusters.cluster) - clusters.representatives[i]);
        count(3 * compared * static_cast<double>(keys.size(2)), numbersOf(keys));
        return made;
    }

    // M is symmetric: each pair of rows once, then an axpy of the running vector per step.
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input, const Checkpoint& c) const override {
        const double width = static_cast<double>(input.keys.size(2)) +
                             (input.values.empty() ? 0 : static_cast<double>(input.values.size(2)));
        double operations = 0, rows = 0;
        for (const BalancingWalk& walk : input.walks) {
            const auto m = static_cast<double>(walk.rows.size());
            operations += m * m / 2 * (2 * width + kPerLogit) + m * m;
            rows += m;
        }
        count(operations, rows * width);
        return ForwardingEngine::balancingWalks(input, c);
    }

private:
    void count(double operations, double numbers) const {
        const std::lock_guard lock(m_mutex);
        m_total.operations += operations;
        m_total.bytes += 4 * numbers;
    }

    mutable std::mutex m_mutex;
    mutable Work m_total;
};

} // namespace

Work policyWork(const LayerRunner& runner, const RunRequest& request, const Checkpoint& checkpoint) {
    if (request.recorded) return {};
    const auto counted = std::make_shared<const CountedEngine>(runner.engine());
    RunRequest choice = request;
    choice.measure = false;
    choice.recordSteps = false;
    LayerRunner(counted).run(choice, checkpoint);
    return counted->total();
}

} // namespace kvscope
