#pragma once

#include "core/base/checkpoint.h"
#include "core/base/index.h"
#include "core/engine/arithmetic.h"
#include "core/engine/attention.h"
#include "core/engine/attention_chunks.h"
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
enum class PoolKind { Average, Max };

/// z = (x - mean) / std. z = 0 where the scores are constant up to float rounding (C3).
struct Standardisation {
    bool jointly = false;   ///< over all heads; else each head by itself
    std::int64_t chunk = 0; ///< statistics over so many rows at a time; 0: all rows
    bool sample = false;    ///< divide by count - 1 instead of count
    double floor = 0;       ///< std is raised to it
};

/// The primitives that policies, measures and views are made of. H heads are always computed at once. Contract of every
/// member: inputs are float, sums run in double, or with an error below 18 d 2^-48 of the magnitudes (pairs of floats
/// on GPUs that are slow at double, gpu/README.md), and are rounded to float once, results do not depend on thread
/// count or instruction set, long work calls the checkpoint. Shapes that do not fit are our bugs (assert). NaN in
/// scores is refused with Error.
class Engine {
public:
    virtual ~Engine() = default;

    virtual std::string name() const = 0;       ///< "cpu"
    virtual std::string arithmetic() const = 0; ///< "exact index contract" or "fast float, outside the index contract"
    virtual EngineState state() const { return {}; }

    virtual Tensor upload(HostTensor tensor) const = 0;
    virtual HostTensor download(const Tensor& tensor) const = 0;

    /// Rows [begin, end) of axis 1 of [H, n, d] or [H, n]; no copy on the CPU.
    virtual Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const = 0;
    /// Row lists of equal length m, one per head: [H, n, d] -> [H, m, d] and [H, n] -> [H, m].
    virtual Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const = 0;

    /// [H, n, d] -> [H, n] Euclidean norms.
    virtual Tensor rowNorms(const Tensor& keys, const Checkpoint& checkpoint) const = 0;
    /// [H, n, d] -> [H, d]. Zero keys contribute zero to the normalised mean. Median: coordinate-wise, of raw keys.
    virtual Tensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const = 0;
    /// [H, n, d], [H, d] -> [H, n]: cosine (0 for a zero vector), dot product or Euclidean distance.
    virtual Tensor similarity(const Tensor& keys, const Tensor& anchor, SimilarityMetric metric,
                              const Checkpoint& checkpoint) const = 0;
    /// [H, n, d] -> [H, n]: sum over all j of the metric between k_i and k_j, self term included. n^2 d work.
    virtual Tensor pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& checkpoint) const = 0;
    /// [Hq, m]: sum over the queries of softmax over the keys each may see (causal, sliding window).
    virtual Tensor attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const = 0;

    /// [Hq, n]: sum over the queries of each chunk of their softmax over its keys.
    virtual Tensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const = 0;
    /// See LeverageRequest. Row norms of an orthonormal basis of the columns of K; sums run in double throughout.
    virtual Leverage leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const = 0;
    /// [H] || (K^T K)^-1/2 S^T S (K^T K)^-1/2 - I ||_2 on the range of K [H, n, d], where the rows of S are the
    /// numerator rows of the kept set times the roots of their weights (Compactor Thm 1).
    virtual std::vector<double> spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                                   const Checkpoint& checkpoint) const = 0;

    /// [H, n] -> [H, n], centred window of odd width. Average: zero-padded with constant divisor; max: of what exists.
    virtual Tensor pool(const Tensor& scores, PoolKind kind, std::int64_t width) const = 0;
    /// [Hq, n] -> [Hkv, n] over the query heads of each KV head.
    virtual Tensor reduceGroups(const Tensor& scores, std::span<const std::int32_t> gqaGroupOf, std::int64_t numKvHeads,
                                GroupRule rule) const = 0;
    /// [H, n] -> [H, n]: factor * x (for signs of scores).
    virtual Tensor scale(const Tensor& scores, double factor) const = 0;
    /// [H, n] -> [H, n]
    virtual Tensor standardise(const Tensor& scores, const Standardisation& how) const = 0;
    /// a + weight b and a times b, entry by entry.
    virtual Tensor blend(const Tensor& a, const Tensor& b, double weight) const = 0;
    virtual Tensor multiply(const Tensor& a, const Tensor& b) const = 0;

    /// H results. Throws Error on NaN.
    virtual std::vector<TopKHead> topK(const TopKRequest& request) const = 0;

    /// [H, n, d] -> H runs; see GreedyCenters. Distances in double, not rounded.
    virtual std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                                     const Checkpoint& checkpoint) const = 0;
    /// [H, n, d], H radii >= 0 -> H clusterings of at most `most` clusters.
    virtual std::vector<StreamClusters> streamClusters(const Tensor& keys, std::span<const double> radii,
                                                       std::int64_t most, const Checkpoint& checkpoint) const = 0;

    virtual WeightedAttention weightedAttention(const WeightedAttentionInput& input,
                                                const Checkpoint& checkpoint) const = 0;
    /// A part of the attention map at screen resolution.
    virtual AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const = 0;

    /// [H, n, d] -> [H, d] descending, of the rows chosen[h] of each head (empty: all rows); 0 beyond min(rows, d).
    /// By the Gram matrix in double: values below about 1e-7 of the largest are rounding.
    virtual HostTensor singularValues(const Tensor& rows, const RowPositions& chosen,
                                      const Checkpoint& checkpoint) const = 0;
    /// [H, n, d] -> [H, count]: the largest singular value of rows [0, first + r + 1), for 0 <= r < count.
    virtual HostTensor prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                           const Checkpoint& checkpoint) const = 0;
    /// Independent walks, all at once; one result per walk. Signs and sums by the contract above. Throws Error on NaN.
    virtual std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input,
                                                       const Checkpoint& checkpoint) const = 0;
    /// [H, n, d] -> [H, n]: <k_i, (sum of the keys of i's block) / block>, blocks of `block` rows from row 0; the last
    /// block is divided by `block` too, as if padded with zeros.
    virtual Tensor blockMeanProducts(const Tensor& keys, std::int64_t block, const Checkpoint& checkpoint) const = 0;

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
