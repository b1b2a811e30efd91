#pragma once

#include "core/lists/selection_file.h"
#include "core/run/run.h"
#include "views/pane_name.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// A pane's request: a policy, or a recorded list, which is read on the worker.
struct PaneRequest {
    RunRequest run;
    std::string recordedPath; ///< empty: the policy chooses
    bool isSecond = false;    ///< on the compared capture of a session
};

/// The request as the runner takes it. A recorded list is read here and always runs at its own cut, with its own budget
/// and seed, whatever the session says: a policy chose it from the tokens before that cut, and the queries after that
/// cut evaluate it. Throws Error for a list that cannot be read or does not fit the capture, and on a second capture
/// for imported scores, which belong to the first.
RunRequest resolvePane(const PaneRequest& pane);

/// The policy identity of a pane for all views, and the letter of the pane, by its index.
PaneName policyIdentityOf(const PolicySpec& policy, std::size_t pane = 0);
PaneName policyIdentityOf(const RunRequest& run, std::size_t pane = 0);
/// The scores that kvscope-scores wrote beside a capture, as policies by name ("SnapKVPress"); empty without any.
std::vector<std::pair<std::string, PolicySpec>> policiesOfScores(const std::string& capturePath);

/// What a recorded list says of itself, as names and values: file, policy, variant, parameters, budget, cut, seed,
/// engine.
std::vector<std::pair<std::string, std::string>> factsOfList(const RunRequest& recorded);
/// Whether a recorded list was made with another budget than `asked`, of the tokens that its policy saw.
bool hasOwnBudget(const RunResult& result, const Budget& asked);

/// Everything that determines a result except capture and layer. A recorded list is identified by its file and
/// modification time, so that an edited file runs again.
std::string resultKey(const PaneRequest& pane);

} // namespace kvscope
