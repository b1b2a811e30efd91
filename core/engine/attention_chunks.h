#pragma once

#include "core/engine/attention.h"
#include "core/engine/requests.h"
#include "core/engine/tensor.h"

#include <cstdint>

namespace kvscope {

/// Non-causal attention inside chunks of C rows (Compactor 3.3): every query sees all keys of its own chunk and no
/// others. Row r of the queries and of the keys is the same token. Where the rule has a sliding window W, row j sees
/// rows i with |i - j| < W only: the layer's mask in both directions of time (0.10), which matters where C > W.
struct AttentionChunksInput {
    Tensor queries; ///< [Hq, n, d]
    Tensor keys;    ///< [Hkv, n, d]
    AttentionRule rule;
    std::int64_t chunk = 256; ///< C
    /// Padding of a short last chunk in the reference codes (C8): so many keys of logit 0 take part in its softmax,
    /// whatever the window, and so many rows of logits 0 add 1/C, or 1/(C + e^sink), to each of its tokens.
    std::int64_t zeroKeys = 0, uniformRows = 0;
    /// Where the rows are those of a cache with gaps, their tokens: the window counts tokens, not rows.
    RowPositions positions = {};
};

} // namespace kvscope
