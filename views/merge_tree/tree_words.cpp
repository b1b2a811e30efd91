// The numbers of the tree in words: captions of the steps, the finding, read-outs.
#include "views/merge_tree/tree_words.h"

#include "views/common/balance_words.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace kvscope {

namespace {

/// "12, 17, 19 … 127".
std::string listOf(const std::vector<TokenIndex>& tokens) {
    std::string text;
    const std::size_t shown = tokens.size() <= 6 ? tokens.size() : 5;
    for (std::size_t i = 0; i < shown; ++i) text += (i > 0 ? ", " : "") + formatCount(tokens[i]);
    return shown < tokens.size() ? text + " … " + formatCount(tokens.back()) : text;
}

/// Levels that the last full batch filled: 1, and one more for every pair of halves that became complete.
std::int64_t levelsReached(const TreeState& state) {
    const std::int64_t trailing = std::countr_zero(static_cast<std::uint64_t>(state.batches()));
    return std::min(state.levels(), trailing + 1);
}

/// Errors of the stored samples at the last evaluated cursor up to this one.
const MergeTreeData::At* errorsUntil(const MergeTreeData& data, TokenIndex cursor) {
    const MergeTreeData::At* last = nullptr;
    for (const MergeTreeData::At& at : data.errors)
        if (at.cursor <= cursor) last = &at;
    return last;
}

/// "15th".
std::string ordinal(std::int64_t number) {
    const std::int64_t last = number % 10;
    const bool teen = number / 10 % 10 == 1;
    return formatCount(number) + (teen || last == 0 || last > 3 ? "th" : last == 1 ? "st" : last == 2 ? "nd" : "rd");
}

std::string beforeFirstBatch(const TreeState& state) {
    const std::int64_t size = state.tree().batch;
    if (state.levels() == 0)
        return fmt::format("T = 0: nothing is ever reduced, all {} pairs stay exact.", formatCount(state.seen()));
    return fmt::format(
        "C⁰ collects pairs one by one: {} of t = {}. Until it is full everything is exact, with weight 1.",
        formatCount(state.seen()), formatCount(size));
}

} // namespace

bool isErased(const MergeTreeData& data, const BalanceTree& tree, TokenIndex cursor) {
    return tree.numerator && std::ldexp(1.0, tree.bucket) <= data.stream->eraseLineAt(data.kvHead, cursor);
}

std::string treeName(const BalanceTree& tree) {
    return tree.numerator ? "values with " + octaveText(tree.bucket) : "the keys of the denominator";
}

std::string treeCaption(const MergeTreeData& data, const TreeState& state) {
    const std::int64_t batches = state.batches();
    if (batches == 0 || state.levels() == 0) return beforeFirstBatch(state);
    const BalanceNode& first = state.node(1, batches - 1);
    const auto kept = std::ssize(first.output), gone = std::ssize(first.input) - kept;
    std::string text =
        fmt::format("Batch {} (0-based), the {} of t = {} pairs, is full: SoftmaxBalance signs them one by one and "
                    "keeps the smaller sign group, "
                    "{} pairs enter C¹ with weight 2, {} leave.",
                    formatCount(batches - 1), ordinal(batches), formatCount(state.tree().batch), kept, gone);
    const std::int64_t reached = levelsReached(state);
    if (reached == 1)
        return text + (state.levels() == 1 ? " T = 1: C¹ is never reduced."
                       : batches == 1      ? " It is the only one so far, so nothing merges yet."
                                      : fmt::format(" {} full batches are an odd number, so nothing merges further.",
                                                    formatCount(batches)));
    for (std::int64_t level = 2; level <= reached; ++level) {
        const BalanceNode& node = state.node(level, (batches >> (level - 1)) - 1);
        text += fmt::format(" {} in {} make {} in {}, weight {}{}", std::ssize(node.input), setName(level - 1),
                            std::ssize(node.output), setName(level), std::int64_t{1} << level,
                            level == reached ? "." : ";");
    }
    if (const MergeTreeData::At* at = errorsUntil(data, state.cursor()); at && at->cursor == state.cursor())
        text += fmt::format(" z is off by {}.", formatPercent(at->errors.output));
    return text;
}

std::string treeFinding(const MergeTreeData& data, const TreeState& state) {
    const std::int64_t stored = state.stored(), seen = std::max<std::int64_t>(1, state.seen());
    std::string text = data.standIn ? "Example: " : "";
    if (state.isErased())
        return text +
               fmt::format("Octave {} lies below the erase line and is dropped: 0 of {} pairs read are in memory",
                           state.tree().bucket, formatCount(state.seen()));
    text += fmt::format(
        "{} of {} pairs read are in memory ({}) and stand for {}", formatCount(stored), formatCount(state.seen()),
        formatPercent(static_cast<double>(stored) / static_cast<double>(seen)), formatCount(state.weightedCount()));
    if (data.query < 0) return text + "; no discrepancies: " + data.whyNoQuery;
    double worst = -1;
    std::int64_t at = 0;
    for (std::int64_t level = 1; level <= state.levels(); ++level)
        for (std::int64_t place = 0; place < state.nodeCount(level); ++place)
            if (state.stateOf(level, place) == NodeState::Live && data.numbersOf(level, place).discrepancy > worst) {
                worst = data.numbersOf(level, place).discrepancy;
                at = level;
            }
    if (worst >= 0) text += fmt::format("; largest live discrepancy {} in {}", formatPercent(worst), setName(at));
    if (const MergeTreeData::At* errors = errorsUntil(data, state.cursor()))
        text += fmt::format("; at j = {} z is off by {} for query {}", formatCount(errors->cursor),
                            formatPercent(errors->errors.output), formatCount(data.query));
    return text;
}

std::vector<std::string> nodeCells(const MergeTreeData& data, const TreeState& state, std::int64_t level,
                                   std::int64_t place) {
    const BalanceNode& node = state.node(level, place);
    const MergeTreeData::Node& numbers = data.numbersOf(level, place);
    const NodeState now = state.stateOf(level, place);
    return tableRow(level, place, state.firstBatch(level, place), state.lastBatch(level, place) - 1, node.input.size(),
                    node.output.size(), std::int64_t{1} << level,
                    std::accumulate(node.signs.begin(), node.signs.end(), std::int64_t{0}),
                    data.query < 0 ? "" : tableNumber(numbers.discrepancy), numbers.largest,
                    now == NodeState::Live     ? "live"
                    : now == NodeState::Future ? "to come"
                    : state.isErased()         ? "dropped"
                                               : "merged",
                    fmt::format("{}", fmt::join(node.output, " ")));
}

PointFacts nodeFacts(const MergeTreeData& data, const TreeState& state, std::int64_t level, std::int64_t place) {
    const BalanceNode& node = state.node(level, place);
    const MergeTreeData::Node& numbers = data.numbersOf(level, place);
    const auto plus = std::ranges::count(node.signs, std::int8_t{1}), minus = std::ssize(node.signs) - plus;
    const NodeState now = state.stateOf(level, place);
    PointFacts facts;
    facts.rows.emplace_back("set", fmt::format("{}, node {} (0-based)", setName(level), place));
    facts.rows.emplace_back("batches",
                            fmt::format("{}–{}", state.firstBatch(level, place), state.lastBatch(level, place) - 1));
    facts.rows.emplace_back("now", now == NodeState::Live     ? "in memory"
                                   : now == NodeState::Future ? "still to come"
                                   : state.isErased()         ? "dropped, below the erase line"
                                                              : "gone up into " + setName(level + 1));
    facts.rows.emplace_back("keeps", fmt::format("{} of {}", node.output.size(), node.input.size()));
    facts.rows.emplace_back("weight", std::to_string(std::int64_t{1} << level));
    facts.rows.emplace_back(
        "signs", fmt::format("{} +, {} −, Σ η = {}{}", plus, minus, plus < minus ? "−" : "", std::abs(plus - minus)));
    if (data.query >= 0 && !std::isnan(numbers.discrepancy))
        facts.rows.emplace_back(fmt::format("discrepancy, query {}", formatCount(data.query)),
                                formatPercent(numbers.discrepancy));
    facts.rows.emplace_back("largest |1 − 2p|", formatShort(numbers.largest));
    if (numbers.repeats > 0) facts.rows.emplace_back("FAILs before", std::to_string(numbers.repeats));
    facts.rows.emplace_back("members", listOf(node.output));
    return facts;
}

std::vector<TokenIndex> membersOf(const MergeTreeData& data, const TreeState& state, std::int64_t level,
                                  std::int64_t place) {
    if (level == kOctaveLevel) return data.stream->trees[data.octaves[place].tree].rows;
    if (level > 0) return state.node(level, place).output;
    const auto first = state.tree().rows.begin();
    return {first + state.beginOf(place), first + state.beginOf(place + 1)};
}

PointFacts batchFacts(const ViewInput& input, const MergeTreeData& data, const TreeState& state, std::int64_t batch,
                      TokenIndex token) {
    PointFacts facts;
    const std::vector<TokenIndex> all = membersOf(data, state, 0, batch);
    const auto left = std::ranges::count_if(all, [&](TokenIndex row) { return state.inMemory(row); });
    facts.rows.emplace_back("batch", fmt::format("{} (0-based)", batch));
    facts.rows.emplace_back("in memory", fmt::format("{} of {}", left, all.size()));
    if (token < 0) return facts;
    facts.token = token;
    facts.rows.emplace_back("token", fmt::format("{}  \"{}\"", formatCount(token), tokenText(input, token)));
    const TreeState::Path path = state.pathOf(token);
    std::string way = path.batch < 0 ? "not read yet" : "C⁰";
    for (std::size_t level = 1; level <= path.kept.size(); ++level)
        way += " → " + setName(static_cast<std::int64_t>(level));
    if (path.droppedAt > 0) way += fmt::format(", left on the way to {}", setName(path.droppedAt));
    if (state.isErased()) way += ", dropped with its octave";
    facts.rows.emplace_back("path", way);
    return facts;
}

PointFacts octaveFacts(const MergeTreeData& data, std::int64_t index, TokenIndex cursor) {
    const BalanceTree& tree = data.stream->trees[data.octaves[index].tree];
    const auto read = std::ranges::lower_bound(tree.rows, cursor) - tree.rows.begin();
    const bool erased = isErased(data, tree, cursor);
    PointFacts facts;
    facts.rows = {{"octave", fmt::format("{}: {}", tree.bucket, octaveText(tree.bucket))},
                  {"values read", fmt::format("{} of {}", formatCount(read), formatCount(std::ssize(tree.rows)))},
                  {"now", erased     ? "below the erase line: dropped"
                          : read > 0 ? "has its own tree"
                                     : "nothing read yet"}};
    return facts;
}

} // namespace kvscope
