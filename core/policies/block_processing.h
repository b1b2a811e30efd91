#pragma once

#include "core/policies/policy.h"
#include "core/policies/policy_outcome.h"

namespace kvscope {

/// Ascending ends of the blocks of a prompt of `tokens` tokens with a budget of `budget` (KeyDiff 2.4; K3): the first
/// tokens - decode_tokens are cut into prompt blocks (one block when prompt_block is 0), the rest into decode blocks.
/// Alignment "paper" cuts from 0; "kvpress" takes the first `budget` tokens as the cache and cuts from there.
/// Throws Error when decode_tokens leave no prompt.
std::vector<TokenIndex> blockEnds(const ParameterValues& values, std::int64_t tokens, std::int64_t budget);

/// Block prompt processing: C_i = C_{i-1} + block i; whenever |C_i| exceeds the budget N, the policy chooses the N rows
/// that stay (KeyDiff 2.3 and 2.4, Eqs. 4-6). Runs on the tensors of full attention, so it is a simulation.
/// `input` is that of a one-shot run over the whole prompt; a step sees the queries before its own end. Rows keep their
/// true positions. The margin of a head is the smallest over all steps; scores are those of the last block, also when
/// it evicts nothing.
PolicyOutcome runInBlocks(const Policy& policy, const ParameterValues& values, const Budget& budget,
                          const PolicyInput& input);

} // namespace kvscope
