#pragma once

#include "gpu/kernels/attention_call.h"
#include "gpu/kernels/softmax_steps.h"

#include <cstddef>

// Accumulated attention: column sums of the softmax matrix, which is never stored. The first launch computes the
// softmax normaliser of every query, the second adds up the columns. Each computes the logits from queries and keys
// tile by tile; for a short window the first launch can store them for the second. Sums have a fixed order: same bits
// in every run.
namespace kvscope::gpu {

struct AttentionSumsCall {
    AttentionCall attention;
    SoftmaxNormaliser* normalisers = nullptr; ///< [slots, R]
    /// Chunks: padding of a last chunk shorter than C, as the reference codes have it (C8): `zeroKeys` keys of logit 0
    /// take part in its softmax, and `uniformRows` rows add 1/C to each of its keys.
    std::int64_t zeroKeys = 0, uniformRows = 0;
    void* scratch = nullptr; ///< softmaxScratchBytes
    void* logits = nullptr;  ///< keptLogitsBytes: stores the logits for the second launch; null: computed twice
};

std::size_t softmaxScratchBytes(const AttentionCall& attention);
/// Bytes for stored logits: 8 (exact) or 4 (fast) each; worth it for windows of a few hundred rows.
std::size_t keptLogitsBytes(const AttentionCall& attention);

/// Tiles and KV heads to compute now, so that long work can be stopped between launches; results do not depend on the
/// slicing.
struct TileSlice {
    std::int64_t begin = 0, end = INT64_MAX;
    std::int64_t headBegin = 0, headEnd = INT64_MAX;
};
/// Number of query tiles and of key tiles of a call.
std::int64_t softmaxTiles(const AttentionCall& attention);
std::int64_t columnTiles(const AttentionCall& attention);

/// normalisers: log-sum-exp of every query of the slice, as shift and factor.
void softmaxNormalisers(const AttentionSumsCall& call, Stream stream, TileSlice slice = {});

/// sums [Hq, m]: weights added over all queries, for the keys and heads of the slice. Reads the normalisers, which
/// softmaxNormalisers or the caller wrote (causal attention with a saved lse). Rows of query heads outside `heads` stay
/// as they are. queryRows must be null.
void attentionColumnSums(const AttentionSumsCall& call, float* sums, Stream stream, TileSlice slice = {});

} // namespace kvscope::gpu
