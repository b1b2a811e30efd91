// One way from what a pane asks for to what the runner takes, for the window and for figures without one.
#include "app/study/pane_request.h"

#include "core/capture/named_dataset.h"
#include "core/policies/policy.h"

#include <fmt/format.h>

namespace kvscope {

RunRequest resolvePane(const PaneRequest& pane, bool ownCut) {
    RunRequest request = pane.run;
    if (pane.recordedPath.empty())
        return request;
    auto recorded = std::make_shared<RecordedSelection>(readSelection(pane.recordedPath));
    checkAgainst(*recorded, *request.capture);
    if (ownCut)
        request.cut = cutOf(*recorded, *request.capture);
    request.recorded = std::move(recorded);
    return request;
}

PolicyIdentity policyIdentityOf(const RunRequest& run) {
    if (run.recorded)
        return {run.recorded->policy, run.recorded->policy + " (recorded)", run.recorded->variant};
    return {run.policy.policy, policyById(run.policy.policy).card().name, run.policy.variant};
}

std::string resultKey(const PaneRequest& pane) {
    const RunRequest& run = pane.run;
    const std::string identity =
        pane.recordedPath.empty() ? run.policy.text() : pane.recordedPath + "@" + pathStamp(pane.recordedPath);
    return fmt::format("{}|{}|{}{}|{}", identity, run.budget.text(), run.cut.token, run.cut.evaluatedOnSeen ? "s" : "",
                       run.seed);
}

} // namespace kvscope
