#pragma once

#include "core/lists/selection_file.h"
#include "core/run/run.h"

#include <string>

namespace kvscope {

/// What a pane asks for: a policy, or a list that a file recorded and that is read where the work is done.
struct PaneRequest {
    RunRequest run;
    std::string recordedPath; ///< empty: the policy chooses
};

/// The request as the runner takes it. Reads the recorded list and runs it with its own cut where `ownCut` is set.
/// Throws Error for a list that cannot be read or does not fit the capture.
RunRequest resolvePane(const PaneRequest& pane, bool ownCut = false);

/// Who chooses in a run, as a view names it: a policy, or "snapkv (recorded)" with the variant that its file states.
struct PolicyIdentity {
    std::string policyId, policyName, variant;
};
PolicyIdentity policyIdentityOf(const RunRequest& run);

/// Everything that determines a result but capture and layer. A recorded list is identified by its file and the time of
/// its last change, so that an edited file runs again.
std::string resultKey(const PaneRequest& pane);

} // namespace kvscope
