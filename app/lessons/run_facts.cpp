// Every check reads the log of the run again, with loops of its own.
#include "app/lessons/run_facts.h"

#include "views/clustering/stream_state.h"
#include "views/common/balance_words.h"
#include "views/merge_tree/merge_tree_data.h"
#include "views/merge_tree/tree_layout.h"
#include "views/walk/walk_picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace kvscope {

namespace {

constexpr double kRounding = 1e-5; // of sums of floats

bool outputsAreHalves(const BalanceTree& tree) {
    return std::ranges::all_of(tree.nodes, [](const auto& level) {
        return std::ranges::all_of(level,
                                   [](const BalanceNode& node) { return 2 * node.output.size() <= node.input.size(); });
    });
}

bool setsAreApart(const TreeState& state) {
    std::set<TokenIndex> rows;
    std::size_t all = 0;
    for (const auto& set : state.sets()) {
        rows.insert(set.begin(), set.end());
        all += set.size();
    }
    return rows.size() == all && (rows.empty() || *rows.rbegin() < state.cursor());
}

/// C^i, 0 < i < T, may hold pairs only where bit i - 1 of the number of full batches is set.
bool setsFollowTheCounter(const TreeState& state) {
    for (std::int64_t level = 1; level < state.levels(); ++level)
        if (!state.sets()[static_cast<std::size_t>(level)].empty() && ((state.batches() >> (level - 1)) & 1) == 0)
            return false;
    return true;
}

RunFacts factsOf(const MergeTreeData& data, std::optional<TokenIndex> cursor) {
    RunFacts facts;
    const BalanceTree* tree = data.shown();
    if (!tree) return facts;
    const TreeState state(*tree, cursor.value_or(static_cast<TokenIndex>(data.stream->tokens)));
    double largest = 0;
    for (std::int64_t level = 1; level <= state.levels(); ++level)
        for (std::int64_t place = 0; place < state.nodeCount(level); ++place)
            if (state.stateOf(level, place) != NodeState::Future)
                largest = std::max(largest, data.numbersOf(level, place).largest);
    std::vector<std::size_t> sizes;
    for (const auto& set : state.sets()) sizes.push_back(set.size());
    const auto batches = static_cast<std::uint64_t>(state.batches());
    facts.now = {{"pairs read j", formatCount(state.seen())},
                 {"full batches of " + formatCount(tree->batch), fmt::format("{} = {:b} in binary", batches, batches)},
                 {"sizes |C⁰| … |" + setName(state.levels()) + "|", fmt::format("{}", fmt::join(sizes, ", "))},
                 {"weighted count Σ 2ⁱ|Cⁱ|",
                  fmt::format("{} for {}", formatCount(state.weightedCount()), formatCount(state.seen()))},
                 {"largest |yᵀη|/(cR²)", formatShort(largest)}};
    facts.checks = {{"C⁰ holds less than a batch", std::ssize(state.sets().front()) < tree->batch},
                    {"A set below the last level is filled only where its bit of the batch count is 1",
                     setsFollowTheCounter(state)},
                    {"Each output holds at most half of its input", outputsAreHalves(*tree)},
                    {"The sets share no pair, and hold none that is still to come", setsAreApart(state)}};
    return facts;
}

/// Q grows by 2 η y + M_jj with every sign η, where y is taken before the sign.
bool discrepancyFollows(const BalanceWalkLog& walk, std::int64_t steps) {
    double q = 0, coins = 0, scale = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(steps); ++j) {
        const double own = walk.fairCoins[j] - coins;
        coins = walk.fairCoins[j];
        if (walk.signs[j] != 0) q += 2 * walk.signs[j] * walk.products[j] + own;
        scale = std::max({scale, std::abs(q), coins});
        if (std::abs(q - walk.quadratic[j]) > kRounding * scale) return false;
    }
    return true;
}

RunFacts factsOf(const WalkData& data, std::optional<TokenIndex> cursor) {
    RunFacts facts;
    const WalkNow now = walkNow(data, cursor);
    if (!now.walk || now.steps == 0) return facts;
    const BalanceWalkLog& walk = *now.walk->log;
    const auto last = static_cast<std::size_t>(now.steps - 1);
    const std::int64_t outside = stepsOutside(walk, now.steps);
    const auto given = [&](std::int8_t sign) {
        return std::count(walk.signs.begin(), walk.signs.begin() + now.steps, sign);
    };
    facts.now = {{"pairs signed of " + walkName(data, walk), fmt::format("{} of {}", now.steps, now.size())},
                 {"signs + and −", fmt::format("{} and {}", given(1), given(-1))},
                 {"yᵀη/(cR²) of the last", formatShort(leanOf(walk, now.steps - 1))},
                 {"Q, and of fair coins",
                  fmt::format("{} and {}", formatShort(walk.quadratic[last]), formatShort(walk.fairCoins[last]))}};
    facts.checks = {{outside == 0 ? "|yᵀη| stays within cR², so p is a chance"
                                  : fmt::format("|yᵀη| stays within cR²: not on {} steps, where the sign is certain",
                                                formatCount(outside)),
                     outside == 0},
                    {"Q grows by 2η·yᵀη + Mⱼⱼ with each sign", discrepancyFollows(walk, now.steps)}};
    return facts;
}

RunFacts factsOf(const ClusteringData& data, std::optional<TokenIndex> cursor) {
    RunFacts facts;
    if (!data.stream) return facts;
    const SubgenLog::Head& stream = *data.stream;
    const StreamState state = streamState(stream, cursor);
    std::int64_t members = 0;
    for (const std::int64_t count : state.counts) members += count;
    const double widest = state.radii.empty() ? 0 : *std::ranges::max_element(state.radii);
    facts.now = {{"tokens read", formatCount(state.read)},
                 {"clusters m", formatCount(static_cast<std::int64_t>(state.clusters))},
                 {"largest cluster", state.counts.empty() ? "0" : formatCount(*std::ranges::max_element(state.counts))},
                 {"largest radius, and δ", fmt::format("{} and {}", formatShort(widest), formatShort(stream.delta))}};
    facts.checks = {{"Every token lies within δ of its representative", widest <= stream.delta * (1 + kRounding)},
                    {"The clusters hold every token once", members == state.read}};
    return facts;
}

} // namespace

RunFacts runFacts(const ViewInput& input) {
    if (const auto tree = std::dynamic_pointer_cast<const MergeTreeData>(input.data.value))
        return factsOf(*tree, input.cursor);
    if (const auto walk = std::dynamic_pointer_cast<const WalkData>(input.data.value))
        return factsOf(*walk, input.cursor);
    if (const auto clusters = std::dynamic_pointer_cast<const ClusteringData>(input.data.value))
        return factsOf(*clusters, input.cursor);
    return {};
}

} // namespace kvscope
