#pragma once

#include "core/policies/policy.h"

namespace kvscope {

/// The usual last step: protected rows first, as far as the count allows, then stable top-k of the total score.
RowSelection keepBest(const PolicyInput& input, const Tensor& total, const Protection& protection, std::int64_t count);

/// The same by scores [Hq, m]: every query head chooses `count` rows for itself, and `heads` become the unions of the
/// groups.
RowSelection keepBestPerQueryHead(const PolicyInput& input, const Tensor& scores, const Protection& protection,
                                  std::int64_t count);

/// [H, n] -> [H, rows], rows >= n: the new last columns hold `value`. With n = 0 give an empty tensor and the heads.
Tensor padColumns(const Engine& engine, const Tensor& scores, std::int64_t heads, std::int64_t rows, float value);

/// [1, n] -> [heads, n]: the same row for every head.
Tensor repeatHead(const Engine& engine, const Tensor& scores, std::int64_t heads);

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
Tensor windowAttention(const PolicyInput& input, const QueryWindow& window);

/// The row `group_rule`: how the query heads of a KV head agree; and its value.
ParameterSpec groupRuleParameter(std::string help, std::string source);
GroupRule groupRuleOf(const ParameterValues& values);

/// The fraction kept that a budget asks for out of `rows`.
double retentionOf(const Budget& budget, std::int64_t rows);

/// Parameter rows.
ParameterSpec integerParameter(std::string id, std::string label, std::string symbol, double min, double max,
                               double defaultValue, Stage stage);
ParameterSpec choiceParameter(std::string id, std::string label, std::vector<ParameterChoice> choices, Stage stage);

} // namespace kvscope
