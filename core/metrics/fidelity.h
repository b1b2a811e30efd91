#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/requests.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kvscope {

class Engine;

/// Fidelity of the attention output of one layer, over the evaluation queries.
struct Fidelity {
    TokenIndex firstQuery = 0; ///< queries [firstQuery, firstQuery + queryCount) were used
    std::int64_t queryCount = 0;
    bool seenQueries = false; ///< cut "none": the queries were visible to the policy
    HostTensor outputError;   ///< [Hq, w] ||z - a|| / ||a||, NaN where skipped
    /// [Hq, w] mass m of the causal attention on kept tokens, on [cut, j] and on an attention sink, from which z is
    /// computed, so that ||z - a|| = (1 - m) ||output over the evicted tokens - z|| without weights or moved positions.
    /// 0 where a query sees no token that is left.
    HostTensor retainedMass;
    std::vector<double> meanOutputError;  ///< [Hq] over the queries that are not NaN; NaN if there are none
    std::vector<double> meanRetainedMass; ///< [Hq]
    std::int64_t skipped = 0;             ///< (query head, query) pairs with ||a|| < 1e-12 or a denominator of 0
};

/// A layer with re-assigned positions (L6): the rows of the cache and everything after the cut at consecutive
/// positions, with keys and queries rotated to them.
struct MovedCache {
    Tensor queries;                ///< [Hq, w, d]
    Tensor keys, values;           ///< [Hkv, cut + (n - the layer's cut), d]
    TokenIndex firstQuery = 0;     ///< row of the first query
    TokenIndex cut = 0;            ///< rows of the cache
    std::vector<WeightedSet> kept; ///< [Hkv] rows in [0, cut)
};

struct FidelityInput {
    Tensor queries; ///< [Hq, w, d] the evaluation queries only
    Tensor keys, values;
    TokenIndex firstQuery = 0, cut = 0;
    bool seenQueries = false;
    AttentionRule rule;
    std::shared_ptr<const MovedCache> moved = {}; ///< null: kept keys stay at their positions
};

/// Attention over everything: the part that no selection changes, worth caching.
struct ExactAttention {
    Tensor output;                           ///< [Hq, w, dv], on the engine that made it: errors are computed there
    HostTensor logDenominator, logNorm;      ///< [Hq, w], see WeightedAttention
    std::shared_ptr<RecentSums> recent = {}; ///< sums of the selections that were compared with this attention
    /// Attention over sets that were known in advance, computed in the same pass.
    std::vector<std::vector<WeightedSet>> nested = {};
    std::vector<WeightedAttention> overNested = {};
};
/// `nested`: see WeightedAttentionInput; nestedFamilies makes them.
ExactAttention exactAttention(const Engine& engine, const FidelityInput& input, const Checkpoint& checkpoint,
                              std::vector<std::vector<WeightedSet>> nested = {});

/// Those of the families (each [Hkv] or [Hq]) that have no weights and contain the ones before, the smallest first.
std::vector<std::vector<WeightedSet>> nestedFamilies(std::vector<std::vector<WeightedSet>> families);

/// Attention of the evaluation queries over the kept tokens: `kept` ([Hkv] or [Hq], see WeightedAttentionInput) and
/// [cut, j], or the moved cache of `input`. With a reference, the result holds errors instead of the output.
WeightedAttention leftAttention(const Engine& engine, const FidelityInput& input, std::span<const WeightedSet> kept,
                                const Checkpoint& checkpoint, const Tensor& reference = {});
/// Attention of the evaluation queries over `kept` (empty: all) and [cut, j], at their original positions.
WeightedAttention keptAttention(const Engine& engine, const FidelityInput& input, std::span<const WeightedSet> kept,
                                const Checkpoint& checkpoint, const Tensor& reference = {});

/// `kept` [Hkv] or [Hq]: samples of numerator and denominator; [cut, j] always has weight 1. The retained mass is the
/// exact attention on the numerator's tokens at their original positions, whatever their weights.
Fidelity measureFidelity(const Engine& engine, const FidelityInput& input, const ExactAttention& exact,
                         std::span<const WeightedSet> kept, const Checkpoint& checkpoint);

/// Mean over the values that are not NaN; NaN without any. Tables show it over the heads of a Fidelity.
double meanOfNumbers(std::span<const double> values);
/// The same for each row of a table [rows, w].
std::vector<double> rowMeans(const HostTensor& table);

/// |A intersect B| / |A union B| of two ascending lists; 1 for two empty ones.
double jaccard(std::span<const TokenIndex> a, std::span<const TokenIndex> b);

} // namespace kvscope
