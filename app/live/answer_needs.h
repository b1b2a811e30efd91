#pragma once

#include "app/live/live_answers.h"
#include "core/base/host_tensor.h"

#include <span>
#include <utility>
#include <vector>

namespace kvscope::live {

// What the expected answer needs of the context, whatever policies keep. An old worker refuses both.

/// Tokens begin .. end - 1 before the cut.
using TokenRange = std::pair<TokenIndex, TokenIndex>;
inline constexpr std::size_t kChunksAtOnce = 16; ///< in one request, between which others come

/// The tokens before the cut in chunks of `size`; the last may be shorter.
std::vector<TokenRange> chunksOf(TokenIndex cut, TokenIndex size);
/// Mean loss of the answer with one chunk hidden in all layers and heads, for each of at most kChunksAtOnce chunks; NaN
/// where it is NaN or infinite.
std::vector<double> lossesWithout(const LiveAnswers& answers, std::span<const TokenRange> chunks,
                                  const Checkpoint& checkpoint);

/// First-order rise of the answer's loss, in nat, when a KV head evicts a token; [layers, Hkv, cut]. With one step the
/// derivative at the full cache; with more, integrated gradients from the full cache to an empty one (Sundararajan et
/// al. 2017), whose sum is about the rise of the loss without the context.
HostTensor tokenScores(const LiveAnswers& answers, int steps, const Checkpoint& checkpoint);

} // namespace kvscope::live
