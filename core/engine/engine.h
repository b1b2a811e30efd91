#pragma once

#include "core/base/checkpoint.h"
#include "core/base/index.h"
#include "core/base/row_source.h"
#include "core/engine/arithmetic.h"
#include "core/engine/attention.h"
#include "core/engine/attention_map.h"
#include "core/engine/balancing_walk.h"
#include "core/engine/clusters.h"
#include "core/engine/engine_state.h"
#include "core/engine/leverage.h"
#include "core/engine/requests.h"
#include "core/engine/tensor.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kvscope {

enum class AnchorKind { Mean, NormalisedMean, Median };
enum class SimilarityMetric { Cosine, Dot, Euclidean };

/// The primitives that policies, measures and views are made of. H heads are always computed at once. Contract of every
/// primitive: inputs are float, or 16 bits that floats hold exactly; sums run in double and are rounded to float once;
/// results do not depend on thread count or instruction set and are in host memory; long work calls the checkpoint.
/// Shapes that do not fit are our bugs (assert). Arithmetic on the resulting score tables [H, n] is in
/// core/engine/score_arithmetic.h.
///
/// A new primitive is added here, in cpu/cpu_engine.h, in a file of cpu/, as one line of forwarding_engine.h, and as a
/// case of tests/bench/engine_check. Engines on a device leave it to the CPU until they have code for it.
class Engine {
public:
    virtual ~Engine() = default;

    virtual std::string name() const = 0;       ///< "cpu"
    virtual std::string arithmetic() const = 0; ///< "exact index contract" or "fast float, outside the index contract"
    virtual EngineState state() const { return {}; }

    virtual Tensor upload(HostTensor tensor) const = 0;
    /// A tensor whose rows are read when they are needed, if the engine can do that; else all rows are read now.
    virtual Tensor onDemand(std::shared_ptr<const RowSource> source) const { return upload(readAll(*source)); }
    virtual HostTensor download(const Tensor& tensor) const = 0;

    /// Rows [begin, end) of [H, n, d], shared: no copy.
    virtual Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const = 0;
    /// Row lists of equal length m, one per head: [H, n, d] -> [H, m, d].
    virtual Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const = 0;

    /// [H, n, d] -> [H, n] Euclidean norms ||k_i||.
    virtual HostTensor rowNorms(const Tensor& keys, const Checkpoint& checkpoint) const = 0;
    /// [H, n, d] -> [H, d], n >= 1: the mean of k_i, the mean of k_i / ||k_i|| (zero keys contribute zero; KeyDiff Eq.
    /// 8), or the median of each coordinate of the raw keys.
    virtual HostTensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const = 0;
    /// [H, n, d], [H, d] -> [H, n]: cos(k_i, a) = <k_i, a> / (||k_i|| ||a||) (0 for a zero vector), <k_i, a>, or
    /// ||k_i - a||.
    virtual HostTensor similarity(const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric,
                                  const Checkpoint& checkpoint) const = 0;
    /// [H, n, d] -> [H, n]: sum over all j of the metric between k_i and k_j, self term included (KeyDiff Eq. 7). n^2 d
    /// work.
    virtual HostTensor pairwiseSums(const Tensor& keys, SimilarityMetric metric,
                                    const Checkpoint& checkpoint) const = 0;
    /// [Hq, m] accumulated attention: sum over the queries i of p_ij, see AttentionInput (H2O Algorithm 1, SnapKV 4).
    virtual HostTensor attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const = 0;
    /// [Hq, n]: sum over the queries of a key's chunk of their softmax over the chunk's keys (Compactor 3.3).
    virtual HostTensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const = 0;
    /// Leverage scores l_i = k_i^T (K^T K)^+ k_i, see LeverageRequest (Compactor 3.1). Sums run in double throughout.
    /// Throws Error where K^T K cannot be factorised.
    virtual Leverage leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const = 0;
    /// [H] || (K^T K)^-1/2 S^T S (K^T K)^-1/2 - I ||_2 on the range of K [H, n, d], where the rows of S are the
    /// numerator rows of the kept set times the roots of their weights (Compactor Thm 1).
    virtual std::vector<double> spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                                   const Checkpoint& checkpoint) const = 0;

    /// [H, n, d] -> H runs of farthest-first traversal, see GreedyCenters. Distances in double, not rounded. Throws
    /// Error on keys that are not finite.
    virtual std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                                     const Checkpoint& checkpoint) const = 0;
    /// [H, n, d], H radii >= 0 -> H clusterings of at most `most` clusters, see StreamClusters. Throws Error on keys
    /// that are not finite.
    virtual std::vector<StreamClusters> streamClusters(const Tensor& keys, std::span<const double> radii,
                                                       std::int64_t most, const Checkpoint& checkpoint) const = 0;

    /// Attention output of a weighted sample of the cache, see WeightedAttentionInput.
    virtual WeightedAttention weightedAttention(const WeightedAttentionInput& input,
                                                const Checkpoint& checkpoint) const = 0;
    /// A part of the attention map at screen resolution.
    virtual AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const = 0;

    /// [H, n, d] -> [H, d] descending, of the rows chosen[h] of each head (empty: all rows); 0 beyond min(rows, d).
    /// Roots of the eigenvalues of K^T K in double: values below about 1e-7 of the largest are rounding.
    virtual HostTensor singularValues(const Tensor& rows, const RowPositions& chosen,
                                      const Checkpoint& checkpoint) const = 0;
    /// [H, n, d] -> [H, count]: ||V_r||_2, the largest singular value of rows [0, first + r + 1), for 0 <= r < count.
    virtual HostTensor prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                           const Checkpoint& checkpoint) const = 0;
    /// Independent walks, all at once; one result per walk (BalanceKV Algorithm 2). Signs and sums by the contract
    /// above. Throws Error on NaN.
    virtual std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input,
                                                       const Checkpoint& checkpoint) const = 0;

    /// Principal axes of the rows of one head of [H, n, d].
    virtual PrincipalAxes principalAxes(const Tensor& keys, std::int64_t head, int components,
                                        const Checkpoint& checkpoint) const = 0;
    /// (rows of one head of [H, n, d] - mean) times axes -> [n, components].
    virtual HostTensor project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const = 0;
};

/// The CPU engine. `threads` 0: all cores. `instructionSet` "" picks the best, else "v2", "v3" or "v4" (tests).
std::unique_ptr<Engine> makeCpuEngine(int threads = 0, const std::string& instructionSet = {},
                                      Arithmetic arithmetic = Arithmetic::Exact);

} // namespace kvscope
