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

/// The request as the runner takes it. A recorded list is read here and always runs at its own cut, with its own budget
/// and seed, whatever the session says: a policy chose it from the tokens before that cut, and the queries after that
/// cut evaluate it. Throws Error for a list that cannot be read or does not fit the capture.
RunRequest resolvePane(const PaneRequest& pane);

/// What selected the tokens of a run, as every view names it: "SnapKV" with the variant "kvpress" or, once a parameter
/// differs from the variant's, "kvpress, edited"; of a recorded list "SnapKV (recorded)" with the variant that the file
/// states and the list's own cut, "kvpress, cut 995".
struct PolicyIdentity {
    std::string policyId; ///< decides the colour; of a recorded list the policy that made the list
    std::string policyName, variant;
};
PolicyIdentity policyIdentityOf(const PolicySpec& policy);
PolicyIdentity policyIdentityOf(const RunRequest& run);

/// Everything that determines a result but capture and layer. A recorded list is identified by its file and the time of
/// its last change, so that an edited file runs again.
std::string resultKey(const PaneRequest& pane);

} // namespace kvscope
