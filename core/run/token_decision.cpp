// Why a token is kept or evicted: its rank among the scores of its head, the margin of the decision, and the smallest
// budget that keeps it.
#include "core/run/token_decision.h"

#include "core/capture/capture.h"
#include "core/lists/selection_file.h"
#include "core/policies/common/choice_kind.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace kvscope {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

bool contains(const std::vector<TokenIndex>& ascending, TokenIndex token) {
    return std::ranges::binary_search(ascending, token);
}

/// Order of the index contract: score descending, index ascending.
bool comesBefore(std::span<const float> scores, TokenIndex a, TokenIndex b) {
    const float x = scores[a], y = scores[b];
    return x > y || (x == y && a < b);
}

/// Number of scored tokens in [begin, end) that rank before `token`.
std::int64_t betterIn(std::span<const float> scores, std::int64_t begin, std::int64_t end, TokenIndex token) {
    std::int64_t count = 0;
    for (std::int64_t i = begin; i < end; ++i) count += comesBefore(scores, static_cast<TokenIndex>(i), token) ? 1 : 0;
    return count;
}

/// The cut-off score between kept and evicted among tokens that are not protected.
struct CutOff {
    double bestEvicted = -kInfinity, worstKept = kInfinity;

    void take(std::span<const float> scores, const HeadSelection& head, const std::vector<TokenIndex>& kept) {
        auto nextProtected = head.protectedTokens.begin(), nextKept = kept.begin(); // both ascending, as i
        const auto reaches = [](auto& next, auto end, std::size_t i) {
            while (next != end && std::cmp_less(*next, i)) ++next;
            return next != end && std::cmp_equal(*next, i);
        };
        for (std::size_t i = 0; i < scores.size(); ++i) {
            const bool isProtected = reaches(nextProtected, head.protectedTokens.end(), i);
            const bool isKept = reaches(nextKept, kept.end(), i);
            if (std::isnan(scores[i]) || isProtected) continue;
            if (isKept)
                worstKept = std::min<double>(worstKept, scores[i]);
            else
                bestEvicted = std::max<double>(bestEvicted, scores[i]);
        }
    }
};

/// Margin for `kept` under `scores`, which may belong to a query head that chooses for itself.
double marginOf(std::span<const float> scores, const HeadSelection& head, const std::vector<TokenIndex>& kept,
                TokenIndex asked) {
    if (contains(head.protectedTokens, asked)) return kInfinity;
    CutOff cutOff;
    cutOff.take(scores, head, kept);
    const double score = scores[asked];
    return score - (contains(kept, asked) ? cutOff.bestEvicted : cutOff.worstKept);
}

std::span<const float> rowOf(const HostTensor& scores, std::int64_t head, std::int64_t visible) {
    return {scores.data.data() + head * visible, static_cast<std::size_t>(visible)};
}

/// The recorded head of a list; null where a policy chose.
const RecordedHead* recordedHeadOf(const RunResult& result, std::int64_t kvHead) {
    if (!result.request.recorded) return nullptr;
    for (const RecordedHead& head : result.request.recorded->heads)
        if (head.layer == result.request.layer.value && head.kvHead == kvHead) return &head;
    return nullptr;
}

/// Rank and margin of a scored token. A list with scores of kept tokens only (CSV) states their ranks, and their margin
/// to evicted tokens is unknown.
struct Place {
    std::int64_t rank = 0;
    double margin = kUnknown;
};

Place placeOf(std::span<const float> scores, const HeadSelection& head, const std::vector<TokenIndex>& kept,
              TokenIndex token, const std::vector<std::int64_t>* statedRanks) {
    Place place{betterIn(scores, 0, std::ssize(scores), token), marginOf(scores, head, kept, token)};
    if (!statedRanks) return place;
    const auto at = std::ranges::lower_bound(kept, token);
    if (statedRanks->size() == kept.size() && at != kept.end() && *at == token)
        place.rank = (*statedRanks)[at - kept.begin()];
    const bool gaps = std::ranges::any_of(scores, [](float score) { return std::isnan(score); });
    if (gaps && std::isinf(place.margin) && !contains(head.protectedTokens, token)) place.margin = kUnknown;
    return place;
}

std::vector<QueryHeadDecision> queryHeadsOf(const RunResult& result, std::int64_t kvHead, TokenIndex token) {
    const HeadSelection& head = result.selection.heads[kvHead];
    const RecordedHead* recorded = recordedHeadOf(result, kvHead);
    std::vector<QueryHeadDecision> decisions;
    for (std::size_t i = 0; i < head.queryHeads.size(); ++i) {
        const QueryHeadSet& own = head.queryHeads[i];
        QueryHeadDecision decision{own.queryHead, contains(own.kept, token), 0, kUnknown, kUnknown};
        if (!result.queryHeadScores.empty())
            decision.score = rowOf(result.queryHeadScores, own.queryHead, result.visible)[token];
        if (!std::isnan(decision.score)) {
            const Place place = placeOf(rowOf(result.queryHeadScores, own.queryHead, result.visible), head, own.kept,
                                        token, recorded ? &recorded->queryHeads[i].ranks : nullptr);
            decision.rank = place.rank;
            decision.margin = place.margin;
        }
        decisions.push_back(decision);
    }
    return decisions;
}

/// A group keeps a token if any of its heads does, so its margin is the largest. NaN where scores are unknown.
double largestMargin(const std::vector<QueryHeadDecision>& heads) {
    double largest = heads.front().margin;
    for (const QueryHeadDecision& head : heads)
        largest = std::isnan(largest) ? largest : std::isnan(head.margin) ? kUnknown : std::max(largest, head.margin);
    return largest;
}

/// The outcome of select for one token of one head at a given budget; `rank` is the token's among all.
bool keptAt(std::span<const float> scores, TokenIndex token, std::int64_t rank, const Protection& wanted,
            std::int64_t budget) {
    const auto n = static_cast<std::int64_t>(scores.size());
    const Protection fitted = wanted.within(budget, n);
    if (token < fitted.first || token >= n - fitted.last) return true;
    const std::int64_t better =
        rank - betterIn(scores, 0, fitted.first, token) - betterIn(scores, n - fitted.last, n, token);
    return better < budget - fitted.first - fitted.last;
}

/// Kept sets grow with the budget: one more token is either one more rank or one more protected token, and a token that
/// becomes protected frees its rank for the next one. So bisection finds the smallest budget.
std::int64_t smallestLayerCount(std::span<const float> scores, TokenIndex token, const Policy& policy,
                                const ParameterValues& values) {
    std::int64_t tooSmall = 0, enough = static_cast<std::int64_t>(scores.size());
    const std::int64_t rank = betterIn(scores, 0, enough, token);
    while (enough - tooSmall > 1) {
        const std::int64_t middle = (tooSmall + enough) / 2;
        if (keptAt(scores, token, rank, policy.protection(values, middle), middle))
            enough = middle;
        else
            tooSmall = middle;
    }
    return enough;
}

ChoiceKind kindOf(const RunResult& result) {
    return result.request.recorded ? choiceKindOf(result.request.recorded->parameters)
                                   : choiceKindOf(result.request.policy.values);
}

/// Margin against the tokens of all heads, for a joint choice. Unknown where pages were filled beyond that choice, and
/// for a recorded list, which may hold only some heads' scores.
double jointMargin(const RunResult& result, std::int64_t kvHead, TokenIndex token) {
    if (contains(result.selection.heads[kvHead].protectedTokens, token)) return kInfinity;
    if (result.request.recorded || result.request.policy.values.integer("page") != 1) return kUnknown;
    CutOff cutOff;
    for (std::int64_t other = 0; other < std::ssize(result.selection.heads); ++other) {
        const HeadSelection& head = result.selection.heads[other];
        cutOff.take(rowOf(result.scores, other, result.visible), head, head.kept);
    }
    const double score = rowOf(result.scores, kvHead, result.visible)[token];
    const bool kept = contains(result.selection.heads[kvHead].kept, token);
    return score - (kept ? cutOff.bestEvicted : cutOff.worstKept);
}

/// The score rows that decide for one KV head.
std::vector<std::span<const float>> choosingRows(const RunResult& result, std::int64_t kvHead) {
    std::vector<std::span<const float>> rows;
    for (const QueryHeadSet& own : result.selection.heads[kvHead].queryHeads)
        rows.push_back(rowOf(result.queryHeadScores, own.queryHead, result.visible));
    if (rows.empty()) rows.push_back(rowOf(result.scores, kvHead, result.visible));
    return rows;
}

/// A layer's tokens need not grow with the budget (PyramidKV switches from uniform to pyramid), so budgets are tried
/// from below.
std::int64_t smallestBudget(const RunResult& result, std::int64_t kvHead, TokenIndex token, const Policy& policy) {
    const RunRequest& request = result.request;
    const ParameterValues& values = request.policy.values;
    const std::int64_t n = result.visible;
    std::int64_t enough = n;
    for (const std::span<const float> scores : choosingRows(result, kvHead))
        enough = std::min(enough, smallestLayerCount(scores, token, policy, values));
    const int layers = request.capture->info().numLayers;
    std::int64_t budget = 1;
    while (budget < n && policy.layerCount(request.layer, layers, n, values, budget) < enough) ++budget;
    return budget;
}

} // namespace

TokenDecision tokenDecisionOf(const RunResult& result, KvHeadIndex head, TokenIndex token) {
    assert(token >= 0 && token < result.visible);
    const auto h = static_cast<std::size_t>(head.value);
    const HeadSelection& selection = result.selection.heads[h];
    TokenDecision decision;
    decision.kept = contains(selection.kept, token);
    decision.isProtected = contains(selection.protectedTokens, token);
    decision.score = decision.margin = kUnknown;
    decision.queryHeads = queryHeadsOf(result, head.value, token);
    const std::size_t at = h * static_cast<std::size_t>(result.visible) + static_cast<std::size_t>(token);
    if (result.scores.empty() || std::isnan(result.scores.data[at])) return decision;
    const std::span<const float> scores = rowOf(result.scores, head.value, result.visible);
    decision.scored = true;
    decision.score = result.scores.data[at];
    const RecordedHead* recorded = recordedHeadOf(result, head.value);
    const Place place = placeOf(scores, selection, selection.kept, token, recorded ? &recorded->ranks : nullptr);
    decision.rank = place.rank;
    decision.margin = decision.queryHeads.empty() ? place.margin : largestMargin(decision.queryHeads);
    const ChoiceKind kind = kindOf(result);
    if (kind == ChoiceKind::Joint)
        decision.margin = jointMargin(result, head.value, token);
    else if (kind == ChoiceKind::Drawn && !decision.isProtected)
        decision.margin = kUnknown;
    for (const auto& [name, part] : result.parts) decision.parts.emplace_back(name, part.data[at]);
    if (!whyNoFlipBudget(result).empty()) // always for recorded lists, whose policy may be unknown here
        return decision;
    if (const Policy& policy = policyById(result.request.policy.policy); policy.card().usesBudget)
        decision.flipBudget = smallestBudget(result, head.value, token, policy);
    return decision;
}

std::string whyNoFlipBudget(const RunResult& result) {
    if (result.request.recorded) return "the list does not say how its maker would choose at another budget";
    if (!policyById(result.request.policy.policy).card().usesBudget) return {};
    if (leavesWhole(result.request.policy.values,
                    result.request.capture->info().layerInfo(result.request.layer).slidingWindow))
        return "the layer is left whole";
    if (result.simulated) return "what a block evicts does not come back";
    if (result.scores.empty()) return "the choice uses no score";
    switch (kindOf(result)) {
    case ChoiceKind::ScoreOfBudget: return "the score changes with the budget";
    case ChoiceKind::Joint: return "one choice is made over all KV heads";
    case ChoiceKind::Drawn: return "tokens are drawn, the score is their chance";
    case ChoiceKind::TopOfHead: break;
    }
    return {};
}

} // namespace kvscope
