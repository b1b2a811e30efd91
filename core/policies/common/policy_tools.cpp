// What several policies need and no engine has to know: protection, the query window before the cut, small score
// tables that are completed on the host ([H, n], never [H, n, d]).
#include "core/policies/common/policy_tools.h"

#include "core/base/error.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>

namespace kvscope {

namespace {

std::vector<TopKHead> bestRows(const PolicyInput& input, const Tensor& scores, const Protection& fitted, std::int64_t count) {
    TopKRequest request;
    request.scores = scores;
    request.counts.assign(static_cast<std::size_t>(scores.size(0)), count);
    request.protectFirst = fitted.first;
    request.protectLast = fitted.last;
    return input.engine.topK(request);
}

RowSelection protecting(const Protection& fitted) {
    RowSelection selection;
    selection.protectedFirst = fitted.first;
    selection.protectedLast = fitted.last;
    return selection;
}

} // namespace

RowSelection keepBest(const PolicyInput& input, const Tensor& total, const Protection& protection, std::int64_t count) {
    const Protection fitted = protection.within(count, input.rowCount());
    RowSelection selection = protecting(fitted);
    selection.heads = bestRows(input, total, fitted, count);
    return selection;
}

RowSelection keepBestPerQueryHead(const PolicyInput& input, const Tensor& scores, const Protection& protection,
                                  std::int64_t count) {
    const Protection fitted = protection.within(count, input.rowCount());
    RowSelection selection = protecting(fitted);
    selection.queryHeads = bestRows(input, scores, fitted, count);
    selection.heads.assign(static_cast<std::size_t>(input.keys.size(0)), {{}, std::numeric_limits<float>::infinity()});
    for (std::size_t head = 0; head < selection.queryHeads.size(); ++head) {
        const TopKHead& own = selection.queryHeads[head];
        TopKHead& group = selection.heads[static_cast<std::size_t>(input.attention.kvOfQ[head])];
        std::vector<TokenIndex> both;
        std::set_union(group.kept.begin(), group.kept.end(), own.kept.begin(), own.kept.end(), std::back_inserter(both));
        group.kept = std::move(both);
        group.margin = std::min(group.margin, own.margin);
    }
    return selection;
}

Tensor padColumns(const Engine& engine, const Tensor& scores, std::int64_t heads, std::int64_t rows, float value) {
    HostTensor padded{{heads, rows}, {}};
    padded.data.assign(static_cast<std::size_t>(heads * rows), value);
    if (scores.empty())
        return engine.upload(std::move(padded));
    assert(scores.size(0) == heads && scores.size(1) <= rows);
    const HostTensor given = engine.download(scores);
    const std::int64_t columns = scores.size(1);
    for (std::int64_t h = 0; h < heads; ++h)
        std::copy_n(given.data.begin() + h * columns, columns, padded.data.begin() + h * rows);
    return engine.upload(std::move(padded));
}

Tensor repeatHead(const Engine& engine, const Tensor& scores, std::int64_t heads) {
    assert(scores.size(0) == 1);
    const HostTensor one = engine.download(scores);
    HostTensor all{{heads, scores.size(1)}, {}};
    for (std::int64_t h = 0; h < heads; ++h)
        all.data.insert(all.data.end(), one.data.begin(), one.data.end());
    return engine.upload(std::move(all));
}

QueryWindow lastQueries(const PolicyInput& input, std::int64_t window, const std::string& policyName) {
    if (input.queries.empty() || input.queries.size(1) == 0)
        throw Error(
            {policyName + " needs queries before token " + std::to_string(input.end) + ", and none was captured",
             "layer " + std::to_string(input.layer.value),
             "Choose a later cut (or, with blocks, prompt_block=0), or capture the queries of all tokens",
             {}});
    const std::int64_t captured = input.queries.size(1);
    QueryWindow result;
    result.wanted = std::min<std::int64_t>(window, input.end);
    result.count = std::min(result.wanted, captured);
    result.queries = input.engine.rows(input.queries, captured - result.count, captured);
    result.first = static_cast<TokenIndex>(input.firstQuery + captured - result.count);
    return result;
}

Tensor windowAttention(const PolicyInput& input, const QueryWindow& window) {
    AttentionInput attention;
    attention.queries = window.queries;
    attention.keys = input.keys;
    attention.firstQuery = window.first;
    attention.keyPositions = input.positions;
    attention.rule = input.attention;
    return input.engine.attentionColumnSums(attention, input.checkpoint);
}

ParameterSpec groupRuleParameter(std::string help, std::string source) {
    ParameterSpec group = choiceParameter("group_rule", "Query heads of a group",
                                          {{"mean", "Mean", "kvpress, KeyDiff's runs"},
                                           {"sum", "Sum", "compactor-vllm; ranks as the mean"},
                                           {"max", "Maximum", "the keenest query head decides"}},
                                          Stage::Combine);
    group.help = std::move(help);
    group.source = std::move(source);
    return group;
}

GroupRule groupRuleOf(const ParameterValues& values) {
    const std::string& id = values.choice("group_rule");
    return id == "mean" ? GroupRule::Mean : id == "sum" ? GroupRule::Sum : GroupRule::Max;
}

double retentionOf(const Budget& budget, std::int64_t rows) {
    return budget.unit == Budget::Unit::Fraction ? budget.value : budget.value / static_cast<double>(rows);
}

ParameterSpec integerParameter(std::string id, std::string label, std::string symbol, double min, double max,
                               double defaultValue, Stage stage) {
    ParameterSpec spec;
    spec.id = std::move(id);
    spec.label = std::move(label);
    spec.symbol = std::move(symbol);
    spec.kind = ParameterKind::Integer;
    spec.min = min;
    spec.max = max;
    spec.defaultValue = defaultValue;
    spec.step = 1;
    spec.stage = stage;
    return spec;
}

ParameterSpec choiceParameter(std::string id, std::string label, std::vector<ParameterChoice> choices, Stage stage) {
    ParameterSpec spec;
    spec.id = std::move(id);
    spec.label = std::move(label);
    spec.kind = ParameterKind::Choice;
    spec.max = static_cast<double>(choices.size()) - 1;
    spec.step = 1;
    spec.choices = std::move(choices);
    spec.stage = stage;
    return spec;
}

} // namespace kvscope
