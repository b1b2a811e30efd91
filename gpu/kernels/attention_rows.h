#pragma once

#include "gpu/kernels/softmax_steps.h"
#include "gpu/kernels/tile_places.h"

// Which queries and keys make up a tile, and which tiles meet.
namespace kvscope::gpu {

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

/// Number of keys before a position.
KVSCOPE_PORTABLE std::int64_t keysBefore(const AttentionCall& call, std::int64_t kvHead, std::int64_t position) {
    const std::int64_t count = call.keys.rows;
    if (!call.keyPositions) return position < 0 ? 0 : position < count ? position : count;
    return firstAtOrBehind(count, position, [&](std::int64_t key) { return positionOfKey(call, kvHead, key); });
}

/// Number of queries before a position.
KVSCOPE_PORTABLE std::int64_t queriesBefore(const AttentionCall& call, std::int64_t position) {
    const std::int64_t count = call.queryCount, row = position - call.firstQuery;
    if (!call.queryRows) return row < 0 ? 0 : row < count ? row : count;
    return firstAtOrBehind(count, position, [&](std::int64_t query) { return positionOfQuery(call, query); });
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
    const std::int64_t end = seen.last == INT64_MAX ? call.keys.rows : keysBefore(call, kvHead, seen.last + 1);
    return {keysBefore(call, kvHead, seen.first) / kTile, (end + kTile - 1) / kTile};
}

/// Tiles of rows that may see keys of the tile.
KVSCOPE_PORTABLE TileRange rowTilesFor(const AttentionCall& call, std::int64_t kvHead, std::int64_t keyTile) {
    const PositionSpan seeing = queriesThatSee(call.mask, spanOfKeys(call, kvHead, keyTile));
    const std::int64_t begin = queriesBefore(call, seeing.first),
                       end = seeing.last == INT64_MAX ? call.queryCount : queriesBefore(call, seeing.last + 1);
    const std::int32_t shift = 6 - placeBitsOf(call);
    static_assert(kTile == 1 << 6);
    return {begin >> shift, begin < end ? (end + queriesPerTile(call) - 1) >> shift : begin >> shift};
}

/// Converts products to logits, in the tile's arithmetic and unit.
template <class Number> class LogitShape {
public:
    __device__ __forceinline__ explicit LogitShape(const AttentionCall& call)
        : m_scaling(Number(call.scaling)), m_softcap(Number(call.softcap)),
          m_inverseSoftcap(call.softcap > 0 ? Number(1 / call.softcap) : Number(0)),
          m_factor(call.softcap > 0 || call.scaling <= 0 ? Number(1) : m_scaling * kLogitsPerNat<Number>) {}

    /// What apply leaves to be done: a logit is its value times this positive factor.
    __device__ __forceinline__ Number factor() const { return m_factor; }

    /// Leaves products as they are, unless there is a softcap or the scaling is not positive.
    template <int Slots, int Count> __device__ __forceinline__ void apply(Number (&values)[Slots][Count]) const {
        if (m_factor != 1) return;
        KVSCOPE_UNROLL for (auto& row : values) {
            KVSCOPE_UNROLL for (Number& value : row) {
                const Number scaled = value * m_scaling;
                value = (m_softcap > 0 ? m_softcap * softmaxTanh(scaled * m_inverseSoftcap) : scaled) *
                        kLogitsPerNat<Number>;
            }
        }
    }

private:
    Number m_scaling, m_softcap, m_inverseSoftcap, m_factor;
};

/// Whether the query of a row and the key exist, and the query sees the key.
__device__ __forceinline__ bool isSeen(const AttentionCall& call, const TileSide& queries, int row,
                                       const TileSide& keys, int key) {
    return queries.offsets[row] >= 0 && keys.offsets[key] >= 0 &&
           sees(call.mask, queries.positions[row], keys.positions[key]);
}

/// Whether no logit of the tile is masked.
KVSCOPE_PORTABLE bool isWhole(const AttentionCall& call, std::int64_t kvHead, std::int64_t rowTile,
                              std::int64_t keyTile) {
    return (rowTile + 1) * queriesPerTile(call) <= call.queryCount && (keyTile + 1) * kTile <= call.keys.rows &&
           allSeen(call.mask, spanOfRows(call, rowTile), spanOfKeys(call, kvHead, keyTile));
}

} // namespace kvscope::gpu
