#pragma once

#include "core/lists/selection_file.h"
#include "core/run/run.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kvscope {

/// Which parts of the results a list contains.
struct RecordFilter {
    std::vector<int> kvHeads; ///< empty: all
    bool withScores = false;  ///< CSV always needs them for rank and score
    std::string command;      ///< the command line that regenerates the list
};

/// Combines the results of several layers of one capture, policy, cut, budget and seed into one list. Throws Error for
/// a KV head that the capture does not have.
RecordedSelection recordSelection(std::span<const std::shared_ptr<const RunResult>> layers, const RecordFilter& filter);

/// Each note of the layers' results once. A note that only some layers have begins with these layers, unless it names
/// its layer itself: "layers 2, 3: SnapKV saw 18 of its 32 window queries".
std::vector<std::string> notesOf(std::span<const std::shared_ptr<const RunResult>> layers);

/// KV heads of the layer that a recorded list leaves out, ascending; empty for a policy.
std::vector<std::int32_t> headsNotRecorded(const RunResult& result);
/// Whether a recorded list leaves out this KV head; what the head keeps is then unknown.
bool leavesOut(const RunResult& result, std::int32_t kvHead);

} // namespace kvscope
