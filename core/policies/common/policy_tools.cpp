// Shared by several policies: the query window before the cut, the tokens of rows, and the rule by which a GQA group
// agrees.
#include "core/policies/common/policy_tools.h"

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"

#include <algorithm>

namespace kvscope {

QueryWindow lastQueries(const PolicyInput& input, std::int64_t window, const std::string& policyName) {
    if (input.queries.empty() || input.queries.size(1) == 0)
        throw Error(
            {policyName + " needs queries before token " + std::to_string(input.end) + ", and none was captured",
             "layer " + std::to_string(input.layer.value),
             "Capture the queries of all tokens; or, if only later tokens have queries, choose a later cut (with "
             "blocks, prompt_block=0)"});
    const std::int64_t captured = input.queries.size(1);
    QueryWindow result;
    result.wanted = std::min<std::int64_t>(window, input.end);
    result.count = std::min(result.wanted, captured);
    result.queries = input.engine.rows(input.queries, captured - result.count, captured);
    result.first = static_cast<TokenIndex>(input.firstQuery + captured - result.count);
    return result;
}

HostTensor windowAttention(const PolicyInput& input, const QueryWindow& window) {
    AttentionInput attention;
    attention.queries = window.queries;
    attention.keys = input.keys;
    attention.firstQuery = window.first;
    attention.keyPositions = input.positions;
    attention.rule = input.attention;
    return input.engine.attentionColumnSums(attention, input.checkpoint);
}

HostTensor rowTokens(const PolicyInput& input) {
    HostTensor tokens{{input.keys.size(0), input.rowCount()}, {}};
    for (std::int64_t head = 0; head < tokens.shape[0]; ++head)
        for (std::int64_t row = 0; row < tokens.shape[1]; ++row)
            tokens.data.push_back(static_cast<float>(input.tokenAt(head, row)));
    return tokens;
}

ParameterSpec groupRuleParameter(std::string help, std::string source) {
    return choiceRow("group_rule", "Query heads of a group",
                     {{"mean", "Mean", "kvpress, KeyDiff's runs"},
                      {"sum", "Sum", "compactor-vllm; ranks as the mean"},
                      {"max", "Maximum", "the largest score of any query head counts"}},
                     Stage::Combine, std::move(help), std::move(source));
}

GroupRule groupRuleOf(const ParameterValues& values) {
    const std::string& id = values.choice("group_rule");
    return id == "mean" ? GroupRule::Mean : id == "sum" ? GroupRule::Sum : GroupRule::Max;
}

} // namespace kvscope
