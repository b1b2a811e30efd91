#pragma once

#include "gpu/kernels/attention_call.h"
#include "gpu/kernels/softmax_steps.h"

#include <cstddef>

// A rectangle of the attention map of one KV head at screen resolution (core/engine/attention_map.h): a pixel shows the
// largest of its cells. Nothing of the size of the rectangle is stored, only of that of the screen.
namespace kvscope::gpu {

enum class HeadRule : std::int32_t { Mean, Sum, Max };

/// All pointers are device memory.
struct AttentionTileCall {
    /// keys: one KV head. heads: the query heads that are combined. queryRows: the rows that are looked at.
    AttentionCall attention;
    /// [slots, R] from softmaxNormalisers; {ln of the denominator, 1} where only that is known. Null: the map shows
    /// logits.
    const SoftmaxNormaliser* normalisers = nullptr;
    HeadRule combine = HeadRule::Mean;
    const std::int32_t* pixelRows = nullptr; ///< [R] pixel row of each row looked at
    std::int64_t keyBegin = 0, keyEnd = 0;   ///< keys of the rectangle
    std::int64_t height = 1, width = 1;      ///< pixels; at most one per key

    float* cells = nullptr;      ///< [height, width]; NaN where no row looked at sees a key of the pixel
    float* columnSums = nullptr; ///< [width] sum of the weights, not pooled; 0 for logits
    void* scratch = nullptr;     ///< attentionTileScratchBytes
};

std::size_t attentionTileScratchBytes(const AttentionTileCall& call);

/// Tiles of keys of the rectangle. Long work may be cut into slices of them that follow each other from 0 to the last:
/// the first clears the pixels, the last makes numbers of them.
std::int64_t mapTiles(const AttentionTileCall& call);

void attentionTile(const AttentionTileCall& call, Stream stream, std::int64_t beginTile = 0,
                   std::int64_t endTile = INT64_MAX);

} // namespace kvscope::gpu
