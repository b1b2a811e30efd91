#pragma once

#include "gpu/kernels/attention_call.h"
#include "gpu/kernels/softmax_steps.h"

#include <cstddef>

// A rectangle of the attention map of one KV head at screen resolution (core/engine/attention_map.h): a pixel is the
// maximum of its cells. Memory is that of the screen, not of the rectangle.
namespace kvscope::gpu {

enum class HeadRule : std::int32_t { Mean, Sum, Max };

/// All pointers are device memory.
struct AttentionTileCall {
    /// keys: one KV head. heads: the query heads to combine. queryRows: the rows to compute.
    AttentionCall attention;
    /// [slots, R] as softmaxNormalisers writes them, or {lse, 1} where the lse is known. Null: the map shows logits.
    const SoftmaxNormaliser* normalisers = nullptr;
    HeadRule combine = HeadRule::Mean;
    const std::int32_t* pixelRows = nullptr; ///< [R] pixel row of each computed row
    std::int64_t keyBegin = 0, keyEnd = 0;   ///< keys of the rectangle
    std::int64_t height = 1, width = 1;      ///< pixels; at most one per key

    float* cells = nullptr;      ///< [height, width]; NaN where no computed row sees a key of the pixel
    float* columnSums = nullptr; ///< [width] sum of the weights, not pooled; 0 for logits
    void* scratch = nullptr;     ///< attentionTileScratchBytes, at a multiple of 8
};

std::size_t attentionTileScratchBytes(const AttentionTileCall& call);

/// Number of key tiles of the rectangle. Long work may be cut into consecutive slices from 0 to the last: the first
/// slice clears the pixels, the last converts them to floats.
std::int64_t mapTiles(const AttentionTileCall& call);

void attentionTile(const AttentionTileCall& call, Stream stream, std::int64_t beginTile = 0,
                   std::int64_t endTile = INT64_MAX);

} // namespace kvscope::gpu
