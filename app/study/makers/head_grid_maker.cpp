// The whole model at a glance: the active pane's policy on one layer after the other, and one number per head.
#include "app/study/makers/head_grid_maker.h"

#include "app/study/makers/measured_heads.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "views/common/measure_options.h"
#include "views/head_grid/head_grid_data.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>

namespace kvscope {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Values = std::vector<double>;

/// Everything that a row may be computed from.
struct Layer {
    const LayerRunner& runner;
    const ViewDataRequest& request;
    LayerIndex index;
    const Checkpoint& checkpoint;
    double& kept; ///< of the active pane, mean of the heads, once its result was asked for

    std::shared_ptr<const RunResult> result(const PaneRequest& pane, bool measure) const {
        RunRequest run = resolvePane(pane);
        run.layer = index;
        run.measure = measure;
        return runner.run(run, checkpoint);
    }
    std::shared_ptr<const RunResult> active(bool measure) const {
        auto made = result(request.shownPane(), measure);
        kept = 0;
        for (const HeadSelection& head : made->selection.heads)
            kept += head.attendedTokens() / static_cast<double>(kvHeads());
        return made;
    }
    std::size_t kvHeads() const { return static_cast<std::size_t>(request.capture->info().numKvHeads); }
};

/// Of the active pane; what no selection changes needs none, and is asked of the whole cache.
Values measured(const Layer& layer, const MeasureCard& measure) {
    if (measure.subject == MeasureSubject::KeptTokens)
        return headValues(layer.runner, *layer.active(true), measure, layer.checkpoint);
    const auto whole =
        layer.runner.run(wholeCache(layer.request.capture, layer.index, layer.request.cut), layer.checkpoint);
    return headValues(layer.runner, *whole, measure, layer.checkpoint);
}

/// Output error of the first pane less that of the second.
Values errorDifference(const Layer& layer) {
    if (layer.request.panes.size() < 2)
        throw Error({"the difference needs two panes", "quantity", "Add a second pane", {}});
    Values a = requireFidelity(*layer.result(layer.request.panes[0], true)).meanOutputError;
    const Values b = requireFidelity(*layer.result(layer.request.panes[1], true)).meanOutputError;
    std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::minus<>());
    return a;
}

Values overlap(const Layer& layer) {
    if (layer.request.panes.size() < 2)
        throw Error({"the overlap needs two panes", "quantity", "Add a second pane", {}});
    const auto a = layer.result(layer.request.panes[0], false), b = layer.result(layer.request.panes[1], false);
    Values values;
    for (std::size_t head = 0; head < layer.kvHeads(); ++head)
        values.push_back(jaccard(a->selection.heads[head].kept, b->selection.heads[head].kept));
    return values;
}

Values keptTokens(const Layer& layer) {
    const auto result = layer.active(false);
    Values values;
    for (const HeadSelection& head : result->selection.heads)
        values.push_back(head.attendedTokens());
    return values;
}

std::vector<TokenIndex> selectedBefore(const Layer& layer, TokenIndex cut) {
    std::vector<TokenIndex> tokens;
    for (const TokenIndex token : layer.request.selected)
        if (token < cut)
            tokens.push_back(token);
    if (tokens.empty())
        throw Error(
            {"no token before the cut is selected", "quantity", "Select a span first, such as the needle (N)", {}});
    return tokens;
}

Values selectionKept(const Layer& layer) {
    const auto result = layer.active(false);
    const auto tokens = selectedBefore(layer, result->request.cut.token);
    Values values;
    for (const HeadSelection& head : result->selection.heads)
        values.push_back(static_cast<double>(std::count_if(tokens.begin(), tokens.end(),
                                                           [&](TokenIndex token) {
                                                               return std::binary_search(head.kept.begin(),
                                                                                         head.kept.end(), token);
                                                           })) /
                         static_cast<double>(tokens.size()));
    return values;
}

/// The smallest share of tokens at which every selected one is kept; NaN where that is unknown.
Values survivalBudget(const Layer& layer) {
    const auto result = layer.active(false);
    const auto tokens = selectedBefore(layer, result->request.cut.token);
    Values values;
    for (std::size_t head = 0; head < layer.kvHeads(); ++head) {
        double worst = 0;
        for (const TokenIndex token : tokens) {
            const TokenDecision decision =
                tokenDecisionOf(*result, KvHeadIndex(static_cast<std::int32_t>(head)), token);
            worst = decision.flipBudget > 0 ? std::max(worst, static_cast<double>(decision.flipBudget)) : kNaN;
            if (std::isnan(worst))
                break;
        }
        values.push_back(worst / static_cast<double>(result->visible));
    }
    return values;
}

/// cos(mean key, mean query) of each query head with its KV head (KeyDiff Fig. 14), over the tokens before the cut.
Values meanCosine(const Layer& layer) {
    const Engine& engine = layer.runner.engine();
    const CaptureInfo& info = layer.request.capture->info();
    const LayerInfo& about = info.layerInfo(layer.index);
    const TokenIndex cut = layer.request.cut.token;
    const std::int64_t first = info.numTokens - about.queryCount, seen = std::max<std::int64_t>(0, cut - first);
    if (seen == 0)
        throw Error({"no query before the cut was captured", "layer " + std::to_string(layer.index.value),
                     "Choose a later cut, or capture the queries of all tokens", info.path});
    const auto mean = [&](TensorRole role, std::int64_t rows) {
        const Tensor all = layer.runner.tensor(layer.request.capture, layer.index, role, layer.checkpoint);
        return engine.download(engine.anchor(engine.rows(all, 0, rows), AnchorKind::Mean, layer.checkpoint));
    };
    const HostTensor keys = mean(TensorRole::Keys, cut), queries = mean(TensorRole::Queries, seen);
    const std::int64_t d = keys.shape[1];
    Values values;
    for (std::size_t q = 0; q < about.gqaGroupOf.size(); ++q) {
        const float* k = keys.data.data() + about.gqaGroupOf[q] * d;
        const float* x = queries.data.data() + static_cast<std::int64_t>(q) * d;
        double dot = 0, kk = 0, xx = 0;
        for (std::int64_t c = 0; c < d; ++c) {
            dot += static_cast<double>(k[c]) * x[c];
            kk += static_cast<double>(k[c]) * k[c];
            xx += static_cast<double>(x[c]) * x[c];
        }
        values.push_back(kk > 0 && xx > 0 ? dot / std::sqrt(kk * xx) : 0);
    }
    return values;
}

struct Quantity {
    std::string words; ///< with {} for the policy where it has one
    std::string unit;
    bool perQueryHead = true, isSigned = false, higherIsBetter = false, neverIsNan = false, takesNoSide = false;
    std::function<Values(const Layer&)> row;
};

Quantity quantityOf(const MeasureCard& card) {
    const bool ofPolicy = card.subject == MeasureSubject::KeptTokens;
    return {measureWords(card) + (ofPolicy ? " of {}" : ""),
            card.unit,
            card.shape != MeasureShape::PerKvHead,
            card.isSigned,
            higherWins(card),
            false,
            card.better == MeasureDirection::Neither,
            [&card](const Layer& layer) { return measured(layer, card); }};
}

constexpr std::string_view kPolicy = "{}";

/// What the grid has beside the measures.
Quantity quantityOf(const std::string& id) {
    static const std::map<std::string, Quantity> own = {
        {"error_difference",
         {"output error of A less that of B", "", true, true, false, false, false, errorDifference}},
        {"overlap", {"Jaccard overlap of A and B", "", false, false, true, false, false, overlap}},
        {"kept_tokens", {"tokens kept by {}", "", false, false, true, false, false, keptTokens}},
        {"selection_kept",
         {"share of the selected tokens that {} keeps", "", false, false, true, false, false, selectionKept}},
        {"survival_budget",
         {"smallest retention at which {} keeps all selected tokens", "", false, false, false, true, false,
          survivalBudget}},
        {"mean_cosine", {"cos(mean key, mean query)", "", true, true, false, false, true, meanCosine}}};
    const auto found = own.find(id);
    return found == own.end() ? quantityOf(measureById(id)) : found->second;
}

std::string wordsOf(const Quantity& quantity, const ViewDataRequest& request) {
    std::string words = quantity.words;
    const std::size_t at = words.find(kPolicy);
    if (at == std::string::npos)
        return words;
    return words.replace(at, kPolicy.size(), policyIdentityOf(resolvePane(request.shownPane())).policyName);
}

} // namespace

ViewDataMaker::Value makeHeadGridData(const LayerRunner& runner, const ViewDataRequest& request,
                                      const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial) {
    const std::string& id = request.options.choice("quantity");
    const Quantity quantity = quantityOf(id);
    const CaptureInfo& info = request.capture->info();
    HeadGridData data;
    data.quantity = id;
    data.what = wordsOf(quantity, request);
    data.unit = quantity.unit;
    data.ofPane = quantity.words.find(kPolicy) != std::string::npos;
    data.takesNoSide = quantity.takesNoSide;
    data.perQueryHead = quantity.perQueryHead;
    data.columns = quantity.perQueryHead ? info.numQueryHeads : info.numKvHeads;
    data.isSigned = quantity.isSigned;
    data.higherIsBetter = quantity.higherIsBetter;
    data.neverIsNan = quantity.neverIsNan;
    for (const LayerInfo& layer : info.layers)
        data.rows.push_back({layer.layer.value, false, Values(static_cast<std::size_t>(data.columns), kNaN), kNaN});
    const double total = static_cast<double>(data.rows.size());
    for (std::size_t i = 0; i < data.rows.size(); ++i) {
        const Checkpoint part = checkpoint.part(static_cast<double>(i) / total, static_cast<double>(i + 1) / total);
        part.at(0, 1);
        data.rows[i].values = quantity.row({runner, request, info.layers[i].layer, part, data.rows[i].kept});
        data.rows[i].computed = true;
        partial(std::make_shared<const HeadGridData>(data));
    }
    return std::make_shared<const HeadGridData>(data);
}

} // namespace kvscope
