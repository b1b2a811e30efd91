// TOVA: keeps the tokens with the largest attention weight of the most recent query. In decoding it evicts one token
// after every new one.
#include "core/parameters/parameter_rows.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    return {choiceRow("scope", "Averaged over",
                      {{"layer", "All query heads", "one index set for all KV heads of the layer, as the original"},
                       {"kv_head", "Query heads of the group", "one index set per KV head, as in KeyDiff's runs"}},
                      Stage::Combine, "Which query heads vote together (L2).",
                      "TOVA and its code: layer; kvpress: layer; KeyDiff F.2: kv_head")};
}

PolicyCard makeCard() {
    return {.id = "tova",
            .name = "TOVA",
            .summary = "Keeps what the last query before the cut attends to most.",
            .paper = "Oren et al., Transformers are Multi-State RNNs (EMNLP 2024), policy TOVA",
            .needs = {Need::Keys, Need::Queries},
            .variants = {{"original", "Original", "mean over all query heads, one set per layer", {}},
                         kvpressVariant("the last token is forced in, budget rounded down", {{"protect_last", "1"}}),
                         {"keydiff", "KeyDiff's runs", "one set per KV head", {{"scope", "kv_head"}}}},
            .parameters = withCommonParameters(ownParameters(), CommonParameters::All, {"scope"}),
            .scoreLabel = "score: attention of the last query"};
}

constexpr std::int64_t kQueries = 1;

class Tova : public Policy {
public:
    Tova() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues&) const override {
        return {{"attention", windowAttention(input, lastQueries(input, kQueries, card().name))}};
    }

    std::int64_t queriesRead(const ParameterValues&) const override { return kQueries; }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues& values) const override {
        const HostTensor& attention = features.at("attention");
        const std::int64_t heads = input.keys.size(0);
        if (values.choice("scope") == "kv_head")
            return {reduceGroups(attention, input.attention.gqaGroupOf, heads, GroupRule::Mean), {}};
        const std::vector<std::int32_t> oneGroup(input.attention.gqaGroupOf.size(), 0);
        return {repeatHead(reduceGroups(attention, oneGroup, 1, GroupRule::Mean), heads), {}};
    }
};

} // namespace

const Policy& tovaPolicy() { return onlyPolicy<Tova>(); }

} // namespace kvscope
