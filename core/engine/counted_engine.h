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
/// of measures and views, moves between host and engine, and what a policy does on the host (arithmetic on score
/// tables, which are d times smaller, and the choice) are not counted.
class CountedEngine final : public ForwardingEngine {
public:
    using ForwardingEngine::ForwardingEngine;

    Work total() const;

    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override;
    HostTensor rowNorms(const Tensor& keys, const Checkpoint& c) const override;
    HostTensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& c) const override;
    HostTensor similarity(const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric,
                          const Checkpoint& c) const override;
    HostTensor pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& c) const override;
    HostTensor attentionColumnSums(const AttentionInput& input, const Checkpoint& c) const override;
    HostTensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& c) const override;
    Leverage leverage(const LeverageRequest& request, const Checkpoint& c) const override;
    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                             const Checkpoint& c) const override;
    std::vector<StreamClusters> streamClusters(const Tensor& keys, std::span<const double> radii, std::int64_t most,
                                               const Checkpoint& c) const override;
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input, const Checkpoint& c) const override;

private:
    void count(double operations, double numbers) const;

    mutable std::mutex m_mutex;
    mutable Work m_total;
};

} // namespace kvscope
