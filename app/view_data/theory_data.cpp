// The view shows what the command writes: both ask core/run for the same rows.
#include "app/view_data/theory_data.h"

#include "core/base/error.h"
#include "views/theory/theory_data.h"

namespace kvscope {

ViewDataMaker::Value makeTheoryData(const LayerRunner& runner, const ViewDataRequest& request, const Checkpoint& checkpoint,
                                    const ViewDataMaker::Partial&) {
    if (request.panes.empty())
        throw Error({.sentence = "no policy is shown, and theorems speak about policies", .place = {}, .remedy = "Add a pane"});
    auto data = std::make_shared<TheoryData>();
    data->asked = {request.options.real("epsilon"), request.options.real("delta")};
    const RunRequest run = resolvePane(request.panes[static_cast<std::size_t>(request.activePane)]);
    data->policyName = policyById(run.policy.policy).card().name;
    data->rows = theoryRows(runner, run, data->asked, checkpoint);
    return data;
}

} // namespace kvscope
