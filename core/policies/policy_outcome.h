#pragma once

#include "core/policies/block_step.h"
#include "core/policies/policy_input.h"
#include "core/policies/selection.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

struct PolicyOutcome {
    Selection selection;
    std::int64_t requested = 0;   ///< tokens, after rounding; the mean over the layers where these differ
    Scores scores;                ///< of the last step; rows mapped through `positions`
    RowPositions positions;       ///< empty: row r is token r
    std::vector<BlockStep> steps; ///< one per eviction; empty in a one-shot run
    bool simulated = false;       ///< block processing on full-attention tensors
    std::vector<std::string> notes;
    std::shared_ptr<const StepLog> log; ///< of the last choice; null unless asked for
};

/// Rows to tokens, with weights and protection.
Selection tokensOfRows(const RowSelection& rows, const PolicyInput& input);

} // namespace kvscope
