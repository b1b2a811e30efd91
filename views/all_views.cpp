// The one list of views: a new view is a new line here, in the order in which views are offered.
#include "core/base/nearest_name.h"
#include "views/view.h"

#include <algorithm>
#include <cassert>

#define KVSCOPE_VIEWS(VIEW)                                                                                            \
    VIEW(keyProjectionView)                                                                                            \
    VIEW(attentionMapView)                                                                                             \
    VIEW(tokenProfileView)                                                                                             \
    VIEW(tokenStripView)                                                                                               \
    VIEW(overlapView)                                                                                                  \
    VIEW(errorDifferenceView)                                                                                          \
    VIEW(twoCapturesView)                                                                                              \
    VIEW(variantDiffView)                                                                                              \
    VIEW(tokenClassesView)                                                                                             \
    VIEW(keepProbabilityView)                                                                                          \
    VIEW(phaseMapView)                                                                                                 \
    VIEW(geometryView)                                                                                                 \
    VIEW(curvesView)                                                                                                   \
    VIEW(headGridView)                                                                                                 \
    VIEW(blockTimelineView)                                                                                            \
    VIEW(scorePlaneView)                                                                                               \
    VIEW(leverageView)                                                                                                 \
    VIEW(clusteringView)                                                                                               \
    VIEW(mergeTreeView)                                                                                                \
    VIEW(walkView)                                                                                                     \
    VIEW(calibrationView)                                                                                              \
    VIEW(theoryView)                                                                                                   \
    VIEW(answerNeedsView)

namespace kvscope {

#define KVSCOPE_DECLARE(name) const View& name();
KVSCOPE_VIEWS(KVSCOPE_DECLARE)
#undef KVSCOPE_DECLARE

const std::vector<const View*>& allViews() {
#define KVSCOPE_LIST(name) &name(),
    static const std::vector<const View*> views = {KVSCOPE_VIEWS(KVSCOPE_LIST)};
#undef KVSCOPE_LIST
    return views;
}

const View& viewById(std::string_view id) {
    const auto idOf = [](const View* view) -> const std::string& { return view->card().id; };
    return *requireNamed(allViews(), idOf, id, "there is no view");
}

const View& viewAt(ViewPlace place) {
    const auto& views = allViews();
    const auto found = std::ranges::find_if(views, [&](const View* view) { return view->card().place == place; });
    assert(found != views.end());
    return **found;
}

} // namespace kvscope
