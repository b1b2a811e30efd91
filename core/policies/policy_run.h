#pragma once

#include "core/policies/policy.h"
#include "core/policies/policy_outcome.h"

namespace kvscope {

/// True when prompt_block and decode_tokens are both 0 (or unknown to the policy): the three stages run once.
bool isOneShot(const ParameterValues& values);

/// Runs the three stages or, unless isOneShot or the layer is left whole, block prompt processing (block_processing.h).
/// The caches of the run layer call the stages themselves in the one-shot case.
PolicyOutcome runPolicy(const Policy& policy, const ParameterValues& values, const Budget& budget,
                        const PolicyInput& input);
/// The select stage alone: rounding, the policy's select, rows to tokens.
PolicyOutcome selectOneShot(const Policy& policy, const ParameterValues& values, const Budget& budget,
                            const PolicyInput& input, const Scores& scores);

} // namespace kvscope
