#pragma once

#include "core/run/run.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// The decision of one query head that chooses for itself; fields as in TokenDecision.
struct QueryHeadDecision {
    std::int32_t queryHead = 0;
    bool kept = false;
    std::int64_t rank = 0;
    double score = 0, margin = 0; ///< NaN where the scores of query heads are unknown (recorded lists)
};

/// Why a token is kept or evicted. Where query heads choose for themselves, a token is kept if any of them keeps it,
/// score and rank are the group's, and the margin is the largest of the query heads'.
struct TokenDecision {
    bool kept = false, isProtected = false, scored = false;
    std::int64_t rank = 0; ///< 0 = best, among all scored tokens of the head: (score descending, index ascending)
    double score = 0;      ///< NaN when not scored
    /// Kept by score: score minus the best evicted score (+infinity when protected or nothing was evicted). Evicted:
    /// score minus the worst score kept without protection (-infinity when all kept tokens are protected). NaN when not
    /// scored, as for a token that was evicted in an earlier block.
    double margin = 0;
    /// Smallest budget in tokens that keeps the token, with the policy's protection at that budget; 0 when unknown
    /// (block processing, recorded lists) or when the policy uses no budget.
    std::int64_t flipBudget = 0;
    std::vector<std::pair<std::string, double>> parts; ///< named terms of the score
    std::vector<QueryHeadDecision> queryHeads;         ///< of the group, where they choose for themselves; else empty
};
/// `token` must lie before the cut.
TokenDecision tokenDecisionOf(const RunResult& result, KvHeadIndex head, TokenIndex token);

/// Why tokenDecisionOf gives no smallest budget, as words after "unknown: ". Empty where it gives one, and for policies
/// without a budget.
std::string whyNoFlipBudget(const RunResult& result);

} // namespace kvscope
