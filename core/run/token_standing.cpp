// Why a token is kept or evicted: where it stands among the scores of its head, how far the decision was from going the
// other way, and the smallest budget that keeps it.
#include "core/run/run.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>

namespace kvscope {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool contains(const std::vector<TokenIndex>& ascending, TokenIndex token) {
    return std::binary_search(ascending.begin(), ascending.end(), token);
}

/// Order of the index contract: score descending, index ascending.
bool comesBefore(std::span<const float> scores, TokenIndex a, TokenIndex b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
}

/// Scored tokens of [begin, end) that come before `token`.
std::int64_t betterIn(std::span<const float> scores, std::int64_t begin, std::int64_t end, TokenIndex token) {
    std::int64_t count = 0;
    for (std::int64_t i = begin; i < end; ++i)
        count += comesBefore(scores, static_cast<TokenIndex>(i), token) ? 1 : 0;
    return count;
}

double marginOf(std::span<const float> scores, const HeadSelection& head, const TokenStanding& standing) {
    if (standing.isProtected)
        return kInfinity;
    double bestEvicted = -kInfinity, worstKept = kInfinity;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto token = static_cast<TokenIndex>(i);
        if (std::isnan(scores[i]) || contains(head.protectedTokens, token))
            continue;
        if (contains(head.kept, token))
            worstKept = std::min<double>(worstKept, scores[i]);
        else
            bestEvicted = std::max<double>(bestEvicted, scores[i]);
    }
    return standing.score - (standing.kept ? bestEvicted : worstKept);
}

/// What select does for one token of one head at a given budget.
bool keptAt(std::span<const float> scores, TokenIndex token, const Protection& wanted, std::int64_t budget) {
    const auto n = static_cast<std::int64_t>(scores.size());
    const Protection fitted = wanted.within(budget, n);
    if (token < fitted.first || token >= n - fitted.last)
        return true;
    return betterIn(scores, fitted.first, n - fitted.last, token) < budget - fitted.first - fitted.last;
}

/// Kept sets grow with the budget: one more token is either one more place by score or one more protected token, and
/// a token that becomes protected gives its place by score to the next one. So bisection finds the smallest budget.
std::int64_t smallestLayerCount(std::span<const float> scores, TokenIndex token, const Policy& policy,
                                const ParameterValues& values) {
    std::int64_t tooSmall = 0, enough = static_cast<std::int64_t>(scores.size());
    while (enough - tooSmall > 1) {
        const std::int64_t middle = (tooSmall + enough) / 2;
        if (keptAt(scores, token, policy.protection(values, middle), middle))
            enough = middle;
        else
            tooSmall = middle;
    }
    return enough;
}

/// The layer's share of a budget need not grow with it (PyramidKV turns from uniform to pyramid), so the smallest budget
/// that gives the layer enough is looked for from below.
std::int64_t smallestBudget(std::span<const float> scores, TokenIndex token, const Policy& policy,
                            const RunRequest& request) {
    const ParameterValues& values = request.policy.values;
    const auto n = static_cast<std::int64_t>(scores.size());
    const std::int64_t enough = smallestLayerCount(scores, token, policy, values);
    const int layers = request.capture->info().numLayers;
    std::int64_t budget = 1;
    while (budget < n && policy.layerCount(request.layer, layers, n, values, budget) < enough)
        ++budget;
    return budget;
}

} // namespace

TokenStanding standingOf(const RunResult& result, KvHeadIndex head, TokenIndex token) {
    assert(token >= 0 && token < result.visible);
    const auto h = static_cast<std::size_t>(head.value);
    const HeadSelection& selection = result.selection.heads[h];
    TokenStanding standing;
    standing.kept = contains(selection.kept, token);
    standing.isProtected = contains(selection.protectedTokens, token);
    standing.score = standing.margin = std::numeric_limits<double>::quiet_NaN();
    const std::size_t row = h * static_cast<std::size_t>(result.visible);
    const std::size_t at = row + static_cast<std::size_t>(token);
    if (result.scores.empty() || std::isnan(result.scores.data[at]))
        return standing;
    const std::span<const float> scores(result.scores.data.data() + row, static_cast<std::size_t>(result.visible));
    standing.scored = true;
    standing.score = result.scores.data[at];
    standing.rank = betterIn(scores, 0, result.visible, token);
    standing.margin = marginOf(scores, selection, standing);
    for (const auto& [name, part] : result.parts)
        standing.parts.emplace_back(name, part.data[at]);
    const RunRequest& request = result.request;
    if (request.recorded || result.simulated)
        return standing;
    const Policy& policy = policyById(request.policy.policy);
    if (policy.card().usesBudget)
        standing.flipBudget = smallestBudget(scores, token, policy, request);
    return standing;
}

} // namespace kvscope
