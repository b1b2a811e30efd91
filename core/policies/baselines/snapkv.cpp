// SnapKV: sums the attention of the last queries of the prompt (the observation window), smooths it along the tokens,
// and keeps the best tokens and the window itself.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/citations.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/common_parameters.h"
#include "core/policies/keep_best.h"
#include "core/policies/policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

/// Parameters of behaviour that only some codes have (L3, L4).
ParameterTable codeParameters() {
    return {
        choiceRow("softmax", "Softmax over",
                  {{"all", "All keys", "those of the window included, causal inside it"},
                   {"others", "Keys before the window", "the window's own keys take no share"}},
                  Stage::Features, "Over which keys a window query's attention adds up to 1 (L3).",
                  "SnapKV: all; compactor-vllm: others"),
        integerRow("pool_tile", "Pooling tile", "", "tokens", {0, 4096, 0}, Stage::Combine,
                   "Trailing windows begin anew at every multiple of it, as in a kernel whose tile size is tuned by "
                   "itself; 0: they do not.",
                   "compactor-vllm: the tile that autotuning picks"),
        choiceRow("copies", "Stored per",
                  {{"kv_head", "KV head", "one set, chosen by the group together"},
                   {"query_head", "Query head", "every query head has a set of its own (L4)"}},
                  Stage::Combine,
                  "The original and MInference repeat keys and values to all query heads before they select: every "
                  "query head keeps as many tokens as the budget says, by its own scores. At a quarter of the tokens "
                  "and groups of four such a cache is as large as the uncompressed one. The group's rule then only "
                  "shapes the score that is drawn, and what is drawn as kept is the union of the group's query heads.",
                  "the original, MInference and KVCache-Factory: query head; kvpress, compactor-vllm: KV head")};
}

ParameterTable ownParameters() {
    const ParameterSpec group =
        groupRuleParameter("How the query heads that read one KV head agree on its set. Where each query head has its "
                           "own (L4), it only shapes the score that is drawn.",
                           "kvpress, KeyDiff F.2: mean; compactor-vllm: sum");
    ParameterTable rows = {
        tokensRow("window", "Observation window", "W", {1, 1024, 32}, Stage::Features,
                  "The last queries before the cut, whose attention is summed; their own tokens are always kept. A "
                  "budget of N <= W keeps the last N.",
                  "SnapKV class 64, its initialiser 32; kvpress 64; KeyDiff F.2 32; KVCache-Factory 8"),
        choiceRow("pool", "Pooling",
                  {{"average", "Average", "zero-padded, divided by the full width at the edges (L3)"},
                   {"max", "Maximum", "of the tokens that exist"},
                   {"trailing", "Trailing average", "of the token and those before it, divided by their number"}},
                  Stage::Combine,
                  "How the profile is smoothed along the tokens, per query head and before the group is reduced.",
                  "SnapKV code: average; KVCache-Factory: maximum; compactor-vllm: trailing"),
        integerRow("pool_width", "Pooling width", "", "tokens", {1, 63, 5, 2}, Stage::Combine,
                   "Odd; 1 leaves the profile as it is.",
                   "SnapKV code and kvpress 5; KeyDiff's runs and KVCache-Factory 7"),
        group};
    for (ParameterSpec& row : codeParameters()) rows.push_back(std::move(row));
    return rows;
}

PolicyCard makeCard() {
    return {
        .id = "snapkv",
        .name = "SnapKV",
        .summary = "Keeps what the last queries of the prompt attend to, smoothed, and their window.",
        .paper = citation("SnapKV", "section 4, Listing 1"),
        .needs = {Need::Keys, Need::Queries},
        .variants = {{"paper", "Authors' code", "window 32, average of 5; as in its listing, one set per KV head", {}},
                     kvpressVariant("window 64, average of 5, group mean, budget rounded down", {{"window", "64"}}),
                     {"keydiff", "KeyDiff's runs", "window 32, average of 7, group mean", {{"pool_width", "7"}}},
                     {"kvcache_factory",
                      "KVCache-Factory",
                      "window 8, maximum of 7, a set per query head",
                      {{"window", "8"}, {"pool", "max"}, {"pool_width", "7"}, {"copies", "query_head"}}},
                     {"original_class",
                      "Original class",
                      "window 64, average of 5, a set per query head; its capacity is 320 tokens",
                      {{"window", "64"}, {"copies", "query_head"}}},
                     {"minference",
                      "MInference",
                      "window 32, average of 5, a set per query head; its capacity is 4,096 tokens",
                      {{"copies", "query_head"}}},
                     {"compactor_vllm",
                      "compactor-vllm",
                      "window 32, softmax before the window, trailing average of 5, group sum",
                      {{"pool", "trailing"}, {"group_rule", "sum"}, {"softmax", "others"}, {"rounding", "round"}}}},
        .parameters = withCommonParameters(ownParameters(), CommonParameters::All, {"window", "pool", "pool_width"}),
        .scoreLabel = "score: pooled attention of the window"};
}

// Window tokens are always kept; for display they get the largest score of their head, so that no score exceeds theirs.
HostTensor withWindow(const HostTensor& free, std::int64_t heads, std::int64_t rows) {
    if (free.empty()) return HostTensor::filled({heads, rows});
    HostTensor scores = padColumns(free, 0, rows, 0);
    const std::int64_t columns = free.shape[1];
    for (std::int64_t h = 0; h < heads; ++h) {
        const auto head = scores.data.begin() + h * rows;
        std::fill(head + columns, head + rows, *std::max_element(head, head + columns));
    }
    return scores;
}

bool storesPerQueryHead(const ParameterValues& values) { return values.choice("copies") == "query_head"; }

/// Refuses blocks with copies=query_head: every query head would need a cache of its own.
void refuseBlocksPerQueryHead(const PolicyInput& input, const ParameterValues& values) {
    if (storesPerQueryHead(values) && !input.positions.empty())
        throw Error({"query heads that store sets of their own are not processed in blocks: after the first block each "
                     "would score another cache",
                     "parameter copies", "Set prompt_block=0 and decode_tokens=0, or copies=kv_head"});
}

bool seesOthersOnly(const ParameterValues& values) {
    return values.has("softmax") && values.choice("softmax") == "others"; // PyramidKV has no such row
}

/// [Hq, m], or [Hq, m - W] when the softmax excludes the window's keys.
HostTensor attentionOf(const PolicyInput& input, const QueryWindow& window, std::int64_t free,
                       const ParameterValues& values) {
    if (!seesOthersOnly(values) || free <= 0) return windowAttention(input, window);
    PolicyInput before = input;
    before.keys = input.engine.rows(input.keys, 0, free);
    for (auto& rows : before.positions) rows.resize(static_cast<std::size_t>(free));
    return windowAttention(before, window);
}

/// [H, n] -> [H, n]: mean of the entry and the width - 1 entries before it, as far as they lie in its tile.
HostTensor trailingMeans(const HostTensor& given, std::int64_t width, std::int64_t tile) {
    HostTensor means{given.shape, std::vector<float>(given.data.size())};
    const std::int64_t n = given.shape[1];
    for (std::int64_t head = 0; head < given.shape[0]; ++head)
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t begin = std::max(tile > 0 ? i / tile * tile : 0, i - width + 1);
            double sum = 0;
            for (std::int64_t j = begin; j <= i; ++j) sum += static_cast<double>(given.data[head * n + j]);
            means.data[head * n + i] = static_cast<float>(sum / static_cast<double>(i - begin + 1));
        }
    return means;
}

HostTensor pooledProfile(const HostTensor& profile, const ParameterValues& values) {
    const std::string& kind = values.choice("pool");
    if (kind == "trailing")
        return trailingMeans(profile, values.integer("pool_width"), integerOrZero(values, "pool_tile"));
    return pool(profile, kind == "average" ? PoolKind::Average : PoolKind::Max, values.integer("pool_width"));
}

class SnapKv : public Policy {
public:
    SnapKv() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        refuseBlocksPerQueryHead(input, values);
        const QueryWindow window = lastQueries(input, values.integer("window"), card().name);
        return {{"attention", attentionOf(input, window, input.rowCount() - values.integer("window"), values)}};
    }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues& values) const override {
        const std::int64_t heads = input.keys.size(0), rows = input.rowCount(), free = rows - values.integer("window");
        const auto reduce = [&](const HostTensor& perQueryHead) {
            return reduceGroups(perQueryHead, input.attention.gqaGroupOf, heads, groupRuleOf(values));
        };
        const HostTensor pooled =
            free > 0 ? pooledProfile(columnRange(features.at("attention"), 0, free), values) : HostTensor();
        Scores scores;
        scores.total = withWindow(pooled.empty() ? pooled : reduce(pooled), heads, rows);
        if (!pooled.empty()) scores.parts["attention"] = padColumns(reduce(features.at("attention")), 0, rows, 0);
        if (storesPerQueryHead(values))
            scores.perQueryHead = withWindow(pooled, std::ssize(input.attention.gqaGroupOf), rows);
        return scores;
    }

    RowSelection select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                        std::int64_t count) const override {
        if (scores.perQueryHead.empty()) return Policy::select(input, scores, values, count);
        RowSelection chosen = keepBestPerQueryHead(input, scores.perQueryHead, protection(values, count), count);
        chosen.notes.push_back(
            fmt::format("each of the {} query heads keeps {} tokens of its own choice (L4): what is drawn of a KV "
                        "head, and its log det and sums of cosines, is the union of its group; bytes count every copy",
                        chosen.queryHeads.size(), count));
        return chosen;
    }

    Protection protection(const ParameterValues& values, std::int64_t) const override {
        return {values.integer("protect_first"), std::max(values.integer("window"), values.integer("protect_last"))};
    }

    std::int64_t queriesRead(const ParameterValues& values) const override { return values.integer("window"); }

    std::vector<std::string> notes(const PolicyInput& input, const ParameterValues& values) const override {
        const QueryWindow window = lastQueries(input, values.integer("window"), card().name);
        if (window.count == window.wanted) return {};
        return {"SnapKV saw " + std::to_string(window.count) + " of its " + std::to_string(window.wanted) +
                " window queries before token " + std::to_string(input.end) + ": the capture holds no others"};
    }
};

} // namespace

const Policy& snapkvPolicy() { return onlyPolicy<SnapKv>(); }

} // namespace kvscope
