#pragma once

#include "gpu/kernels/attention_call.h"
#include "gpu/kernels/logit_tile.h"
#include "gpu/kernels/softmax_steps.h"

// Which queries and keys make up a tile. The rows of a tile run over queries and, for each query, over the query heads
// of one GQA group, so every largestGroup-th row belongs to the same head.
namespace kvscope::gpu {

/// Rows and keys of the current tile, in shared memory.
struct TilePlaces {
    std::int64_t rowOffsets[kTile], keyOffsets[kTile];     ///< in elements; -1: no such row or key
    std::int64_t rowPositions[kTile], keyPositions[kTile]; ///< time
    std::int64_t rowSlots[kTile];                          ///< slot * R + query: place in [slots, R]
};

/// Queries per tile: whole groups only.
KVSCOPE_PORTABLE std::int64_t queriesPerTile(const AttentionCall& call) { return kTile / call.largestGroup; }

KVSCOPE_PORTABLE std::int64_t rowTilesOf(const AttentionCall& call) {
    return (call.queryCount + queriesPerTile(call) - 1) / queriesPerTile(call);
}

KVSCOPE_PORTABLE std::int64_t keyTilesOf(const AttentionCall& call) { return (call.keys.rows + kTile - 1) / kTile; }

KVSCOPE_PORTABLE std::int64_t positionOfQuery(const AttentionCall& call, std::int64_t query) {
    return call.firstQuery + (call.queryRows ? call.queryRows[query] : query);
}

KVSCOPE_PORTABLE std::int64_t positionOfKey(const AttentionCall& call, std::int64_t kvHead, std::int64_t key) {
    return call.keyPositions ? call.keyPositions[kvHead * call.keys.rows + key] : key;
}

/// First index in 0 .. count whose position is >= wanted; positions ascend.
template <class PositionOf>
KVSCOPE_PORTABLE std::int64_t firstAtOrBehind(std::int64_t count, std::int64_t wanted, const PositionOf& positionOf) {
    std::int64_t low = 0, high = count;
    while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (positionOf(middle) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct TileRange {
    std::int64_t begin, end;
};

KVSCOPE_PORTABLE PositionSpan spanOfRows(const AttentionCall& call, std::int64_t rowTile) {
    const std::int64_t first = rowTile * queriesPerTile(call), behind = first + queriesPerTile(call);
    return {positionOfQuery(call, first),
            positionOfQuery(call, (behind < call.queryCount ? behind : call.queryCount) - 1)};
}

KVSCOPE_PORTABLE PositionSpan spanOfKeys(const AttentionCall& call, std::int64_t kvHead, std::int64_t keyTile) {
    const std::int64_t first = keyTile * kTile, behind = first + kTile;
    return {positionOfKey(call, kvHead, first),
            positionOfKey(call, kvHead, (behind < call.keys.rows ? behind : call.keys.rows) - 1)};
}

/// Tiles of keys that rows of this tile may see; includes every key tile that rowTilesFor pairs with it.
KVSCOPE_PORTABLE TileRange keyTilesFor(const AttentionCall& call, std::int64_t kvHead, std::int64_t rowTile) {
    const PositionSpan seen = keysSeenBy(call.mask, spanOfRows(call, rowTile));
    const auto positionOf = [&](std::int64_t key) { return positionOfKey(call, kvHead, key); };
    const std::int64_t begin = firstAtOrBehind(call.keys.rows, seen.first, positionOf);
    const std::int64_t end =
        seen.last == INT64_MAX ? call.keys.rows : firstAtOrBehind(call.keys.rows, seen.last + 1, positionOf);
    return {begin / kTile, (end + kTile - 1) / kTile};
}

/// Tiles of rows that may see keys of the tile.
KVSCOPE_PORTABLE TileRange rowTilesFor(const AttentionCall& call, std::int64_t kvHead, std::int64_t keyTile) {
    const PositionSpan seeing = queriesThatSee(call.mask, spanOfKeys(call, kvHead, keyTile));
    const auto positionOf = [&](std::int64_t query) { return positionOfQuery(call, query); };
    const std::int64_t begin = firstAtOrBehind(call.queryCount, seeing.first, positionOf);
    const std::int64_t end =
        seeing.last == INT64_MAX ? call.queryCount : firstAtOrBehind(call.queryCount, seeing.last + 1, positionOf);
    const std::int64_t per = queriesPerTile(call);
    return {begin / per, begin < end ? (end + per - 1) / per : begin / per};
}

/// Fills in the rows of a tile; a barrier must follow.
__device__ __forceinline__ void placeRows(TilePlaces& places, const AttentionCall& call, std::int64_t kvHead,
                                          std::int64_t rowTile) {
    const int r = threadIdx.x;
    if (r >= kTile) return;
    const std::int64_t query = rowTile * queriesPerTile(call) + r / call.largestGroup;
    const std::int32_t member = r % call.largestGroup, slot = call.groups[kvHead] + member;
    const bool there =
        r < queriesPerTile(call) * call.largestGroup && query < call.queryCount && slot < call.groups[kvHead + 1];
    places.rowOffsets[r] = -1;
    places.rowSlots[r] = -1;
    places.rowPositions[r] = 0;
    if (!there) return;
    const std::int64_t row = call.queryRows ? call.queryRows[query] : query;
    places.rowOffsets[r] = call.heads[slot] * call.queries.headStride + row * call.queries.width;
    places.rowPositions[r] = call.firstQuery + row;
    places.rowSlots[r] = slot * call.queryCount + query;
}

/// Fills in the keys of a tile; a barrier must follow.
__device__ __forceinline__ void placeKeys(TilePlaces& places, const AttentionCall& call, std::int64_t kvHead,
                                          std::int64_t keyTile) {
    const int k = threadIdx.x;
    if (k >= kTile) return;
    const std::int64_t key = keyTile * kTile + k;
    const bool there = key < call.keys.rows;
    places.keyOffsets[k] = there ? kvHead * call.keys.headStride + key * call.keys.width : -1;
    places.keyPositions[k] = there ? positionOfKey(call, kvHead, key) : 0;
}

KVSCOPE_PORTABLE TileRows queriesOf(const AttentionCall& call, const TilePlaces& places) {
    return {call.queries.data, call.queries.type, call.queries.width, places.rowOffsets};
}

KVSCOPE_PORTABLE TileRows keysOf(const AttentionCall& call, const TilePlaces& places) {
    return {call.keys.data, call.keys.type, call.keys.width, places.keyOffsets};
}

/// What makes logits of products, in the tile's arithmetic.
template <class Number> struct LogitShape {
    Number scaling, softcap;

    __device__ __forceinline__ explicit LogitShape(const AttentionCall& call)
        : scaling(Number(call.scaling)), softcap(Number(call.softcap)) {}
};

/// Scales the products of a tile and sets masked logits, and those of rows and keys that do not exist, to -infinity.
/// `whole`: nothing is masked.
template <class Tile>
__device__ __forceinline__ void makeLogits(const AttentionCall& call, const TilePlaces& places,
                                           const LogitShape<typename Tile::Value>& shape, bool whole,
                                           typename Tile::Value (&values)[kTileValues]) {
    using Number = typename Tile::Value;
    for (int v = 0; v < kTileValues; ++v) {
        values[v] = shapedLogit(values[v], shape.scaling, shape.softcap);
        const int row = Tile::rowOf(v), key = Tile::keyOf(v);
        if (!whole && (places.rowOffsets[row] < 0 || places.keyOffsets[key] < 0 ||
                       !sees(call.mask, places.rowPositions[row], places.keyPositions[key])))
            values[v] = -Number(__builtin_inff());
    }
}

/// Whether no logit of the tile is masked. Rows after the last whole GQA group (groups of 3, 5, 6 or 7) do not count:
/// nobody reads them.
__device__ __forceinline__ bool isWhole(const AttentionCall& call, const TilePlaces& places, std::int64_t kvHead,
                                        std::int64_t rowTile, std::int64_t keyTile) {
    const std::int64_t lastRow = queriesPerTile(call) * call.largestGroup - 1;
    return places.rowOffsets[lastRow] >= 0 && places.keyOffsets[kTile - 1] >= 0 &&
           call.groups[kvHead + 1] - call.groups[kvHead] == call.largestGroup &&
           allSeen(call.mask, spanOfRows(call, rowTile), spanOfKeys(call, kvHead, keyTile));
}

} // namespace kvscope::gpu
