#pragma once

#include "core/base/index.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

/// The kept set of one query head, where the heads of a group do not share one.
struct QueryHeadSet {
    std::int32_t queryHead = 0;
    std::vector<TokenIndex> kept; ///< ascending token indices
    float margin = 0;             ///< of this head's own decisions, as in HeadSelection
    friend bool operator==(const QueryHeadSet&, const QueryHeadSet&) = default;
};

/// What a policy keeps in one KV head, out of the tokens before the cut. Where numerator and denominator of the
/// estimator are different samples, `kept` is the union of both, a token has weight 0 in the sum that
/// it takes no part in, and the weights of a token that was drawn several times add up.
struct HeadSelection {
    std::vector<TokenIndex> kept;            ///< ascending token indices (duplicates never)
    std::vector<float> numeratorWeights;     ///< per kept token; empty: all 1
    std::vector<float> denominatorWeights;   ///< per kept token; empty: all 1
    std::vector<TokenIndex> protectedTokens; ///< ascending subset of kept that no score could evict
    /// Rows that the policy really stores, duplicates included (0.4); -1: one key and one value per kept token, or per
    /// token of each query head's set.
    std::int64_t storedKeys = -1, storedValues = -1;
    float margin = 0; ///< smallest distance of any decision from going the other way; +infinity without a decision
    /// Ascending, all query heads of the group, without weights; `kept` is the union of their sets (L4). Empty: every
    /// query head of the group attends to `kept`.
    std::vector<QueryHeadSet> queryHeads = {};

    /// Mean number of tokens that a query head attends to, over the group; the budget bounds it.
    double attendedTokens() const;
    /// The kept list of a query head that reads this KV head.
    const std::vector<TokenIndex>& attendedBy(std::int32_t queryHead) const;
};

struct Selection {
    std::vector<HeadSelection> heads; ///< [Hkv]

    bool sameLists(const Selection& other) const; ///< kept indices only, those of query heads included
    bool perQueryHead() const;                    ///< some query heads have sets of their own
};

/// A budget as typed: a fraction kept ("0.25"), tokens ("2048t"), or a quality to keep with the curve that converts it
/// to a fraction ("tau=0.95", "tau=0.95:proxy", see core/calibration/calibration.h).
struct Budget {
    enum class Unit { Fraction, Tokens, Quality };
    Unit unit = Unit::Fraction;
    double value = 1;       ///< of a quality: tau
    std::string curve = {}; ///< of a quality: where its curve comes from; empty: the capture's /calibration

    static Budget parse(const std::string& text); ///< throws Error naming the form
    std::string text() const;                     ///< reads back identically
    friend bool operator==(const Budget&, const Budget&) = default;
};

enum class Rounding { Ceil, Floor, Round };

/// Tokens kept of n, at least 1; Rounding::Ceil: ceil(r n - 1e-9). Throws Error for 0 or more than n tokens, r outside
/// (0, 1], and a quality, which the run layer converts to a fraction first.
std::int64_t resolveBudget(const Budget& budget, std::int64_t n, Rounding rounding);

/// The fraction kept that a budget asks for out of `rows`.
double retentionOf(const Budget& budget, std::int64_t rows);

} // namespace kvscope
