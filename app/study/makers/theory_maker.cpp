// The view shows what the command writes: both ask core/studies for the same rows.
#include "app/study/makers/view_data_maker.h"

#include "views/theory/theory_data.h"

namespace kvscope {

namespace {

ViewDataMaker::Value make(const ViewDataWork& work) {
    auto data = std::make_shared<TheoryData>();
    data->asked = {work.request.options.real("epsilon"), work.request.options.real("delta")};
    const RunRequest run = resolvePane(work.request.shownPane());
    data->policyName = policyIdentityOf(run).policyName;
    data->rows = theoryTable(work.runner, run, data->asked, work.checkpoint).rows;
    return data;
}

} // namespace

ViewDataMaker theoryMaker() {
    using enum DataScope;
    return {"theory", {Layer, Cut, ActivePane, Seed}, make};
}

} // namespace kvscope
