#pragma once

#include "core/engine/forwarding_engine.h"

#include <mutex>

namespace kvscope {

/// Cost of a computation by its formulas, independent of the machine.
struct Work {
    double operations = 0; ///< additions, multiplications, divisions, roots, exponentials and comparisons, one each
    double bytes = 0;      ///< tensors read and written once per primitive, float

    Work& operator+=(const Work& other);
    friend Work operator-(const Work& a, const Work& b) { return {a.operations - b.operations, a.bytes - b.bytes}; }
};

/// Counts the work of the primitives that policies are made of (the costs that their sources state): attention over
/// visible pairs only, symmetric kernels by half, cubic terms of factorisations with their leading constant. Primitives
/// of measures and views, moves between host and engine, and what a policy does on the host are not counted.
class CountedEngine final : public ForwardingEngine {
public:
    using ForwardingEngine::ForwardingEngine;

    Work total() const;

    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override;
    Tensor rowNorms(const Tensor& keys, const Checkpoint& c) const override;
    Tensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& c) const override;
    Tensor similarity(const Tensor& keys, const Tensor& anchor, SimilarityMetric metric,
                      const Checkpoint& c) const override;
    Tensor pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& c) const override;
    Tensor attentionColumnSums(const AttentionInput& input, const Checkpoint& c) const override;
    Tensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& c) const override;
    Leverage leverage(const LeverageRequest& request, const Checkpoint& c) const override;
    Tensor pool(const Tensor& scores, PoolKind kind, std::int64_t width) const override;
    Tensor reduceGroups(const Tensor& scores, std::span<const std::int32_t> gqaGroupOf, std::int64_t heads,
                        GroupRule rule) const override;
    Tensor scale(const Tensor& scores, double factor) const override;
    Tensor standardise(const Tensor& scores, const Standardisation& how) const override;
    Tensor blend(const Tensor& a, const Tensor& b, double weight) const override;
    Tensor multiply(const Tensor& a, const Tensor& b) const override;
    std::vector<TopKHead> topK(const TopKRequest& request) const override;
    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                             const Checkpoint& c) const override;
    std::vector<StreamClusters> streamClusters(const Tensor& keys, std::span<const double> radii, std::int64_t most,
                                               const Checkpoint& c) const override;
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input, const Checkpoint& c) const override;
    Tensor blockMeanProducts(const Tensor& keys, std::int64_t block, const Checkpoint& c) const override;

private:
    void count(double operations, double numbers) const;

    mutable std::mutex m_mutex;
    mutable Work m_total;
};

} // namespace kvscope
