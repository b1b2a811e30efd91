// The list of view data kinds with their dependencies: a new kind is a new line here.
#include "app/study/makers/all_makers.h"

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

#include <algorithm>
#include <cassert>

namespace kvscope {

const std::vector<ViewDataMaker>& viewDataMakers() {
    using enum DataScope;
    static const std::vector<ViewDataMaker> makers = {
        {"projection", {Layer, KvHead, QueryHead}, makeProjectionData, projectionDetail},
        attentionMapMaker(),
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
    if (view.card().data.empty()) return nullptr;
    const auto& makers = viewDataMakers();
    const auto at = std::find_if(makers.begin(), makers.end(),
                                 [&](const ViewDataMaker& maker) { return maker.id == view.card().data; });
    assert(at != makers.end());
    return &*at;
}

} // namespace kvscope
