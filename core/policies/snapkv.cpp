// SnapKV asks the last few queries of the prompt which earlier tokens they attend to, smooths that profile along the
// tokens so that neighbours come along, and keeps the best together with the window itself.
#include "core/policies/common_parameters.h"
#include "core/policies/explanations.h"
#include "core/policies/policy.h"
#include "core/policies/policy_tools.h"

#include <algorithm>

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    ParameterSpec window = integerParameter("window", "Observation window", "W", 1, 1024, 32, Stage::Features);
    window.unit = "tokens";
    window.maxIsTokens = true;
    window.help =
        "The last queries before the cut, whose attention is summed; their own tokens are always kept. A budget "
        "of N <= W keeps the last N.";
    window.source = "SnapKV class 64, its initialiser 32; kvpress 64; KeyDiff F.2 32; KVCache-Factory 8";
    ParameterSpec pool =
        choiceParameter("pool", "Pooling",
                        {{"average", "Average", "zero-padded, divided by the full width at the edges (L3)"},
                         {"max", "Maximum", "of the tokens that exist"}},
                        Stage::Combine);
    pool.help = "How the profile is smoothed along the tokens, per query head and before the group is reduced.";
    pool.source = "SnapKV code: average; KVCache-Factory: maximum";
    ParameterSpec width = integerParameter("pool_width", "Pooling width", "", 1, 63, 5, Stage::Combine);
    width.step = 2;
    width.unit = "tokens";
    width.help = "Odd; 1 leaves the profile as it is.";
    width.source = "SnapKV code and kvpress 5; KeyDiff's runs and KVCache-Factory 7";
    const ParameterSpec group = groupRuleParameter(
        "How the query heads that read one KV head agree. The original repeats keys and stores one set per query "
        "head (L4); here a KV head has one.",
        "kvpress, KeyDiff F.2: mean; compactor-vllm: sum");
    return {window, pool, width, group};
}

PolicyCard makeCard() {
    PolicyCard card;
    card.id = "snapkv";
    card.name = "SnapKV";
    card.summary = "Keeps what the last queries of the prompt attend to, smoothed, and their window.";
    card.paper = "Li et al., SnapKV: LLM Knows What You are Looking for Before Generation (NeurIPS 2024), section 4, "
                 "Listing 1";
    card.needs = {Need::Keys, Need::Queries};
    card.variants = {{"paper", "Authors' code", "window 32, average of 5", {}},
                     {"kvpress",
                      "kvpress",
                      "window 64, average of 5, group mean, budget rounded down",
                      {{"window", "64"}, {"rounding", "floor"}, {"prompt_alignment", "kvpress"}}},
                     {"keydiff", "KeyDiff's runs", "window 32, average of 7, group mean", {{"pool_width", "7"}}},
                     {"kvcache_factory",
                      "KVCache-Factory",
                      "window 8, maximum of 7",
                      {{"window", "8"}, {"pool", "max"}, {"pool_width", "7"}}}};
    card.parameters = withCommonParameters(ownParameters(), CommonParameters::All);
    card.explanation = policyExplanation("snapkv");
    card.scoreLabel = "score: pooled attention of the window";
    return card;
}

// Window tokens are kept whatever they score; they show the largest score of their head, so that they rank first.
Tensor withWindow(const Engine& engine, const Tensor& free, std::int64_t rows) {
    HostTensor scores = engine.download(padColumns(engine, free, free.size(0), rows, 0));
    const std::int64_t columns = free.size(1);
    for (std::int64_t h = 0; h < free.size(0); ++h) {
        const auto head = scores.data.begin() + h * rows;
        std::fill(head + columns, head + rows, *std::max_element(head, head + columns));
    }
    return engine.upload(std::move(scores));
}

class SnapKv : public Policy {
public:
    const PolicyCard& card() const override { return m_card; }

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        return {{"attention", windowAttention(input, lastQueries(input, values.integer("window"), m_card.name))}};
    }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues& values) const override {
        const std::int64_t heads = input.keys.size(0);
        const std::int64_t free = input.rowCount() - values.integer("window");
        if (free <= 0)
            return {padColumns(input.engine, {}, heads, input.rowCount(), 0), {}};
        const Tensor profile = input.engine.rows(features.at("attention"), 0, free);
        const bool average = values.choice("pool") == "average";
        const Tensor pooled =
            input.engine.pool(profile, average ? PoolKind::Average : PoolKind::Max, values.integer("pool_width"));
        const auto reduce = [&](const Tensor& perQueryHead) {
            return input.engine.reduceGroups(perQueryHead, input.attention.kvOfQ, heads, groupRuleOf(values));
        };
        return {withWindow(input.engine, reduce(pooled), input.rowCount()),
                {{"attention", reduce(features.at("attention"))}}};
    }

    Protection protection(const ParameterValues& values, std::int64_t) const override {
        return {values.integer("protect_first"), std::max(values.integer("window"), values.integer("protect_last"))};
    }

    std::vector<std::string> notes(const PolicyInput& input, const ParameterValues& values) const override {
        const QueryWindow window = lastQueries(input, values.integer("window"), m_card.name);
        if (window.count == window.wanted)
            return {};
        return {"SnapKV saw " + std::to_string(window.count) + " of its " + std::to_string(window.wanted) +
                " window queries before token " + std::to_string(input.end) + ": the capture holds no others"};
    }

private:
    PolicyCard m_card = makeCard();
};

} // namespace

const Policy& snapkvPolicy() {
    static const SnapKv policy;
    return policy;
}

} // namespace kvscope
