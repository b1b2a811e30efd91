// The views, in the order in which they are offered: one line each.
#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "views/attention_map/attention_map_view.h"
#include "views/block_timeline/block_timeline_view.h"
#include "views/calibration/calibration_view.h"
#include "views/clustering/clustering_view.h"
#include "views/curves/curves_view.h"
#include "views/error_difference/error_difference_view.h"
#include "views/geometry/geometry_view.h"
#include "views/head_grid/head_grid_view.h"
#include "views/keep_probability/keep_probability_view.h"
#include "views/key_projection/key_projection_view.h"
#include "views/leverage/leverage_view.h"
#include "views/merge_tree/merge_tree_view.h"
#include "views/overlap/overlap_view.h"
#include "views/phase_map/phase_map_view.h"
#include "views/score_plane/score_plane_view.h"
#include "views/theory/theory_view.h"
#include "views/token_classes/token_classes_view.h"
#include "views/token_profile/token_profile_view.h"
#include "views/token_strip/token_strip_view.h"
#include "views/variant_diff/variant_diff_view.h"
#include "views/walk/walk_view.h"

namespace kvscope {

const std::vector<const View*>& allViews() {
    static const std::vector<const View*> views = {
        &keyProjectionView(),   &attentionMapView(),    &tokenProfileView(), &tokenStripView(),
        &overlapView(),         &errorDifferenceView(), &variantDiffView(),  &tokenClassesView(),
        &keepProbabilityView(), &phaseMapView(),        &geometryView(),     &curvesView(),
        &headGridView(),        &blockTimelineView(),   &scorePlaneView(),   &leverageView(),
        &clusteringView(),      &mergeTreeView(),       &walkView(),         &calibrationView(),
        &theoryView(),
    };
    return views;
}

const View& viewById(std::string_view id) {
    std::vector<std::string> names;
    for (const View* view : allViews()) {
        if (view->card().id == id)
            return *view;
        names.push_back(view->card().id);
    }
    throw Error({.sentence = "there is no view '" + std::string(id) + "'", .remedy = suggestName(id, names)});
}

} // namespace kvscope
