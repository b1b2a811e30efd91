// The kinds of data that views show, and what each depends on: a kind is computed again exactly when something in its
// key has changed.
#include "app/study/makers/view_data_maker.h"

#include "app/study/makers/attention_map_maker.h"
#include "app/study/makers/block_timeline_maker.h"
#include "app/study/makers/calibration_maker.h"
#include "app/study/makers/clustering_maker.h"
#include "app/study/makers/curves_maker.h"
#include "app/study/makers/geometry_maker.h"
#include "app/study/makers/head_grid_maker.h"
#include "app/study/makers/keep_probability_maker.h"
#include "app/study/makers/leverage_maker.h"
#include "app/study/makers/merge_tree_maker.h"
#include "app/study/makers/phase_map_maker.h"
#include "app/study/makers/projection_maker.h"
#include "app/study/makers/theory_maker.h"
#include "app/study/makers/token_classes_maker.h"
#include "app/study/makers/variant_diff_maker.h"
#include "app/study/makers/walk_maker.h"
#include "core/base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

namespace kvscope {

namespace {

std::string scopeKey(DataScope scope, const ViewDataRequest& request) {
    switch (scope) {
    case DataScope::Layer: return std::to_string(request.layer.value);
    case DataScope::KvHead: return std::to_string(request.kvHead.value);
    case DataScope::QueryHead: return std::to_string(request.queryHead.value);
    case DataScope::Cut: return std::to_string(request.cut.token) + (request.cut.judgedOnSeen ? "s" : "");
    case DataScope::Panes: {
        std::string key;
        for (const PaneRequest& pane : request.panes)
            key += chooserKey(pane) + ";";
        return key;
    }
    case DataScope::Policies: {
        std::string key;
        for (PaneRequest pane : request.panes) {
            pane.run.budget = {};
            key += chooserKey(pane) + ";";
        }
        return key;
    }
    case DataScope::ActivePane:
    case DataScope::ActivePolicy: {
        if (request.panes.empty())
            return {};
        PaneRequest pane = request.shownPane();
        if (scope == DataScope::ActivePolicy)
            pane.run.budget = {};
        return std::to_string(request.activePane) + chooserKey(pane);
    }
    case DataScope::Selection: return fmt::format("{}", fmt::join(request.selected, ","));
    case DataScope::Seed: return std::to_string(request.seed);
    case DataScope::Frame: break; // in key(), not in identity()
    }
    return {};
}

} // namespace

const PaneRequest& ViewDataRequest::shownPane() const {
    const auto active = static_cast<std::size_t>(activePane);
    if (active >= panes.size())
        throw Error({.sentence = "no policy is shown", .remedy = "Add a pane"});
    return panes[active];
}

const std::vector<ViewDataMaker>& viewDataMakers() {
    using enum DataScope;
    static const std::vector<ViewDataMaker> makers = {
        {"projection", {Layer, KvHead, QueryHead}, makeProjectionData, projectionDetail},
        {"attention_map", {Layer, KvHead, QueryHead, Frame}, makeAttentionMapData},
        {"curves", {Layer, KvHead, Cut, Policies, Seed}, makeCurvesData, curvesDetail},
        {"clustering", {Layer, KvHead, Cut, ActivePane, Seed}, makeClusteringData},
        {"theory", {Layer, Cut, ActivePane, Seed}, makeTheoryData},
        {"leverage", {Layer, KvHead, Cut, Seed}, makeLeverageData},
        {"calibration", {Cut, Policies, Seed}, makeCalibrationData},
        {"head_grid", {Cut, Panes, ActivePane, Selection, Seed}, makeHeadGridData},
        {"block_timeline", {Layer, KvHead, Cut, ActivePane, Seed}, makeBlockTimelineData},
        {"keep_probability", {Layer, KvHead, Cut, ActivePane}, makeKeepProbabilityData},
        {"token_classes", {}, makeTokenClassesData},
        {"variant_diff", {Layer, KvHead, Cut, ActivePane}, makeVariantDiffData},
        {"phase_map", {Layer, KvHead, Cut, Panes, ActivePane}, makePhaseMapData},
        {"geometry", {Layer, KvHead, QueryHead, Cut, Panes}, makeGeometryData},
        {"merge_tree", {Layer, KvHead, QueryHead, Cut, Policies, ActivePolicy, Seed}, makeMergeTreeData},
        {"walk", {Layer, KvHead, Cut, Panes, ActivePane, Seed}, makeWalkData},
    };
    return makers;
}

const ViewDataMaker* makerFor(const View& view) {
    if (view.card().data.empty())
        return nullptr;
    const auto& makers = viewDataMakers();
    const auto at = std::find_if(makers.begin(), makers.end(),
                                 [&](const ViewDataMaker& maker) { return maker.id == view.card().data; });
    assert(at != makers.end());
    return &*at;
}

std::string ViewDataMaker::identity(const ViewDataRequest& request) const {
    std::string key = fmt::format("{}|{}|{}|{}", id, static_cast<const void*>(request.capture.get()),
                                  request.capture->info().hash, request.options.key(Stage::Features));
    for (const DataScope scope : scopes)
        key += "|" + scopeKey(scope, request);
    return key;
}

std::string ViewDataMaker::key(const ViewDataRequest& request) const {
    std::string key = identity(request) + "|" + request.options.key(Stage::Combine);
    if (detail)
        key += "|" + detail(request);
    if (std::find(scopes.begin(), scopes.end(), DataScope::Frame) == scopes.end())
        return key;
    key += fmt::format("|{}x{}", request.width, request.height);
    if (const auto& r = request.range)
        key += fmt::format("|{},{},{},{}", r->xMin, r->xMax, r->yMin, r->yMax);
    return key;
}

} // namespace kvscope
