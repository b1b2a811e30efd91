#pragma once

#include "core/policies/policy.h"

namespace kvscope {

/// The last queries before `input.end`, at most `window` of them.
struct QueryWindow {
    Tensor queries; ///< [Hq, w, d]
    TokenIndex first = 0;
    std::int64_t count = 0;
    std::int64_t wanted = 0; ///< min(window, tokens seen)
};

/// Throws Error naming the policy and the remedy when no query before `input.end` was captured.
QueryWindow lastQueries(const PolicyInput& input, std::int64_t window, const std::string& policyName);

/// The causal attention of a query window to all rows, summed over its queries: [Hq, m].
HostTensor windowAttention(const PolicyInput& input, const QueryWindow& window);

/// [Hkv, m] the token of each row, as a score.
HostTensor rowTokens(const PolicyInput& input);

/// The parameter row `group_rule` (how the query heads of a GQA group agree on one score), and its value.
ParameterSpec groupRuleParameter(std::string help, std::string source);
GroupRule groupRuleOf(const ParameterValues& values);

} // namespace kvscope
