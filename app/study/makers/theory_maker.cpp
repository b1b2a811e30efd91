// The view shows what the command writes: both ask core/run for the same rows.
#include "app/study/makers/theory_maker.h"

#include "views/theory/theory_data.h"

namespace kvscope {

ViewDataMaker::Value makeTheoryData(const LayerRunner& runner, const ViewDataRequest& request,
                                    const Checkpoint& checkpoint, const ViewDataMaker::Partial&) {
    auto data = std::make_shared<TheoryData>();
    data->asked = {request.options.real("epsilon"), request.options.real("delta")};
    const RunRequest run = resolvePane(request.shownPane());
    data->policyName = policyIdentityOf(run).policyName;
    data->rows = theoryRows(runner, run, data->asked, checkpoint);
    return data;
}

} // namespace kvscope
