// Quantities of lessons, each a few lines over kept lists, block steps, step logs and measured errors. A new quantity
// is a function and a row.
#include "app/lessons/lesson_quantities.h"

#include "app/lessons/theorem_quantities.h"
#include "app/study/live_rows.h"
#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/engine/engine.h"
#include "core/metrics/measure_values.h"
#include "core/policies/balance/balance_log.h"
#include "core/policies/block_processing.h"
#include "core/policies/subgen/subgen_log.h"
#include "core/run/attention_rule.h"
#include "core/run/head_means.h"
#include "views/scene/axes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

namespace kvscope {

namespace {

using Result = std::shared_ptr<const RunResult>;

const std::vector<TokenIndex>& keptBy(const RunResult& result, const LessonAsked& asked) {
    return result.selection.heads[headOf(asked)].kept;
}

/// Throws Error where `whole` is 0.
double share(double part, double whole, const char* nothing, const char* remedy) {
    if (whole == 0) throw Error({nothing, "", remedy});
    return part / whole;
}

double keptShare(const LessonAsked& asked) { return keptShareOf(*runOf(asked), asked.request.kvHead); }

double keptSelected(const LessonAsked& asked) {
    const Result result = runOf(asked);
    const auto& kept = keptBy(*result, asked);
    return static_cast<double>(std::ranges::count_if(
        asked.request.selected, [&](TokenIndex t) { return std::ranges::binary_search(kept, t); }));
}

double outputErrorOf(const LessonAsked& asked) {
    return meanOverHeads(requireFidelity(*runOf(asked)).meanOutputError, layerOf(asked), asked.request.kvHead);
}

double nextErrorRatio(const LessonAsked& asked) {
    const double own = outputErrorOf(asked);
    if (own == 0) throw Error({"this pane's output error is 0, so no ratio to it exists", "", "Lower its budget"});
    return outputErrorOf({asked.runner, asked.request, asked.pane + 1, asked.checkpoint}) / own;
}

/// The request with the default cut.
ViewDataRequest unasked(const LessonAsked& asked) {
    ViewDataRequest before = asked.request;
    before.cut = Cut::resolve("default", *before.capture);
    for (PaneRequest& pane : before.panes) pane.run.cut = before.cut;
    return before;
}

double unaskedKeptSelected(const LessonAsked& asked) {
    const ViewDataRequest before = unasked(asked);
    return keptSelected({asked.runner, before, asked.pane, asked.checkpoint});
}

/// The output error with the default cut, over the queries after the request's own cut.
double unaskedOutputError(const LessonAsked& asked) {
    const ViewDataRequest before = unasked(asked);
    const Result result = runOf({asked.runner, before, asked.pane, asked.checkpoint});
    const HostTensor& errors = requireFidelity(*result).outputError;
    const auto width = static_cast<std::size_t>(errors.shape[1]);
    const auto count = static_cast<std::size_t>(requireFidelity(*runOf(asked)).queryCount);
    std::vector<double> means;
    for (const std::size_t q : queryHeadsOf(asked)) {
        const auto end = errors.data.begin() + static_cast<std::ptrdiff_t>((q + 1) * width);
        means.push_back(
            meanOfNumbers(std::vector<double>(end - static_cast<std::ptrdiff_t>(std::min(count, width)), end)));
    }
    return meanOfNumbers(means);
}

/// Bytes of a token's keys and values in all layers of the model, with this many KV heads per layer.
double tokenBytes(const LessonAsked& asked, int heads) {
    const CaptureInfo& info = asked.request.capture->info();
    const double width = layerOf(asked).storedType == StoredType::Float32 ? 4 : 2;
    return width * info.numLayers * heads * (info.headDim + info.valueDim);
}

double cacheBytes(const LessonAsked& asked, int heads) {
    return tokenBytes(asked, heads) * static_cast<double>(asked.request.capture->info().numTokens);
}

/// The mean of a measure per query head, over the query heads of the KV head.
double meanOf(const LessonAsked& asked, const std::string& measure) {
    const auto values = asked.runner.measure(*runOf(asked), std::span(&measure, 1), asked.checkpoint);
    return meanOverHeads(values.front().perHead, layerOf(asked), asked.request.kvHead);
}

/// [n] mean attention of the evaluation queries on each token, over the query heads of the KV head.
std::vector<double> laterAttention(const LessonAsked& asked, const Fidelity& fidelity) {
    const HostTensor sums = asked.runner.engine().attentionColumnSums({evaluationQueries(asked, fidelity),
                                                                       tensorOf(asked, TensorRole::Keys),
                                                                       fidelity.firstQuery,
                                                                       {},
                                                                       attentionRuleOf(layerOf(asked))},
                                                                      asked.checkpoint);
    std::vector<double> mean(static_cast<std::size_t>(sums.shape[1]));
    const auto heads = queryHeadsOf(asked);
    const double count = static_cast<double>(heads.size()) * static_cast<double>(fidelity.queryCount);
    for (const std::size_t q : heads)
        for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += double{sums.data[q * mean.size() + i]} / count;
    return mean;
}

double keptMass(const LessonAsked& asked) {
    const Result result = runOf(asked);
    const std::vector<double> attention = laterAttention(asked, requireFidelity(*result));
    double mass = 0;
    for (const TokenIndex token : keptBy(*result, asked)) mass += attention[token];
    return mass;
}

double massAfterCut(const LessonAsked& asked) {
    const Result result = runOf(asked);
    const std::vector<double> attention = laterAttention(asked, requireFidelity(*result));
    return std::accumulate(attention.begin() + result->visible, attention.end(), 0.0);
}

/// Cosine of mean key and mean query (KeyDiff Fig. 14), for the shown query head.
double cosineOfMeans(const LessonAsked& asked) {
    const std::string measure = "cos_means";
    const auto values = asked.runner.measure(*runOf(asked), std::span(&measure, 1), asked.checkpoint);
    return values.front().perHead[asked.request.queryHead.value];
}

/// Later attention on k*, the key least like the mean key.
double attentionOnDistinct(const LessonAsked& asked) {
    const Engine& engine = asked.runner.engine();
    const Tensor keys = rowsBeforeCut(asked, TensorRole::Keys);
    const HostTensor cosines = engine.similarity(keys, engine.anchor(keys, AnchorKind::Mean, asked.checkpoint),
                                                 SimilarityMetric::Cosine, asked.checkpoint);
    const auto begin = cosines.data.begin() + asked.request.kvHead.value * cosines.shape[1];
    const auto least = std::min_element(begin, begin + cosines.shape[1]) - begin;
    return laterAttention(asked, requireFidelity(*runOf(asked)))[least];
}

/// The largest number of a measure per query, over the query heads of the KV head.
double worstOf(const LessonAsked& asked, const std::string& measure) {
    const auto values = asked.runner.measure(*runOf(asked), std::span(&measure, 1), asked.checkpoint);
    const HostTensor& table = values.front().perQuery;
    const auto width = static_cast<std::size_t>(table.shape[1]);
    double worst = 0;
    for (const std::size_t q : queryHeadsOf(asked))
        for (std::size_t j = 0; j < width; ++j) worst = std::fmax(worst, double{table.data[q * width + j]});
    return worst;
}

/// The smallest retention, in steps of 5 %, from which on the KV head's output error stays within 0.1.
double neededRetention(const LessonAsked& asked) {
    constexpr double kTolerated = 0.1;
    double needed = 1;
    PaneRequest pane = paneOf(asked);
    for (int twentieths = 20; twentieths >= 1; --twentieths) {
        pane.run.budget = {Budget::Unit::Fraction, twentieths / 20.0};
        ViewDataRequest at = asked.request;
        at.panes[asked.pane] = pane;
        if (outputErrorOf({asked.runner, at, asked.pane, asked.checkpoint}) > kTolerated) break;
        needed = twentieths / 20.0;
    }
    return needed;
}

/// Share of the evictions of block processing in which a token is evicted with the block in which it arrived.
double sameBlockEvictions(const LessonAsked& asked) {
    const Result result = runOf(asked);
    const auto ends = blockEnds(result->request.policy.values, result->visible, result->requested);
    double evicted = 0, own = 0;
    for (const BlockStep& step : result->steps) {
        const auto block = std::ranges::lower_bound(ends, step.end);
        const TokenIndex begin = block == ends.begin() ? 0 : *(block - 1);
        const auto& tokens = step.evicted[headOf(asked)];
        evicted += static_cast<double>(tokens.size());
        own += static_cast<double>(std::ranges::count_if(tokens, [&](TokenIndex t) { return t >= begin; }));
    }
    return share(own, evicted, "this pane evicts nothing, so no share of it exists", "Lower its budget");
}

/// Share of the pane's kept tokens that the next pane keeps too.
double sharedWithNext(const LessonAsked& asked) {
    const Result mine = runOf(asked), next = runOf({asked.runner, asked.request, asked.pane + 1, asked.checkpoint});
    const auto &a = keptBy(*mine, asked), &b = keptBy(*next, asked);
    std::vector<TokenIndex> both;
    std::ranges::set_intersection(a, b, std::back_inserter(both));
    return share(static_cast<double>(both.size()), static_cast<double>(a.size()),
                 "this pane keeps nothing, so no share of it exists", "Raise its budget");
}

/// Squared discrepancy of the head's walks over its expectation under fair coins; nothing where no walk was taken.
std::optional<double> ratioToCoins(const LessonAsked& asked) {
    const auto log = logOf<BalanceLog>(runOf(asked, true));
    double walked = 0, coins = 0;
    for (const BalanceWalkLog& walk : log->walks)
        if (walk.kvHead == asked.request.kvHead.value && !walk.quadratic.empty()) {
            walked += walk.quadratic.back();
            coins += walk.fairCoins.back();
        }
    return coins > 0 ? std::optional(walked / coins) : std::nullopt;
}

double coinRatio(const LessonAsked& asked) {
    if (const auto ratio = ratioToCoins(asked)) return *ratio;
    throw Error({"no walk was taken in this head, so nothing compares with coins", "", "Lower the budget"});
}

double panesBelowCoins(const LessonAsked& asked) {
    constexpr double kBelow = 0.95;
    double count = 0;
    for (std::size_t pane = 0; pane < asked.request.panes.size(); ++pane)
        count += ratioToCoins({asked.runner, asked.request, pane, asked.checkpoint}).value_or(1) < kBelow ? 1 : 0;
    return count;
}

/// The smallest retention, in steps of 10 %, from which on the model writes the expected answer.
double answeringRetention(const LessonAsked& asked) {
    const auto live = std::dynamic_pointer_cast<const live::LiveCapture>(asked.request.capture);
    if (!live) throw Error({"this number comes from a model that does not run", "", "Start the model"});
    const live::LiveAnswers answers(live, live::LiveAnswers::Rounds::None);
    std::vector<LiveRow> rows;
    for (int tenths = 1; tenths < 10; ++tenths) {
        rows.push_back({.pane = paneOf(asked)});
        rows.back().pane->run.budget = {Budget::Unit::Fraction, tenths / 10.0};
        sendRow(rows.back(), asked.runner, answers, asked.checkpoint);
    }
    askRows(rows, answers, {.mostTokens = static_cast<int>(answers.answer().size())}, asked.checkpoint);
    const auto answered = [&](int tenths) {
        const auto& greedy = rows[static_cast<std::size_t>(tenths) - 1].greedy;
        return greedy && greedy->ids == answers.answer();
    };
    int needed = 10;
    while (needed > 1 && answered(needed - 1)) --needed;
    return needed / 10.0;
}

double clusterCount(const LessonAsked& asked) {
    const auto log = logOf<SubgenLog>(runOf(asked, true));
    return static_cast<double>(log->heads[headOf(asked)].representatives.size());
}

/// Share of the clusters that were opened in the second half of the stream.
double lateClusters(const LessonAsked& asked) {
    const Result result = runOf(asked, true);
    const auto log = logOf<SubgenLog>(result);
    const auto& opened = log->heads[headOf(asked)].representatives;
    const auto late = std::ranges::count_if(opened, [&](TokenIndex t) { return t >= result->visible / 2; });
    return share(static_cast<double>(late), static_cast<double>(opened.size()),
                 "this pane's stream opens no cluster, so no share of them exists", "Choose a later cut");
}

} // namespace

std::pair<std::string, std::size_t> namedQuantity(const std::string& name, std::size_t pane) {
    const std::size_t at = name.find('@');
    if (at != std::string::npos) std::from_chars(name.data() + at + 1, name.data() + name.size(), pane);
    return {name.substr(0, at), pane};
}

std::string filled(const std::string& text, const std::function<std::string(const std::string&)>& valueOf) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t open = text.find('{', at), close = open == std::string::npos ? open : text.find('}', open);
        if (close == std::string::npos) return out + text.substr(at);
        out += text.substr(at, open - at) + valueOf(text.substr(open + 1, close - open - 1));
        at = close + 1;
    }
    return out;
}

const std::vector<LessonQuantity>& lessonQuantities() {
    using Form = LessonQuantity::Form;
    static const std::vector<LessonQuantity> quantities = {
        {"kept_share", "tokens kept, of those before the cut", Form::Percent, &keptShare},
        {"kept_selected", "selected tokens that are kept", Form::Count, &keptSelected},
        {"unasked_kept_selected", "selected tokens that are kept with the default cut", Form::Count,
         &unaskedKeptSelected},
        {"output_error", "relative output error, mean over the KV head's queries", Form::Decimal, &outputErrorOf},
        {"unasked_output_error",
         "relative output error with the default cut, over the queries after the cut that is set", Form::Decimal,
         &unaskedOutputError},
        {"next_error_ratio", "the next pane's output error over this one's", Form::Magnitude, &nextErrorRatio},
        {"kept_mass", "later attention on the kept tokens, mean over the KV head's queries", Form::Percent, &keptMass},
        {"mass_after_cut", "later attention on tokens after the cut", Form::Percent, &massAfterCut},
        {"sink_mass", "later attention on the first four tokens, mean over the KV head's queries", Form::Percent,
         [](const LessonAsked& a) { return meanOf(a, "sink_mass"); }},
        {"effective_tokens", "tokens that a later query attends to, e^entropy, mean over the KV head's queries",
         Form::Count, [](const LessonAsked& a) { return meanOf(a, "effective_tokens"); }},
        {"token_bytes", "bytes of a token's keys and values, all layers of the model", Form::Count,
         [](const LessonAsked& a) { return tokenBytes(a, a.request.capture->info().numKvHeads); }},
        {"cache_bytes", "keys and values of all tokens, all layers of the model", Form::Bytes,
         [](const LessonAsked& a) { return cacheBytes(a, a.request.capture->info().numKvHeads); }},
        {"ungrouped_cache_bytes", "the same bytes if every query head had a KV head of its own", Form::Bytes,
         [](const LessonAsked& a) { return cacheBytes(a, a.request.capture->info().numQueryHeads); }},
        {"cosine_of_means", "mean key before the cut against mean query, for the query head", Form::Decimal,
         &cosineOfMeans},
        {"attention_on_distinct", "later attention on the key least like the mean key", Form::Percent,
         &attentionOnDistinct},
        {"worst_output_error", "relative output error of the worst query", Form::Magnitude,
         [](const LessonAsked& a) { return worstOf(a, "output_error"); }},
        {"worst_numerator_error", "numerator error of the worst query, as in the theorem", Form::Magnitude,
         [](const LessonAsked& a) { return worstOf(a, "numerator_error"); }},
        {"worst_denominator_error", "relative error of the denominator for the worst query", Form::Magnitude,
         [](const LessonAsked& a) { return worstOf(a, "denominator_error"); }},
        {"needed_retention", "smallest retention, in steps of 5 %, from which on the error is at most 0.1",
         Form::Percent, &neededRetention},
        {"same_block_evictions", "evicted tokens that left with the block they came in", Form::Percent,
         &sameBlockEvictions},
        {"shared_with_next", "kept tokens that the next pane keeps too", Form::Percent, &sharedWithNext},
        {"coin_ratio", "squared discrepancy of all balancing walks, over that of fair coins", Form::Percent,
         &coinRatio},
        {"panes_below_coins", "panes whose discrepancy is below 95 % of that of fair coins", Form::Count,
         &panesBelowCoins},
        {"worst_halving_error", "change of the signed sum by one halving, worst query", Form::Percent,
         [](const LessonAsked& a) { return halvingOf(a).worst; }},
        {"mean_halving_error", "change of the signed sum by one halving, mean over the queries", Form::Percent,
         [](const LessonAsked& a) { return halvingOf(a).mean; }},
        {"scaled_discrepancy",
         "discrepancy of the walk with the least room, worst query, in units of BalanceKV Theorem 3.3", Form::Magnitude,
         [](const LessonAsked& a) { return discrepancyOf(a).worst; }},
        {"discrepancy_bound", "what BalanceKV Theorem 3.3 allows, with the constant 30", Form::Magnitude,
         [](const LessonAsked& a) { return discrepancyOf(a).demanded; }},
        {"drawn_distortion", "spectral distortion of drawn rows, mean over ten seeds", Form::Decimal,
         [](const LessonAsked& a) { return distortionOf(a, true); }},
        {"top_distortion", "spectral distortion of as many rows with the best scores", Form::Decimal,
         [](const LessonAsked& a) { return distortionOf(a, false); }},
        {"demanded_rows", "draws that Compactor's Theorem 1 asks for", Form::Count, &demandedRows},
        {"demanded_slots", "samples per cluster that SubGen's Theorem 1 asks for", Form::Magnitude, &demandedSlots},
        {"least_subgen_memory", "tokens that SubGen's Theorem 1 asks for at the best of nine radii", Form::Count,
         &leastSubgenMemory},
        {"needed_by_stories", "retention that the case study's narratives need", Form::Percent,
         [](const LessonAsked& a) { return retentionNeededBy(a, "story"); }},
        {"needed_by_copies", "retention that the case study's repeated random words need", Form::Percent,
         [](const LessonAsked& a) { return retentionNeededBy(a, "copy"); }},
        {"fit_residual", "root mean square distance of the fitted curves from their points", Form::Decimal,
         &fitResidual},
        {"answering_retention",
         "smallest retention, in steps of 10 %, from which on the model writes the expected answer", Form::Percent,
         &answeringRetention},
        {"cluster_count", "clusters at the end of the stream", Form::Count, &clusterCount},
        {"late_clusters", "clusters that the second half of the stream opened", Form::Percent, &lateClusters},
    };
    return quantities;
}

const LessonQuantity& lessonQuantityById(std::string_view id) {
    return requireNamed(lessonQuantities(), &LessonQuantity::id, id, "lessons know no quantity");
}

std::string quantityText(const LessonQuantity& quantity, double value) {
    if (quantity.form == LessonQuantity::Form::Percent) return formatPercent(value);
    if (quantity.form == LessonQuantity::Form::Magnitude) return formatShort(value);
    if (quantity.form == LessonQuantity::Form::Bytes) return formatFixed(value / (1 << 20), 1) + " MiB";
    return quantity.form == LessonQuantity::Form::Count ? formatCount(std::llround(value)) : formatFixed(value, 3);
}

std::vector<std::string> quantitiesIn(const std::string& text) {
    std::vector<std::string> names;
    filled(text, [&](const std::string& name) {
        names.push_back(namedQuantity(name, 0).first);
        return std::string();
    });
    return names;
}

} // namespace kvscope
