#pragma once

#include "core/base/index.h"
#include "core/engine/attention.h"
#include "core/engine/tensor.h"

#include <cassert>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kvscope {

/// Time positions of the rows of a tensor [H, m, d]. Empty lists: row r of every head is token r.
using RowPositions = std::vector<std::vector<TokenIndex>>; ///< H lists of m ascending tokens

/// Causal attention of queries [Hq, w, d] (query r is at time position firstQuery + r) to keys [Hkv, m, d]: with the
/// logit l_ij = softcap(scaling q_i.k_j), the weight of key j for query i is p_ij = e^(l_ij) / (e^sink + sum over the
/// keys j' that i sees of e^(l_ij')), with e^sink = 0 for a rule without attention sinks.
struct AttentionInput {
    Tensor queries, keys;
    TokenIndex firstQuery = 0;
    RowPositions keyPositions;
    AttentionRule rule;
};

/// Non-causal attention inside chunks of C rows (Compactor 3.3): every query sees all keys of its own chunk and no
/// others. Row r of the queries and of the keys is the same token. Where the rule has a sliding window W, row j sees
/// rows i with |i - j| < W only: the layer's mask in both directions of time (0.10), which matters where C > W.
struct AttentionChunksInput {
    Tensor queries; ///< [Hq, n, d]
    Tensor keys;    ///< [Hkv, n, d]
    AttentionRule rule;
    std::int64_t chunk = 256; ///< C
    /// Padding of a short last chunk in the reference codes (C8): `zeroKeys` keys of logit 0 take part in its softmax,
    /// whatever the window, and `uniformRows` rows of logits 0 add 1/C each, or 1/(C + e^sink), to all of its tokens.
    std::int64_t zeroKeys = 0, uniformRows = 0;
    /// The tokens of the rows of a cache with gaps, because the window counts tokens, not rows.
    RowPositions positions = {};
};

/// The kept set of one KV head as two weighted samples. Empty weights mean all 1.
/// Denominator tokens are those of the numerator unless `denominator` is non-empty.
struct WeightedSet {
    std::vector<TokenIndex> numerator;
    std::vector<float> numeratorWeights;
    std::vector<TokenIndex> denominator;
    std::vector<float> denominatorWeights;
};

/// Weight of entry i of a sample.
inline float weightAt(const std::vector<float>& weights, std::size_t i) { return weights.empty() ? 1 : weights[i]; }

/// Calls `term(token, x, y)` with both weights of every token in order: the numerator, and the denominator where it is
/// another sample. A weight of 0: not in that sum.
template <class Term> void forEachTerm(const WeightedSet& set, const Term& term) {
    assert(set.numeratorWeights.empty() || set.numeratorWeights.size() == set.numerator.size());
    const bool shared = set.denominator.empty();
    for (std::size_t i = 0; i < set.numerator.size(); ++i)
        term(set.numerator[i], weightAt(set.numeratorWeights, i), shared ? weightAt(set.denominatorWeights, i) : 0);
    for (std::size_t i = 0; i < set.denominator.size(); ++i)
        term(set.denominator[i], 0.0F, weightAt(set.denominatorWeights, i));
}

class RecentSums; // core/engine/recent_sums.h

/// Attention of the queries j >= firstQuery over a kept set of [0, cut) and all of [cut, j]. With numerator weights x
/// and denominator weights y (1 from the cut on, 0 outside of a sample) the output is
///   z_j = sum_i x_i e^(l_ij) v_i / (e^sink + sum_i y_i e^(l_ij)), e^sink = 0 for a rule without attention sinks.
struct WeightedAttentionInput {
    Tensor queries; ///< [Hq, w, d]
    Tensor keys;    ///< [Hkv, n, d], all tokens
    Tensor values;  ///< [Hkv, n, dv]
    TokenIndex firstQuery = 0;
    TokenIndex cut = 0;
    AttentionRule rule;
    /// [Hkv], or more than that: [Hq], a set for each query head. Empty: everything is kept.
    std::span<const WeightedSet> kept;
    /// [Hq, w, dv] outputs a to compare with; empty: none.
    Tensor reference = {};
    /// Sums of earlier calls that differ in `kept` only; null: none. The CPU engine then computes only the tokens in
    /// which an unweighted `kept` differs from the nearest earlier one, and adds the new sums.
    RecentSums* recent = nullptr;
    /// With `kept` empty: families of sets as `kept`, without weights, each set a part of the same set of the next
    /// family. The CPU engine computes them in the same pass.
    std::span<const std::vector<WeightedSet>> nested = {};

    /// Index into `kept`, or into every nested family, of a query head's set.
    std::size_t setOf(std::int64_t queryHead) const {
        const bool own = std::cmp_greater(nested.empty() ? kept.size() : nested.front().size(), keys.size(0));
        return static_cast<std::size_t>(own ? queryHead : rule.gqaGroupOf[static_cast<std::size_t>(queryHead)]);
    }
};

struct WeightedAttention {
    HostTensor output;         ///< [Hq, w, dv] z; zero where a query sees nothing. Not made if there is a reference
    HostTensor logDenominator; ///< [Hq, w]: log of the denominator; -infinity where nothing is seen
    /// [Hq, w]: log of the Euclidean norm of the numerator's weighted e^logit; over everything, e^(logNorm -
    /// logDenominator) is ||p||_2. -infinity where nothing is seen.
    HostTensor logNorm;
    HostTensor outputError; ///< [Hq, w] ||z - a|| / ||a||, NaN where ||a|| < 1e-12; empty without a reference
    /// Of the nested families, with `output` as reference. Empty without any, or if the engine does not compute them.
    /// A family has no tables where a query's weights on it are too small beside its largest weight.
    std::vector<WeightedAttention> nested = {};
};

struct PrincipalAxes {
    HostTensor mean; ///< [d]
    HostTensor axes; ///< [components, d] unit vectors; the largest absolute entry of each is positive
    std::vector<double> explainedVariance; ///< [components] part of the total variance, 0..1
    double totalVariance = 0;              ///< sum of squared distances to the mean over (m - 1)
};

} // namespace kvscope
