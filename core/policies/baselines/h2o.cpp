// H2O: keeps the heavy hitters, the tokens with the most accumulated attention, and the most recent tokens, which have
// not yet accumulated any.
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/citations.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    return {
        realRow("recent_share", "Recent share", "", {0, 1, 0.5, 0.01}, Stage::Select,
                "Share of the budget that goes to the most recent tokens: floor(share N) of them are kept whatever "
                "they score. For a number of tokens use protect_last.",
                "H2O: half heavy, half recent; KeyDiff's and Compactor's runs and kvpress: 0"),
        choiceRow("accumulate", "Accumulated as",
                  {{"sum", "Sum", "favours old tokens, which more queries have seen"},
                   {"mean", "Mean", "over the queries that see the token; favours recent ones with few samples"}},
                  Stage::Combine, "How the attention from all queries at or after the token is combined (L1).",
                  "H2O: sum; kvpress ObservedAttention: mean"),
        choiceRow("mask", "Mask",
                  {{"causal", "Causal", "a query sees the tokens up to its own"},
                   {"last_window", "Last window only", "earlier queries see every token, later ones included"}},
                  Stage::Features,
                  "KVCache-Factory's copy masks the last window alone, so earlier queries attend to later tokens (L1).",
                  "H2O, kvpress: causal; KVCache-Factory: last_window"),
        tokensRow("mask_window", "Masked window", "", {1, 1024, 8}, Stage::Features,
                  "The last queries that are masked causally under mask=last_window; without meaning otherwise.",
                  "KVCache-Factory script: 8"),
        groupRuleParameter("How the query heads that read one KV head agree. The original knows no groups and scores "
                           "rows per query head.",
                           "kvpress: mean; H2O's code: not group-aware")};
}

PolicyCard makeCard() {
    return {
        .id = "h2o",
        .name = "H2O",
        .summary = "Keeps the tokens that received most attention so far (heavy hitters) and the most recent ones.",
        .paper = citation("H2O", "Algorithm 1"),
        .needs = {Need::Keys, Need::Queries},
        .variants = {{"paper", "Paper", "accumulated sum, half of the budget recent", {}},
                     {"keydiff", "KeyDiff's runs", "accumulated sum, nothing recent", {{"recent_share", "0"}}},
                     kvpressVariant("ObservedAttention: mean over later queries, nothing recent, budget rounded down",
                                    {{"recent_share", "0"}, {"accumulate", "mean"}}),
                     {"kvcache_factory",
                      "KVCache-Factory",
                      "earlier queries unmasked, the last 8 tokens recent",
                      {{"recent_share", "0"}, {"mask", "last_window"}, {"protect_last", "8"}}}},
        .parameters = withCommonParameters(ownParameters(), CommonParameters::All, {"recent_share", "accumulate"}),
        .carriesState = true,
        .scoreLabel = "score: accumulated attention"};
}

/// Number of input rows that carry no sums from earlier blocks: those of the new block.
std::int64_t newRows(const PolicyInput& input) {
    const auto seen = input.carried.find("seen");
    if (seen == input.carried.end()) return input.rowCount();
    const HostTensor& marks = seen->second;
    return std::count(marks.data.begin(), marks.data.begin() + input.rowCount(), 0.0F);
}

/// The queries of this block.
QueryWindow newQueries(const PolicyInput& input) { return lastQueries(input, newRows(input), "H2O"); }

/// [H, m] a + b. An empty b counts as zero.
HostTensor sumOf(HostTensor a, const HostTensor& b) {
    if (!b.empty()) std::ranges::transform(a.data, b.data, a.data.begin(), std::plus<>());
    return a;
}

HostTensor carriedOrNone(const PolicyInput& input, const std::string& name) {
    const auto found = input.carried.find(name);
    return found == input.carried.end() ? HostTensor() : found->second;
}

/// How many of the window's first queries see every row (no causal mask).
std::int64_t unmaskedQueries(const QueryWindow& window, const ParameterValues& values) {
    if (values.choice("mask") == "causal") return 0;
    return std::max<std::int64_t>(0, window.count - values.integer("mask_window"));
}

/// [Hq, m] attention that the rows receive from the queries of the window.
HostTensor attentionReceived(const PolicyInput& input, const QueryWindow& window, std::int64_t unmasked) {
    if (unmasked == 0) return windowAttention(input, window);
    AttentionInput all;
    all.queries = input.engine.rows(window.queries, 0, unmasked);
    all.keys = input.keys;
    all.firstQuery = input.end; // after every row, so that the causal mask hides none
    all.keyPositions = input.positions;
    all.rule = input.attention;
    all.rule.slidingWindow = 0;
    const HostTensor earlier = input.engine.attentionColumnSums(all, input.checkpoint.part(0, 0.9));
    QueryWindow masked = window;
    masked.queries = input.engine.rows(window.queries, unmasked, window.count);
    masked.first += static_cast<TokenIndex>(unmasked);
    return sumOf(earlier, windowAttention(input, masked));
}

/// [Hkv, m] number of queries of the window that see each row.
HostTensor queriesThatSee(const PolicyInput& input, const QueryWindow& window, std::int64_t unmasked) {
    const std::int64_t firstMasked = window.first + unmasked, sliding = input.attention.slidingWindow;
    HostTensor counts{{input.keys.size(0), input.rowCount()}, {}};
    for (std::int64_t head = 0; head < counts.shape[0]; ++head)
        for (std::int64_t row = 0; row < counts.shape[1]; ++row) {
            const std::int64_t token = input.tokenAt(head, row);
            const std::int64_t end = sliding > 0 ? std::min<std::int64_t>(input.end, token + sliding) : input.end;
            const std::int64_t masked = std::max<std::int64_t>(0, end - std::max(firstMasked, token));
            counts.data.push_back(static_cast<float>(unmasked + masked));
        }
    return counts;
}

class H2o : public Policy {
public:
    H2o() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        const QueryWindow window = newQueries(input);
        const std::int64_t unmasked = unmaskedQueries(window, values);
        return {{"attention", sumOf(attentionReceived(input, window, unmasked), carriedOrNone(input, "attention"))},
                {"queries", sumOf(queriesThatSee(input, window, unmasked), carriedOrNone(input, "queries"))}};
    }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues& values) const override {
        const HostTensor sum =
            reduceGroups(features.at("attention"), input.attention.gqaGroupOf, input.keys.size(0), groupRuleOf(values));
        const HostTensor& queries = features.at("queries");
        if (values.choice("accumulate") == "sum") return {sum, {{"queries", queries}}};
        HostTensor mean = sum;
        for (std::size_t i = 0; i < mean.data.size(); ++i)
            mean.data[i] = queries.data[i] > 0 ? mean.data[i] / queries.data[i] : 0; // no query sees the row
        return {std::move(mean), {{"attention", sum}, {"queries", queries}}};
    }

    Protection protection(const ParameterValues& values, std::int64_t count) const override {
        const auto recent =
            static_cast<std::int64_t>(std::floor(values.real("recent_share") * static_cast<double>(count) + 1e-9));
        return {values.integer("protect_first"), std::max(recent, values.integer("protect_last"))};
    }

    Features carry(const PolicyInput& input, const Features& features, const ParameterValues&) const override {
        return {{"attention", features.at("attention")},
                {"queries", features.at("queries")},
                {"seen", HostTensor::filled({input.keys.size(0), input.rowCount()}, 1)}};
    }

    std::vector<std::string> notes(const PolicyInput& input, const ParameterValues&) const override {
        const QueryWindow window = lastQueries(input, input.end, card().name);
        if (window.count == window.wanted) return {};
        return {"H2O accumulated " + std::to_string(window.count) + " of the " + std::to_string(window.wanted) +
                " queries before token " + std::to_string(input.end) + ": the capture holds no others"};
    }
};

} // namespace

const Policy& h2oPolicy() { return onlyPolicy<H2o>(); }

} // namespace kvscope
