#pragma once

#include "gpu/kernels/attention_call.h"
#include "gpu/kernels/softmax_steps.h"

#include <cstddef>

// Accumulated attention: column sums of the softmax matrix, which is never stored. The first launch computes the
// softmax normaliser of every query, the second adds up the columns. Each computes the logits from queries and keys
// tile by tile. Sums have a fixed order, so every run gives the same bits.
namespace kvscope::gpu {

struct AttentionSumsCall {
    AttentionCall attention;
    SoftmaxNormaliser* normalisers = nullptr; ///< [slots, R]
    /// Chunks: padding of a last chunk shorter than C, as the reference codes have it (C8): `zeroKeys` keys of logit 0
    /// take part in its softmax, and `uniformRows` rows add 1/C to each of its keys.
    std::int64_t zeroKeys = 0, uniformRows = 0;
    OnlineSoftmax<double>* scratch = nullptr; ///< [softmaxScratch]
};

std::int64_t softmaxScratch(const AttentionCall& attention);
/// Number of query tiles and of key tiles of a call. Long work is cut into launches of some of them; results do not
/// depend on the cut.
std::int64_t softmaxTiles(const AttentionCall& attention);
std::int64_t columnTiles(const AttentionCall& attention);

/// normalisers: of every query of the tiles [begin, end), from all keys that it sees. Enqueue the last tile last.
void softmaxNormalisers(const AttentionSumsCall& call, Stream stream, std::int64_t begin = 0,
                        std::int64_t end = INT64_MAX);

/// sums [Hq, m]: weights added over all queries, for the keys of the tiles [begin, end). Rows of query heads outside
/// `heads` stay as they are. queryRows must be null.
void attentionColumnSums(const AttentionSumsCall& call, float* sums, Stream stream, std::int64_t begin = 0,
                         std::int64_t end = INT64_MAX);

} // namespace kvscope::gpu
