#pragma once

#include "core/engine/engine.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kvscope {

/// The CPU engine, counting how often each primitive that touches all tokens is called.
class CountingEngine final : public Engine {
public:
    explicit CountingEngine(int threads = 0) : m_engine(makeCpuEngine(threads)) {}

    int count(const std::string& primitive) const {
        const std::lock_guard lock(m_mutex);
        const auto at = m_counts.find(primitive);
        return at == m_counts.end() ? 0 : at->second;
    }

    std::string name() const override { return m_engine->name(); }
    std::string arithmetic() const override { return m_engine->arithmetic(); }
    Tensor upload(HostTensor tensor) const override { return m_engine->upload(std::move(tensor)); }
    HostTensor download(const Tensor& tensor) const override { return m_engine->download(tensor); }
    Tensor rows(const Tensor& t, std::int64_t begin, std::int64_t end) const override {
        return m_engine->rows(t, begin, end);
    }
    Tensor gatherRows(const Tensor& t, const RowPositions& rows) const override {
        return m_engine->gatherRows(t, rows);
    }
    Tensor rowNorms(const Tensor& keys, const Checkpoint& c) const override {
        return counted("rowNorms").rowNorms(keys, c);
    }
    Tensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& c) const override {
        return counted("anchor").anchor(keys, kind, c);
    }
    Tensor similarity(const Tensor& keys, const Tensor& anchor, SimilarityMetric metric,
                      const Checkpoint& c) const override {
        return counted("similarity").similarity(keys, anchor, metric, c);
    }
    Tensor pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& c) const override {
        return counted("pairwiseSums").pairwiseSums(keys, metric, c);
    }
    Tensor attentionColumnSums(const AttentionInput& input, const Checkpoint& c) const override {
        return counted("attentionColumnSums").attentionColumnSums(input, c);
    }
    Tensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& c) const override {
        return counted("attentionChunkSums").attentionChunkSums(input, c);
    }
    Leverage leverage(const LeverageRequest& request, const Checkpoint& c) const override {
        return counted("leverage").leverage(request, c);
    }
    std::vector<double> spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                           const Checkpoint& c) const override {
        return counted("spectralDistortion").spectralDistortion(rows, kept, c);
    }
    Tensor standardise(const Tensor& scores, const Standardisation& how) const override {
        return m_engine->standardise(scores, how);
    }
    Tensor blend(const Tensor& a, const Tensor& b, double weight) const override {
        return m_engine->blend(a, b, weight);
    }
    Tensor multiply(const Tensor& a, const Tensor& b) const override { return m_engine->multiply(a, b); }
    Tensor pool(const Tensor& scores, PoolKind kind, std::int64_t width) const override {
        return counted("pool").pool(scores, kind, width);
    }
    Tensor reduceGroups(const Tensor& scores, std::span<const std::int32_t> kvOfQ, std::int64_t heads,
                        GroupRule rule) const override {
        return m_engine->reduceGroups(scores, kvOfQ, heads, rule);
    }
    Tensor scale(const Tensor& scores, double factor) const override { return m_engine->scale(scores, factor); }
    std::vector<TopKHead> topK(const TopKRequest& request) const override { return counted("topK").topK(request); }
    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                             const Checkpoint& c) const override {
        return counted("greedyCenters").greedyCenters(keys, request, c);
    }
    std::vector<StreamClusters> streamClusters(const Tensor& keys, std::span<const double> radii, std::int64_t most,
                                               const Checkpoint& c) const override {
        return counted("streamClusters").streamClusters(keys, radii, most, c);
    }
    AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& c) const override {
        return counted("attentionMap").attentionMap(input, c);
    }
    WeightedAttention weightedAttention(const WeightedAttentionInput& input, const Checkpoint& c) const override {
        return counted(input.kept.empty() ? "exact attention" : "kept attention").weightedAttention(input, c);
    }
    HostTensor singularValues(const Tensor& rows, const RowPositions& chosen, const Checkpoint& c) const override {
        return counted("singularValues").singularValues(rows, chosen, c);
    }
    HostTensor prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                   const Checkpoint& c) const override {
        return counted("prefixOperatorNorms").prefixOperatorNorms(rows, first, count, c);
    }
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input, const Checkpoint& c) const override {
        return counted("balancingWalks").balancingWalks(input, c);
    }
    Tensor blockMeanProducts(const Tensor& keys, std::int64_t block, const Checkpoint& c) const override {
        return counted("blockMeanProducts").blockMeanProducts(keys, block, c);
    }
    PrincipalAxes principalAxes(const Tensor& keys, std::int64_t head, int components,
                                const Checkpoint& c) const override {
        return m_engine->principalAxes(keys, head, components, c);
    }
    HostTensor project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const override {
        return m_engine->project(keys, head, axes);
    }

private:
    const Engine& counted(const std::string& primitive) const {
        const std::lock_guard lock(m_mutex);
        ++m_counts[primitive];
        return *m_engine;
    }

    std::unique_ptr<Engine> m_engine;
    mutable std::mutex m_mutex;
    mutable std::map<std::string, int> m_counts;
};

} // namespace kvscope
