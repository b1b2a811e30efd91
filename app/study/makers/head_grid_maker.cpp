// Runs the active pane's policy layer by layer and gives one number per head of the whole model.
#include "app/study/makers/view_data_maker.h"

#include "app/study/answer_needs.h"
#include "app/study/live_rows.h"
#include "app/study/makers/measured_heads.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/metrics/statistics.h"
#include "core/run/head_means.h"
#include "core/run/record_results.h"
#include "core/run/run_grid.h"
#include "core/run/token_decision.h"
#include "views/common/measure_options.h"
#include "views/head_grid/head_grid_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <span>

namespace kvscope {

namespace {

using Values = std::vector<double>;

/// The results of one layer's runs, from which a row is computed.
struct Layer {
    const LayerRunner& runner;
    const ViewDataRequest& request;
    const std::vector<std::shared_ptr<const RunResult>>& results;
    const Checkpoint& checkpoint;

    const RunResult& first() const { return *results.front(); }
    const std::vector<HeadSelection>& heads() const { return first().selection.heads; }
};

bool isAbsolute(const ViewDataRequest& request) { return request.options.choice("difference") == "absolute"; }

/// Output error of the first pane less that of the second, or how far they are apart.
Values errorDifference(const Layer& layer) {
    Values a = requireFidelity(layer.first()).meanOutputError;
    const Values& b = requireFidelity(*layer.results[1]).meanOutputError;
    std::ranges::transform(a, b, a.begin(), [absolute = isAbsolute(layer.request)](double x, double y) {
        return absolute ? std::abs(x - y) : x - y;
    });
    return a;
}

Values overlap(const Layer& layer) {
    Values values;
    for (std::size_t head = 0; head < layer.heads().size(); ++head)
        values.push_back(jaccard(layer.heads()[head].kept, layer.results[1]->selection.heads[head].kept));
    return values;
}

Values keptTokens(const Layer& layer) {
    Values values;
    for (const HeadSelection& head : layer.heads()) values.push_back(head.attendedTokens());
    return values;
}

std::vector<TokenIndex> selectedBeforeCut(const Layer& layer) {
    std::vector<TokenIndex> tokens;
    for (const TokenIndex token : layer.request.selected)
        if (token < layer.first().request.cut.token) tokens.push_back(token);
    if (tokens.empty())
        throw Error({"no token before the cut is selected", "quantity", "Select a span first, such as the needle (N)"});
    return tokens;
}

Values selectionKept(const Layer& layer) {
    const auto tokens = selectedBeforeCut(layer);
    Values values;
    for (const HeadSelection& head : layer.heads())
        values.push_back(static_cast<double>(std::ranges::count_if(
                             tokens, [&](TokenIndex token) { return std::ranges::binary_search(head.kept, token); })) /
                         static_cast<double>(tokens.size()));
    return values;
}

/// The smallest share of tokens at which every selected one is kept; NaN where that is unknown.
Values survivalBudget(const Layer& layer) {
    const auto tokens = selectedBeforeCut(layer);
    Values values;
    for (std::size_t head = 0; head < layer.heads().size(); ++head) {
        double worst = 0;
        for (const TokenIndex token : tokens) {
            const TokenDecision decision =
                tokenDecisionOf(layer.first(), KvHeadIndex(static_cast<std::int32_t>(head)), token);
            worst = decision.flipBudget > 0 ? std::max(worst, static_cast<double>(decision.flipBudget)) : NAN;
            if (std::isnan(worst)) break;
        }
        values.push_back(worst / static_cast<double>(layer.first().visible));
    }
    return values;
}

/// First-order rise of the answer's loss, which only the model of a live context knows.
Values answerRise(const Layer& layer) {
    const AnswerNeeds needs(layer.runner, layer.request.capture);
    checkCut(layer.first().request, *needs.answers().capture());
    const live::LayerSelection kept{layer.first().request.layer, &layer.first().selection};
    return predictedRises(std::span(&kept, 1), *needs.tokenScores(kScoreSteps, layer.checkpoint.silent())).front();
}

/// cos(mean key, mean query) of each query head with its KV head (KeyDiff Fig. 14), over the tokens before the cut.
Values meanCosine(const Layer& layer) {
    const Engine& engine = layer.runner.engine();
    const CaptureInfo& info = layer.request.capture->info();
    const LayerIndex index = layer.first().request.layer;
    const LayerInfo& about = info.layerInfo(index);
    const TokenIndex cut = layer.request.cut.token;
    const std::int64_t first = info.numTokens - about.queryCount, seen = std::max<std::int64_t>(0, cut - first);
    if (seen == 0)
        throw Error({"no query before the cut was captured", "layer " + std::to_string(index.value),
                     "Choose a later cut, or capture the queries of all tokens", info.path});
    const auto mean = [&](TensorRole role, std::int64_t rows) {
        const Tensor all = layer.runner.tensor(layer.request.capture, index, role, layer.checkpoint);
        return engine.anchor(engine.rows(all, 0, rows), AnchorKind::Mean, layer.checkpoint);
    };
    const HostTensor keys = mean(TensorRole::Keys, cut), queries = mean(TensorRole::Queries, seen);
    const auto row = [](const HostTensor& table, std::size_t head) {
        const auto d = static_cast<std::size_t>(table.shape[1]);
        return std::span(table.data).subspan(head * d, d);
    };
    Values values;
    for (std::size_t q = 0; q < about.gqaGroupOf.size(); ++q)
        values.push_back(cosineOf(row(keys, static_cast<std::size_t>(about.gqaGroupOf[q])), row(queries, q)));
    return values;
}

/// How a quantity is computed.
struct Quantity {
    enum class Runs { Active, Two, WholeCache }; ///< the panes that run, or a run that keeps everything
    HeadQuantity about;                          ///< its words, with {} for each policy in them
    std::function<Values(const Layer&)> row;
    Runs runs = Runs::Active;
    bool measured = false;
};

using enum Quantity::Runs;

/// A measure as a quantity of the active pane; a measure of the layer itself uses the whole cache.
Quantity quantityOf(const MeasureCard& card) {
    const bool ofPolicy = card.subject == MeasureSubject::KeptTokens;
    return {{.what = measureWords(card) + (ofPolicy ? " of {}" : ""),
             .unit = card.unit,
             .perQueryHead = card.shape != MeasureShape::PerKvHead,
             .isSigned = card.isSigned,
             .higherIsBetter = higherWins(card),
             .takesNoSide = card.better == MeasureDirection::Neither},
            [&card](const Layer& layer) { return headValues(layer.runner, layer.first(), card, layer.checkpoint); },
            ofPolicy ? Active : WholeCache,
            true};
}

/// Quantities of the grid that are not measures.
Quantity quantityOf(const std::string& id) {
    const auto perKvHead = [](const char* what, bool higherIsBetter) {
        return HeadQuantity{.what = what, .perQueryHead = false, .higherIsBetter = higherIsBetter};
    };
    static const std::map<std::string, Quantity> own = {
        {"error_difference",
         {{.what = "output error of {} less that of {}", .isSigned = true}, errorDifference, Two, true}},
        {"overlap", {perKvHead("Jaccard overlap of {} and {}", true), overlap, Two}},
        {"kept_tokens", {perKvHead("tokens kept by {}", true), keptTokens}},
        {"selection_kept", {perKvHead("share of the selected tokens that {} keeps", true), selectionKept}},
        {"survival_budget",
         {{.what = "smallest retention at which {} keeps all selected tokens",
           .perQueryHead = false,
           .neverIsNan = true},
          survivalBudget}},
        {"answer_rise",
         {{.what = "rise of the answer's loss by what {} evicts, first order",
           .unit = "nat",
           .perQueryHead = false,
           .isSigned = true,
           .higherIsBetter = false},
          answerRise}},
        {"mean_cosine",
         {{.what = "cos(mean key, mean query before the cut)", .isSigned = true, .takesNoSide = true},
          meanCosine,
          WholeCache}}};
    const auto found = own.find(id);
    return found == own.end() ? quantityOf(measureById(id)) : found->second;
}

const PaneRequest& paneOf(const ViewDataRequest& request, const char* option) {
    const std::string& letter = request.options.choice(option);
    const auto index = static_cast<std::size_t>(letter[0] - 'A');
    if (request.panes.size() < 2)
        throw Error({"the quantity compares two panes, and one is shown", "quantity", "Add a second pane"});
    if (index >= request.panes.size())
        throw Error({"there is no pane " + letter, std::string("option ") + option, "Choose a pane that is shown"});
    if (request.options.choice("first") == request.options.choice("second"))
        throw Error({"pane " + letter + " is compared with itself", "options first, second", "Choose two panes"});
    return request.panes[index];
}

/// "A KeyDiff".
std::string titleOf(const ViewDataRequest& request, const char* option) {
    return request.options.choice(option) + " " + policyIdentityOf(resolvePane(paneOf(request, option))).policyName;
}

std::string wordsOf(const Quantity& quantity, const ViewDataRequest& request) {
    const std::string& words = quantity.about.what;
    if (quantity.runs == WholeCache) return words;
    if (quantity.runs == Active)
        return fmt::format(fmt::runtime(words), policyIdentityOf(resolvePane(request.shownPane())).policyName);
    const bool absolute = quantity.about.isSigned && isAbsolute(request);
    return fmt::format(fmt::runtime(absolute ? "output errors of {} and {}, how far apart" : words),
                       titleOf(request, "first"), titleOf(request, "second"));
}

std::vector<RunRequest> runsOf(const Quantity& quantity, const ViewDataRequest& request) {
    if (quantity.runs == WholeCache) return {wholeCache(request.capture, request.layer, request.cut)};
    if (quantity.runs == Active) return {resolvePane(request.shownPane())};
    return {resolvePane(paneOf(request, "first")), resolvePane(paneOf(request, "second"))};
}

HeadGridData emptyGrid(const Quantity& quantity, const ViewDataRequest& request) {
    const CaptureInfo& info = request.capture->info();
    HeadGridData data;
    static_cast<HeadQuantity&>(data) = quantity.about;
    data.quantity = request.options.choice("quantity");
    data.what = wordsOf(quantity, request);
    data.ofPane = quantity.runs == Active;
    if (quantity.runs == Two && quantity.measured) {
        data.first = titleOf(request, "first");
        data.second = titleOf(request, "second");
        data.isSigned = !isAbsolute(request);
        data.takesNoSide = true;
    }
    data.columns = data.perQueryHead ? info.numQueryHeads : info.numKvHeads;
    for (const LayerInfo& layer : info.layers)
        data.rows.push_back(
            {layer.layer.value, false, Values(static_cast<std::size_t>(data.columns), NAN), {}, {}, NAN});
    return data;
}

/// NaN for KV heads that a recorded list leaves out: it says nothing about them.
void leaveOutHeads(Values& values, const std::vector<std::shared_ptr<const RunResult>>& results, const LayerInfo& layer,
                   bool perQueryHead) {
    for (const auto& result : results)
        for (const std::int32_t head : headsNotRecorded(*result))
            for (std::size_t column = 0; column < values.size(); ++column)
                if ((perQueryHead ? layer.gqaGroupOf[column] : static_cast<std::int32_t>(column)) == head)
                    values[column] = NAN;
}

ViewDataMaker::Value make(const ViewDataWork& work) {
    const ViewDataRequest& request = work.request;
    const Quantity quantity = quantityOf(request.options.choice("quantity"));
    HeadGridData data = emptyGrid(quantity, request);
    const std::vector<RunRequest> runs = runsOf(quantity, request);
    std::vector<GridPoint> points;
    for (const LayerInfo& layer : request.capture->info().layers)
        for (const RunRequest& run : runs) {
            points.push_back({run});
            points.back().run.layer = layer.layer;
            points.back().run.measure = quantity.measured;
        }
    std::vector<std::shared_ptr<const RunResult>> results; // of the layer
    const auto finished = [&](std::size_t point, const auto& result, const Checkpoint& rest) {
        results.push_back(result);
        if (results.size() < runs.size()) return;
        HeadGridData::Row& row = data.rows[point / runs.size()];
        row.values = quantity.row({work.runner, request, results, rest});
        row.computed = true;
        if (!data.first.empty()) {
            row.ofFirst = requireFidelity(*results[0]).meanOutputError;
            row.ofSecond = requireFidelity(*results[1]).meanOutputError;
        }
        leaveOutHeads(row.values, results, request.capture->info().layerInfo(result->request.layer), data.perQueryHead);
        if (quantity.runs == Active) row.kept = meanAttendedTokens(*result);
        results.clear();
        work.deliver(data);
    };
    runGrid(work.runner, points, work.checkpoint, {finished});
    return std::make_shared<const HeadGridData>(data);
}

} // namespace

ViewDataMaker headGridMaker() {
    using enum DataScope;
    return {"head_grid", {Cut, Panes, ActivePane, Selection, Seed}, make};
}

} // namespace kvscope
