#pragma once

#include "core/engine/engine.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// How well the attention output survives in one layer, over the queries after the cut (policies.md 7).
struct Fidelity {
    TokenIndex firstQuery = 0;          ///< queries [firstQuery, firstQuery + queryCount) were used
    std::int64_t queryCount = 0;
    bool seenQueries = false;           ///< cut "none": the queries were visible to the policy
    HostTensor outputError;             ///< [Hq, w] ||z - a|| / ||a||, NaN where skipped
    HostTensor retainedMass;            ///< [Hq, w] share of the causal attention on kept tokens and on [cut, j]
    std::vector<double> meanOutputError;  ///< [Hq] over the queries that count
    std::vector<double> meanRetainedMass; ///< [Hq]
    std::int64_t skipped = 0;           ///< queries with ||a|| < 1e-12 or nothing kept before them
};

/// Exact attention of the judged queries: the part that no selection changes, worth caching.
struct ExactAttention {
    HostTensor output;         ///< [Hq, w, dv]
    HostTensor logDenominator; ///< [Hq, w]
};

struct FidelityInput {
    Tensor queries; ///< [Hq, w, d] the judged queries only
    Tensor keys, values;
    TokenIndex firstQuery = 0, cut = 0;
    bool seenQueries = false;
    AttentionRule rule;
};

ExactAttention exactAttention(const Engine& engine, const FidelityInput& input, const Checkpoint& checkpoint);
Fidelity measureFidelity(const Engine& engine, const FidelityInput& input, const ExactAttention& exact,
                         std::span<const WeightedSet> kept, const Checkpoint& checkpoint);

/// |A intersect B| / |A union B| of two ascending lists; 1 for two empty ones.
double jaccard(std::span<const TokenIndex> a, std::span<const TokenIndex> b);

} // namespace kvscope
