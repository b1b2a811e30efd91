// The one list of makers: a new maker is a new line here.
#include "app/study/makers/view_data_maker.h"

#include <algorithm>
#include <cassert>

#define KVSCOPE_MAKERS(MAKER)                                                                                          \
    MAKER(projectionMaker)                                                                                             \
    MAKER(attentionMapMaker)                                                                                           \
    MAKER(curvesMaker)                                                                                                 \
    MAKER(clusteringMaker)                                                                                             \
    MAKER(theoryMaker)                                                                                                 \
    MAKER(leverageMaker)                                                                                               \
    MAKER(calibrationMaker)                                                                                            \
    MAKER(headGridMaker)                                                                                               \
    MAKER(blockTimelineMaker)                                                                                          \
    MAKER(keepProbabilityMaker)                                                                                        \
    MAKER(tokenClassesMaker)                                                                                           \
    MAKER(twoCapturesMaker)                                                                                            \
    MAKER(variantDiffMaker)                                                                                            \
    MAKER(phaseMapMaker)                                                                                               \
    MAKER(geometryMaker)                                                                                               \
    MAKER(mergeTreeMaker)                                                                                              \
    MAKER(walkMaker)                                                                                                   \
    MAKER(answerNeedsMaker)

namespace kvscope {

#define KVSCOPE_DECLARE(name) ViewDataMaker name();
KVSCOPE_MAKERS(KVSCOPE_DECLARE)
#undef KVSCOPE_DECLARE

const ViewDataMaker* makerFor(const View& view) {
#define KVSCOPE_LIST(name) name(),
    static const std::vector<ViewDataMaker> makers = {KVSCOPE_MAKERS(KVSCOPE_LIST)};
#undef KVSCOPE_LIST
    const std::string& id = view.card().data;
    const auto at = std::ranges::find(makers, id, &ViewDataMaker::id);
    assert(id.empty() == (at == makers.end()));
    return id.empty() ? nullptr : &*at;
}

} // namespace kvscope
