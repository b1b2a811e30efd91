#pragma once

#include "gpu/kernels/attention_call.h"
#include "gpu/kernels/softmax_steps.h"

#include <cstddef>

// How much attention every key receives: column sums of the softmax matrix, which is never stored. A first launch makes
// the softmax sums of every query, a second adds up the columns; each reads queries and keys tile by tile and
// multiplies them anew, or keeps the logits of a short window in between. Sums have a fixed order: same bits in every
// run.
namespace kvscope::gpu {

struct AttentionSumsCall {
    AttentionCall attention;
    SoftmaxNormaliser* normalisers = nullptr; ///< [slots, R]
    /// Chunks: keys of logit 0 that take part in the softmax of a last chunk shorter than C, and rows that give 1/C to
    /// each of its keys (what padding does in the reference codes; C8).
    std::int64_t zeroKeys = 0, uniformRows = 0;
    void* scratch = nullptr; ///< softmaxScratchBytes
    void* logits = nullptr;  ///< keptLogitsBytes: saves the second product; null: products are made twice
};

std::size_t softmaxScratchBytes(const AttentionCall& attention);
/// 8 (exact) or 4 bytes per logit; worth it for a window of some hundred rows.
std::size_t keptLogitsBytes(const AttentionCall& attention);

/// Tiles and KV heads to compute now, so that long work can be stopped between launches; results do not depend on how
/// it is cut.
struct TileSlice {
    std::int64_t begin = 0, end = INT64_MAX;
    std::int64_t headBegin = 0, headEnd = INT64_MAX;
};
/// Tiles of queries and tiles of keys of a call.
std::int64_t softmaxTiles(const AttentionCall& attention);
std::int64_t columnTiles(const AttentionCall& attention);

/// normalisers: log-sum-exp of every query of the slice, as shift and factor.
void softmaxNormalisers(const AttentionSumsCall& call, Stream stream, TileSlice slice = {});

/// sums [Hq, m] over all queries of the weights, for the keys and heads of the slice; reads the normalisers, which
/// softmaxNormalisers or the caller has written (causal attention whose log-sum-exp is saved). Rows of query heads
/// outside `heads` are not touched. Needs queryRows null.
void attentionColumnSums(const AttentionSumsCall& call, float* sums, Stream stream, TileSlice slice = {});

} // namespace kvscope::gpu
