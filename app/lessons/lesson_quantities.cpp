// Quantities of lessons, each a few lines over kept lists, block steps, step logs and measured errors. A new quantity
// is a function and a row.
#include "app/lessons/lesson_quantities.h"

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/policies/balance/balance_log.h"
#include "core/policies/block_processing.h"
#include "core/policies/subgen/subgen_log.h"
#include "core/run/head_means.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

namespace kvscope {

namespace {

using Result = std::shared_ptr<const RunResult>;

Result runOf(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane, const Checkpoint& checkpoint,
             bool steps = false) {
    if (pane >= request.panes.size())
        throw Error({.sentence = fmt::format("the question is about pane {}, which is not there",
                                             static_cast<char>('A' + pane)),
                     .remedy = "Open the lesson again"});
    RunRequest run = resolvePane(request.panes[pane]);
    run.recordSteps = steps;
    return runner.run(run, checkpoint);
}

std::size_t headOf(const ViewDataRequest& request) { return static_cast<std::size_t>(request.kvHead.value); }

const std::vector<TokenIndex>& keptBy(const RunResult& result, const ViewDataRequest& request) {
    return result.selection.heads[headOf(request)].kept;
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

double keptShare(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                 const Checkpoint& checkpoint) {
    return keptShareOf(*runOf(runner, request, pane, checkpoint), request.kvHead);
}

double keptSelected(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                    const Checkpoint& checkpoint) {
    const Result result = runOf(runner, request, pane, checkpoint);
    const auto& kept = keptBy(*result, request);
    return static_cast<double>(std::count_if(request.selected.begin(), request.selected.end(), [&](TokenIndex t) {
        return std::binary_search(kept.begin(), kept.end(), t);
    }));
}

double outputErrorOf(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                     const Checkpoint& checkpoint) {
    return meanOverHeads(requireFidelity(*runOf(runner, request, pane, checkpoint)).meanOutputError,
                         request.capture->info().layerInfo(request.layer), request.kvHead);
}

double retainedMassOf(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                      const Checkpoint& checkpoint) {
    return meanOverHeads(requireFidelity(*runOf(runner, request, pane, checkpoint)).meanRetainedMass,
                         request.capture->info().layerInfo(request.layer), request.kvHead);
}

/// The smallest measured retention (for the KV head, with rounding) from which on the error stays within a tenth.
double neededRetention(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                       const Checkpoint& checkpoint) {
    constexpr double kTolerated = 0.1;
    double needed = 1;
    for (int twentieths = 20; twentieths >= 1; --twentieths) {
        ViewDataRequest at = request;
        at.panes[pane].run.budget = {Budget::Unit::Fraction, twentieths / 20.0};
        if (outputErrorOf(runner, at, pane, checkpoint) > kTolerated) break;
        needed = twentieths / 20.0;
    }
    return needed;
}

/// Share of the tokens evicted in blocks that were evicted with the block in which they arrived.
double sameBlockEvictions(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                          const Checkpoint& checkpoint) {
    const Result result = runOf(runner, request, pane, checkpoint);
    const auto ends = blockEnds(result->request.policy.values, result->visible, result->requested);
    double evicted = 0, own = 0;
    for (const BlockStep& step : result->steps) {
        const auto block = std::lower_bound(ends.begin(), ends.end(), step.end);
        const TokenIndex begin = block == ends.begin() ? 0 : *(block - 1);
        const auto& tokens = step.evicted[headOf(request)];
        evicted += static_cast<double>(tokens.size());
        own +=
            static_cast<double>(std::count_if(tokens.begin(), tokens.end(), [&](TokenIndex t) { return t >= begin; }));
    }
    return share(own, evicted);
}

/// Share of the pane's kept tokens that the next pane keeps too.
double sharedWithNext(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                      const Checkpoint& checkpoint) {
    const Result mine = runOf(runner, request, pane, checkpoint), next = runOf(runner, request, pane + 1, checkpoint);
    const auto &a = keptBy(*mine, request), &b = keptBy(*next, request);
    std::vector<TokenIndex> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return share(static_cast<double>(both.size()), static_cast<double>(a.size()));
}

template <class Log> std::shared_ptr<const Log> logOf(const Result& result) {
    auto log = std::dynamic_pointer_cast<const Log>(result->log);
    if (!log)
        throw Error({.sentence = "this pane's policy wrote down no steps of the kind that the question is about",
                     .remedy = "Open the lesson again"});
    return log;
}

/// Squared discrepancy of the head's walks over its expectation under fair coins.
double coinRatio(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                 const Checkpoint& checkpoint) {
    const auto log = logOf<BalanceLog>(runOf(runner, request, pane, checkpoint, true));
    double walked = 0, coins = 0;
    for (const BalanceWalkLog& walk : log->walks)
        if (walk.kvHead == request.kvHead.value && !walk.quadratic.empty()) {
            walked += walk.quadratic.back();
            coins += walk.fairCoins.back();
        }
    return share(walked, coins);
}

const SubgenLog::Head& clustersOf(const std::shared_ptr<const SubgenLog>& log, const ViewDataRequest& request) {
    return log->heads[headOf(request)];
}

double clusterCount(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                    const Checkpoint& checkpoint) {
    const auto log = logOf<SubgenLog>(runOf(runner, request, pane, checkpoint, true));
    return static_cast<double>(clustersOf(log, request).representatives.size());
}

/// Number of clusters opened in the second half of the stream.
double lateClusters(const LayerRunner& runner, const ViewDataRequest& request, std::size_t pane,
                    const Checkpoint& checkpoint) {
    const Result result = runOf(runner, request, pane, checkpoint, true);
    const auto log = logOf<SubgenLog>(result);
    const auto& opened = clustersOf(log, request).representatives;
    const auto late =
        std::count_if(opened.begin(), opened.end(), [&](TokenIndex t) { return t >= result->visible / 2; });
    return share(static_cast<double>(late), static_cast<double>(opened.size()));
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
        {"output_error", "relative output error, mean over the KV head's queries", Form::Decimal, &outputErrorOf},
        {"retained_mass", "attention mass on kept tokens, mean over the KV head's queries", Form::Percent,
         &retainedMassOf},
        {"needed_retention", "smallest retention, in steps of 5 %, from which on the error is at most 0.1",
         Form::Percent, &neededRetention},
        {"same_block_evictions", "evicted tokens that left with the block they came in", Form::Percent,
         &sameBlockEvictions},
        {"shared_with_next", "kept tokens that the next pane keeps too", Form::Percent, &sharedWithNext},
        {"coin_ratio", "squared discrepancy of all balancing walks, over that of fair coins", Form::Percent,
         &coinRatio},
        {"cluster_count", "clusters at the end of the stream", Form::Count, &clusterCount},
        {"late_clusters", "clusters that the second half of the stream opened", Form::Percent, &lateClusters},
    };
    return quantities;
}

const LessonQuantity& lessonQuantityById(std::string_view id) {
    std::vector<std::string> names;
    for (const LessonQuantity& quantity : lessonQuantities()) {
        if (quantity.id == id) return quantity;
        names.push_back(quantity.id);
    }
    throw Error({.sentence = "lessons know no quantity '" + std::string(id) + "'", .remedy = suggestName(id, names)});
}

std::string quantityText(const LessonQuantity& quantity, double value) {
    if (quantity.form == LessonQuantity::Form::Percent) return formatFixed(100 * value, 1) + " %";
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
