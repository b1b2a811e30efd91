#pragma once

#include "core/engine/engine.h"

#include <utility>

namespace kvscope {

/// Hands every primitive to another engine, which must outlive it. Engines that watch another one derive from it and
/// override what they watch; `to` is asked with the name of every primitive. Base is Engine or an interface derived
/// from it.
template <class Base> class BasicForwardingEngine : public Base {
public:
    explicit BasicForwardingEngine(const Engine& engine) : m_engine(engine) {}

    std::string name() const override { return m_engine.name(); }
    std::string arithmetic() const override { return m_engine.arithmetic(); }
    EngineState state() const override { return m_engine.state(); }
    Tensor upload(HostTensor tensor) const override { return to("upload").upload(std::move(tensor)); }
    HostTensor download(const Tensor& tensor) const override { return to("download").download(tensor); }
    Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const override {
        return to("rows").rows(tensor, begin, end);
    }
    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override {
        return to("gatherRows").gatherRows(tensor, rows);
    }
    Tensor rowNorms(const Tensor& keys, const Checkpoint& c) const override { return to("rowNorms").rowNorms(keys, c); }
    Tensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& c) const override {
        return to("anchor").anchor(keys, kind, c);
    }
    Tensor similarity(const Tensor& keys, const Tensor& anchor, SimilarityMetric metric,
                      const Checkpoint& c) const override {
        return to("similarity").similarity(keys, anchor, metric, c);
    }
    Tensor pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& c) const override {
        return to("pairwiseSums").pairwiseSums(keys, metric, c);
    }
    Tensor attentionColumnSums(const AttentionInput& input, const Checkpoint& c) const override {
        return to("attentionColumnSums").attentionColumnSums(input, c);
    }
    Tensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& c) const override {
        return to("attentionChunkSums").attentionChunkSums(input, c);
    }
    Leverage leverage(const LeverageRequest& request, const Checkpoint& c) const override {
        return to("leverage").leverage(request, c);
    }
    std::vector<double> spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                           const Checkpoint& c) const override {
        return to("spectralDistortion").spectralDistortion(rows, kept, c);
    }
    Tensor pool(const Tensor& scores, PoolKind kind, std::int64_t width) const override {
        return to("pool").pool(scores, kind, width);
    }
    Tensor reduceGroups(const Tensor& scores, std::span<const std::int32_t> gqaGroupOf, std::int64_t heads,
                        GroupRule rule) const override {
        return to("reduceGroups").reduceGroups(scores, gqaGroupOf, heads, rule);
    }
    Tensor scale(const Tensor& scores, double factor) const override { return to("scale").scale(scores, factor); }
    Tensor standardise(const Tensor& scores, const Standardisation& how) const override {
        return to("standardise").standardise(scores, how);
    }
    Tensor blend(const Tensor& a, const Tensor& b, double weight) const override {
        return to("blend").blend(a, b, weight);
    }
    Tensor multiply(const Tensor& a, const Tensor& b) const override { return to("multiply").multiply(a, b); }
    std::vector<TopKHead> topK(const TopKRequest& request) const override { return to("topK").topK(request); }
    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                             const Checkpoint& c) const override {
        return to("greedyCenters").greedyCenters(keys, request, c);
    }
    std::vector<StreamClusters> streamClusters(const Tensor& keys, std::span<const double> radii, std::int64_t most,
                                               const Checkpoint& c) const override {
        return to("streamClusters").streamClusters(keys, radii, most, c);
    }
    WeightedAttention weightedAttention(const WeightedAttentionInput& input, const Checkpoint& c) const override {
        return to(input.kept.empty() ? "exact attention" : "kept attention").weightedAttention(input, c);
    }
    AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& c) const override {
        return to("attentionMap").attentionMap(input, c);
    }
    HostTensor singularValues(const Tensor& rows, const RowPositions& chosen, const Checkpoint& c) const override {
        return to("singularValues").singularValues(rows, chosen, c);
    }
    HostTensor prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                   const Checkpoint& c) const override {
        return to("prefixOperatorNorms").prefixOperatorNorms(rows, first, count, c);
    }
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input, const Checkpoint& c) const override {
        return to("balancingWalks").balancingWalks(input, c);
    }
    Tensor blockMeanProducts(const Tensor& keys, std::int64_t block, const Checkpoint& c) const override {
        return to("blockMeanProducts").blockMeanProducts(keys, block, c);
    }
    PrincipalAxes principalAxes(const Tensor& keys, std::int64_t head, int components,
                                const Checkpoint& c) const override {
        return to("principalAxes").principalAxes(keys, head, components, c);
    }
    HostTensor project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const override {
        return to("project").project(keys, head, axes);
    }

protected:
    virtual const Engine& to(const char* primitive) const { return (void)primitive, m_engine; }

private:
    const Engine& m_engine;
};

using ForwardingEngine = BasicForwardingEngine<Engine>;

} // namespace kvscope
