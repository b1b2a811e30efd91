// What the three forms of a retained-index list share: the metadata as keys and texts, numbers as texts that read back
// to the same bits, and the rules that every list obeys.
#include "core/lists/selection_formats.h"

#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

namespace kvscope {

namespace {

constexpr std::string_view kParameterPrefix = "parameter.";

template <class Number> std::string shortestText(Number value) {
    if (std::isnan(value))
        return {};
    std::array<char, 40> buffer{};
    return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

template <class Number>
Number parse(std::string_view text, const std::string& place, const std::string& path, const char* what) {
    Number value{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size())
        throw Error({"'" + std::string(text) + "' is not " + what, place, {}, path});
    return value;
}

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
            throw Error({"a weight is negative or not finite", headName(head), {}, path});
    if (std::all_of(weights.begin(), weights.end(), [](float weight) { return weight == 1; }))
        weights.clear();
}

void checkAscending(const std::vector<TokenIndex>& kept, const std::string& place, const std::string& path) {
    if (!kept.empty() && kept.front() < 0)
        throw Error({"a kept index is negative", place, "Indices are 0-based", path});
    if (const auto at = std::adjacent_find(kept.begin(), kept.end(), std::greater_equal<>()); at != kept.end())
        throw Error({"kept indices are not strictly ascending: " + std::to_string(at[0]) + " comes before " +
                         std::to_string(at[1]),
                     place, "Sort them and leave out repetitions", path});
}

void tidyScores(const std::vector<TokenIndex>& kept, const std::vector<float>& scores, std::vector<std::int64_t>& ranks,
                std::int64_t tokens, const std::string& place, const std::string& path) {
    const bool tooFew = !kept.empty() && std::cmp_greater_equal(kept.back(), scores.size());
    if (!scores.empty() && (tooFew || (tokens > 0 && std::cmp_not_equal(scores.size(), tokens))))
        throw Error({std::to_string(scores.size()) + " scores, not one per token of the capture", place, {}, path});
    if (scores.empty())
        ranks.clear();
    else if (ranks.size() != kept.size())
        ranks = ranksOf(kept, scores);
}

void tidyQueryHeads(RecordedHead& head, std::int64_t tokens, const std::string& path) {
    if (head.queryHeads.empty())
        return;
    if (!head.numeratorWeights.empty() || !head.denominatorWeights.empty())
        throw Error(
            {"query heads have sets of their own beside weights", headName(head), "Give one or the other", path});
    std::sort(head.queryHeads.begin(), head.queryHeads.end(),
              [](const QueryHeadSet& a, const QueryHeadSet& b) { return a.queryHead < b.queryHead; });
    std::vector<TokenIndex> all;
    for (std::size_t i = 0; i < head.queryHeads.size(); ++i) {
        RecordedQueryHead& own = head.queryHeads[i];
        const std::string place = headName(head) + ", query head " + std::to_string(own.queryHead);
        if (own.queryHead < 0 || (i > 0 && own.queryHead == head.queryHeads[i - 1].queryHead))
            throw Error({"a query head is negative or has two sets", place, {}, path});
        checkAscending(own.kept, place, path);
        tidyScores(own.kept, own.scores, own.ranks, tokens, place, path);
        all.insert(all.end(), own.kept.begin(), own.kept.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all != head.kept)
        throw Error({"the kept tokens are not the union of those of the query heads", headName(head),
                     "List in kept every token that a query head keeps, and no other", path});
}

void tidyHead(RecordedHead& head, std::int64_t tokens, const std::string& path) {
    if (head.layer < 0 || head.kvHead < 0)
        throw Error({"a layer or KV head is negative", headName(head), {}, path});
    if (head.storedKeys < -1 || head.storedValues < -1)
        throw Error(
            {"a number of stored rows is negative", headName(head), "Leave it out where it is not known", path});
    checkAscending(head.kept, headName(head), path);
    checkWeights(head, head.numeratorWeights, path);
    checkWeights(head, head.denominatorWeights, path);
    tidyQueryHeads(head, tokens, path);
    tidyScores(head.kept, head.scores, head.ranks, tokens, headName(head), path);
}

} // namespace

std::vector<SelectionField> selectionFields(const RecordedSelection& s) {
    std::vector<SelectionField> fields = {{"format", std::string(kSelectionFormat)},
                                          {"version", std::to_string(kSelectionVersion)},
                                          {"capture_file", s.captureFile},
                                          {"capture_hash", s.captureHash},
                                          {"capture_tokens", std::to_string(s.captureTokens)},
                                          {"cut", s.cut},
                                          {"cut_token", std::to_string(s.cutToken)},
                                          {"policy", s.policy},
                                          {"variant", s.variant},
                                          {"budget_requested", s.budgetRequested},
                                          {"budget_requested_tokens", std::to_string(s.budgetTokens)},
                                          {"budget_kept", shortest(s.budgetKept)},
                                          {"budget_origin", s.budgetOrigin},
                                          {"seed", std::to_string(s.seed)},
                                          {"engine", s.engine},
                                          {"arithmetic", s.arithmetic},
                                          {"simulated", s.simulated ? "true" : "false"},
                                          {"command", s.command}};
    for (const auto& [id, value] : s.parameters)
        fields.push_back({std::string(kParameterPrefix) + id, value});
    return fields;
}

void setSelectionField(RecordedSelection& s, const SelectionField& field, const std::string& path) {
    const auto& [key, value] = field;
    const std::array<std::pair<const char*, std::string*>, 10> texts = {{{"capture_file", &s.captureFile},
                                                                         {"capture_hash", &s.captureHash},
                                                                         {"cut", &s.cut},
                                                                         {"policy", &s.policy},
                                                                         {"variant", &s.variant},
                                                                         {"budget_requested", &s.budgetRequested},
                                                                         {"budget_origin", &s.budgetOrigin},
                                                                         {"engine", &s.engine},
                                                                         {"arithmetic", &s.arithmetic},
                                                                         {"command", &s.command}}};
    for (const auto& [name, target] : texts)
        if (key == name)
            *target = value;
    if (key.starts_with(kParameterPrefix))
        s.parameters.emplace_back(key.substr(kParameterPrefix.size()), value);
    else if (key == "capture_tokens")
        s.captureTokens = readWhole(value, key, path);
    else if (key == "cut_token")
        s.cutToken = parse<TokenIndex>(value, key, path, "a token");
    else if (key == "budget_kept")
        s.budgetKept = readNumber(value, key, path);
    else if (key == "budget_requested_tokens")
        s.budgetTokens = readWhole(value, key, path);
    else if (key == "seed")
        s.seed = parse<std::uint64_t>(value, key, path, "a seed");
    else if (key == "simulated")
        s.simulated = value == "true";
    else if (key == "format" && value != kSelectionFormat)
        throw Error({"the file is not a " + std::string(kSelectionFormat) + " but '" + value + "'", key, {}, path});
    else if (key == "version" && value != std::to_string(kSelectionVersion))
        throw Error({"version " + value + " of the list is not known", key,
                     "This program reads version " + std::to_string(kSelectionVersion), path});
}

std::string shortest(double value) { return shortestText(value); }
std::string shortest(float value) { return shortestText(value); }

double readNumber(std::string_view text, const std::string& place, const std::string& path) {
    return parse<double>(text, place, path, "a number");
}

std::int64_t readWhole(std::string_view text, const std::string& place, const std::string& path) {
    return parse<std::int64_t>(text, place, path, "a whole number");
}

std::vector<std::int64_t> ranksOf(const std::vector<TokenIndex>& kept, const std::vector<float>& scores) {
    std::vector<TokenIndex> order;
    for (std::size_t i = 0; i < scores.size(); ++i)
        if (!std::isnan(scores[i]))
            order.push_back(static_cast<TokenIndex>(i));
    const auto scoreOf = [&](TokenIndex token) { return scores[static_cast<std::size_t>(token)]; };
    std::stable_sort(order.begin(), order.end(), [&](TokenIndex a, TokenIndex b) { return scoreOf(a) > scoreOf(b); });
    std::vector<std::int64_t> rankOfToken(scores.size(), -1);
    for (std::size_t rank = 0; rank < order.size(); ++rank)
        rankOfToken[static_cast<std::size_t>(order[rank])] = static_cast<std::int64_t>(rank);
    std::vector<std::int64_t> ranks;
    for (const TokenIndex token : kept)
        ranks.push_back(rankOfToken[static_cast<std::size_t>(token)]);
    return ranks;
}

void tidyHeads(RecordedSelection& selection, const std::string& path) {
    for (RecordedHead& head : selection.heads)
        tidyHead(head, selection.captureTokens, path);
    const auto order = [](const RecordedHead& a, const RecordedHead& b) {
        return std::pair(a.layer, a.kvHead) < std::pair(b.layer, b.kvHead);
    };
    std::sort(selection.heads.begin(), selection.heads.end(), order);
    const auto twice = std::adjacent_find(selection.heads.begin(), selection.heads.end(),
                                          [&](const RecordedHead& a, const RecordedHead& b) { return !order(a, b); });
    if (twice != selection.heads.end())
        throw Error({"two lists for one head", headName(*twice), "Give each head once", path});
}

} // namespace kvscope
