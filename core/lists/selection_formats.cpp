// What the three forms of a retained-index list share: the metadata as keys and texts, numbers as texts that read back
// to the same bits, and the rules that every list obeys.
#include "core/lists/selection_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>

namespace kvscope {

namespace {

constexpr std::array<SelectionField, 18> kFields = {{
    {"capture", "file", &RecordedSelection::captureFile},
    {"capture", "hash", &RecordedSelection::captureHash},
    {"capture", "tokens", &RecordedSelection::captureTokens},
    {"capture", "warning", &RecordedSelection::captureWarning},
    {"", "cut", &RecordedSelection::cut},
    {"", "cut_token", &RecordedSelection::cutToken},
    {"", "policy", &RecordedSelection::policy},
    {"", "variant", &RecordedSelection::variant},
    {"budget", "requested", &RecordedSelection::budgetRequested},
    {"budget", "requested_tokens", &RecordedSelection::budgetTokens},
    {"budget", "kept", &RecordedSelection::budgetKept},
    {"budget", "origin", &RecordedSelection::budgetOrigin},
    {"", "seed", &RecordedSelection::seed},
    {"", "random", &RecordedSelection::random},
    {"", "engine", &RecordedSelection::engine},
    {"", "arithmetic", &RecordedSelection::arithmetic},
    {"", "simulated", &RecordedSelection::simulated},
    {"", "command", &RecordedSelection::command},
}};

std::string headName(const RecordedHead& head) {
    return "layer " + std::to_string(head.layer) + ", KV head " + std::to_string(head.kvHead);
}

void checkWeights(const RecordedHead& head, std::vector<float>& weights, const std::string& path) {
    if (!weights.empty() && weights.size() != head.kept.size())
        throw Error(
            {std::to_string(weights.size()) + " weights for " + std::to_string(head.kept.size()) + " kept tokens",
             headName(head), "Give one weight per kept token", path});
    for (const float weight : weights)
        if (!(weight >= 0 && std::isfinite(weight)))
            throw Error({"a weight is negative or not finite", headName(head), "", path});
    if (std::ranges::all_of(weights, [](float weight) { return weight == 1; })) weights.clear();
}

void checkAscending(const std::vector<TokenIndex>& kept, const std::string& place, const std::string& path) {
    if (!kept.empty() && kept.front() < 0)
        throw Error({"a kept index is negative", place, "Indices are 0-based", path});
    if (const auto at = std::ranges::adjacent_find(kept, std::greater_equal<>()); at != kept.end())
        throw Error({"kept indices are not strictly ascending: " + std::to_string(at[0]) + " comes before " +
                         std::to_string(at[1]),
                     place, "Sort them and leave out repetitions", path});
}

void tidyScores(const std::vector<TokenIndex>& kept, const std::vector<float>& scores, std::vector<std::int64_t>& ranks,
                std::int64_t tokens, const std::string& place, const std::string& path) {
    const bool tooFew = !kept.empty() && std::cmp_greater_equal(kept.back(), scores.size());
    if (!scores.empty() && (tooFew || (tokens > 0 && std::cmp_not_equal(scores.size(), tokens))))
        throw Error({std::to_string(scores.size()) + " scores, not one per token of the capture", place, "", path});
    if (scores.empty())
        ranks.clear();
    else if (ranks.size() != kept.size())
        ranks = ranksOf(kept, scores);
}

void tidyQueryHeads(RecordedHead& head, std::int64_t tokens, const std::string& path) {
    if (head.queryHeads.empty()) return;
    if (!head.numeratorWeights.empty() || !head.denominatorWeights.empty())
        throw Error(
            {"query heads have sets of their own beside weights", headName(head), "Give one or the other", path});
    std::ranges::sort(head.queryHeads, {}, &QueryHeadSet::queryHead);
    std::vector<TokenIndex> all;
    for (std::size_t i = 0; i < head.queryHeads.size(); ++i) {
        RecordedQueryHead& own = head.queryHeads[i];
        const std::string place = headName(head) + ", query head " + std::to_string(own.queryHead);
        if (own.queryHead < 0 || (i > 0 && own.queryHead == head.queryHeads[i - 1].queryHead))
            throw Error({"a query head is negative or has two sets", place, "", path});
        checkAscending(own.kept, place, path);
        tidyScores(own.kept, own.scores, own.ranks, tokens, place, path);
        all.insert(all.end(), own.kept.begin(), own.kept.end());
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all != head.kept)
        throw Error({"the kept tokens are not the union of those of the query heads", headName(head),
                     "List in kept every token that a query head keeps, and no other", path});
}

void tidyHead(RecordedHead& head, std::int64_t tokens, const std::string& path) {
    if (head.layer < 0 || head.kvHead < 0) throw Error({"a layer or KV head is negative", headName(head), "", path});
    if (head.storedKeys < -1 || head.storedValues < -1)
        throw Error(
            {"a number of stored rows is negative", headName(head), "Leave it out where it is not known", path});
    checkAscending(head.kept, headName(head), path);
    checkWeights(head, head.numeratorWeights, path);
    checkWeights(head, head.denominatorWeights, path);
    tidyQueryHeads(head, tokens, path);
    tidyScores(head.kept, head.scores, head.ranks, tokens, headName(head), path);
}

/// As JSON, Python and HDF5 (a number) spell it. Throws Error for other texts: a simulated list must not pass for a
/// real one.
bool readTruth(std::string_view text, const std::string& place, const std::string& path) {
    for (const std::string_view yes : {"true", "True", "1"})
        if (text == yes) return true;
    for (const std::string_view no : {"false", "False", "0"})
        if (text == no) return false;
    throw Error({fmt::format("'{}' is neither true nor false", text), place, "Write true or false", path});
}

} // namespace

std::span<const SelectionField> selectionFields() { return kFields; }

std::string SelectionField::text(const RecordedSelection& selection) const {
    const auto text = [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>)
            return value;
        else if constexpr (std::is_same_v<T, bool>)
            return value ? "true" : "false";
        else if constexpr (std::is_floating_point_v<T>)
            return shortest(value);
        else
            return std::to_string(value);
    };
    return std::visit([&](auto field) { return text(selection.*field); }, member);
}

void SelectionField::setText(RecordedSelection& selection, std::string_view text, const std::string& path) const {
    const auto set = [&](auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>)
            value = text;
        else if constexpr (std::is_same_v<T, bool>)
            value = readTruth(text, key(), path);
        else
            value = readNumber<T>(text, key(), path);
    };
    std::visit([&](auto field) { set(selection.*field); }, member);
}

void checkFormat(std::string_view format, std::string_view version, const std::string& path) {
    if (format != kSelectionFormat)
        throw Error({fmt::format("the file is not a {} but '{}'", kSelectionFormat, format), "format", "", path});
    if (version != std::to_string(kSelectionVersion))
        throw Error({fmt::format("version {} of the list is not known", version), "version",
                     fmt::format("This program reads version {}", kSelectionVersion), path});
}

std::vector<std::int64_t> ranksOf(const std::vector<TokenIndex>& kept, const std::vector<float>& scores) {
    std::vector<TokenIndex> order;
    for (std::size_t i = 0; i < scores.size(); ++i)
        if (!std::isnan(scores[i])) order.push_back(static_cast<TokenIndex>(i));
    const auto scoreOf = [&](TokenIndex token) { return scores[token]; };
    std::ranges::stable_sort(order, [&](TokenIndex a, TokenIndex b) { return scoreOf(a) > scoreOf(b); });
    std::vector<std::int64_t> rankOfToken(scores.size(), -1);
    for (std::size_t rank = 0; rank < order.size(); ++rank) rankOfToken[order[rank]] = static_cast<std::int64_t>(rank);
    std::vector<std::int64_t> ranks;
    for (const TokenIndex token : kept) ranks.push_back(rankOfToken[token]);
    return ranks;
}

void tidyHeads(RecordedSelection& selection, const std::string& path) {
    for (RecordedHead& head : selection.heads) tidyHead(head, selection.captureTokens, path);
    const auto order = [](const RecordedHead& a, const RecordedHead& b) {
        return std::pair(a.layer, a.kvHead) < std::pair(b.layer, b.kvHead);
    };
    std::ranges::sort(selection.heads, order);
    const auto twice = std::ranges::adjacent_find(
        selection.heads, [&](const RecordedHead& a, const RecordedHead& b) { return !order(a, b); });
    if (twice != selection.heads.end())
        throw Error({"two lists for one head", headName(*twice), "Give each head once", path});
}

} // namespace kvscope
