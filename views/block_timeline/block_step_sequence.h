#pragma once

#include "views/view.h"

namespace kvscope {

/// Block prompt processing as a step sequence: one event per block that evicts. The pane has a result with steps.
StepSequence blockStepSequence(const ViewInput& input, const PaneData& pane);
/// First token of the block that ends with a step.
TokenIndex blockBegin(const RunResult& result, const BlockStep& step);
/// Describes the last block at or before the cursor, in at most two lines.
std::string blockCaption(const ViewInput& input, const PaneData& pane);

} // namespace kvscope
