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

/// The query of a place, tile after tile of one group: what the tiles share is looked up once; a query is read before
/// it is put into shared memory, so that threads can multiply in between. The first kTile threads put it there; the
/// next kTile (isNormalising) are free for a kernel's own numbers of the same query, its normaliser for one.
class QueryPlacer {
public:
    __device__ __forceinline__ QueryPlacer(const AttentionCall& call, std::int64_t kvHead) : m_call(call) {
        const PlacedQuery at = PlaceRule(call).at(place());
        const std::int32_t slot = call.groups[kvHead] + at.member;
        m_place = at.query;
        if (threadIdx.x >= 2 * kTile || slot >= call.groups[kvHead + 1]) return;
        m_firstSlot = std::int64_t{slot} * call.queryCount;
        m_head = call.heads[slot] * call.queries.headStride;
    }

    static __device__ __forceinline__ int place() { return static_cast<int>(threadIdx.x % kTile); }
    static __device__ __forceinline__ bool isPlacing() { return threadIdx.x < kTile; }
    static __device__ __forceinline__ bool isNormalising() { return threadIdx.x / kTile == 1; }

    __device__ __forceinline__ void read(std::int64_t rowTile) {
        const std::int64_t query = rowTile * queriesPerTile(m_call) + m_place;
        const bool there = query < m_call.queryCount && m_firstSlot >= 0;
        m_slot = there ? m_firstSlot + query : -1;
        if (isPlacing()) m_row = !there ? 0 : m_call.queryRows ? m_call.queryRows[query] : static_cast<int>(query);
    }

    /// slot * R + query; -1: no such query.
    __device__ __forceinline__ std::int64_t slot() const { return m_slot; }
    __device__ __forceinline__ std::int64_t query() const { return m_slot - m_firstSlot; }

    /// A barrier must follow.
    __device__ __forceinline__ void put(TileSide& side) const {
        if (!isPlacing()) return;
        side.offsets[threadIdx.x] = m_slot < 0 ? -1 : m_head + m_row * m_call.queries.width;
        side.positions[threadIdx.x] = m_call.firstQuery + m_row;
        side.rowSlots[threadIdx.x] = m_slot;
    }

private:
    const AttentionCall& m_call;
    std::int32_t m_place = 0, m_row = 0;
    std::int64_t m_firstSlot = -1, m_head = 0, m_slot = -1;
};

/// Fills in the queries of a tile; a barrier must follow.
__device__ __forceinline__ void placeRows(TileSide& side, const AttentionCall& call, std::int64_t kvHead,
                                          std::int64_t rowTile) {
    QueryPlacer placer(call, kvHead);
    placer.read(rowTile);
    placer.put(side);
}

/// Fills in the keys of a tile; a barrier must follow.
__device__ __forceinline__ void placeKeys(TileSide& side, const AttentionCall& call, std::int64_t kvHead,
                                          std::int64_t keyTile) {
    const int k = threadIdx.x;
    if (k >= kTile) return;
    const std::int64_t key = keyTile * kTile + k;
    const bool there = key < call.keys.rows;
    side.offsets[k] = there ? kvHead * call.keys.headStride + key * call.keys.width : -1;
    side.positions[k] = there ? positionOfKey(call, kvHead, key) : 0;
}

/// What makes logits of products, in the tile's arithmetic and unit.
template <class Number> class LogitShape {
public:
    __device__ __forceinline__ explicit LogitShape(const AttentionCall& call)
        : m_scaling(Number(call.scaling)), m_softcap(Number(call.softcap)),
          m_inverseSoftcap(call.softcap > 0 ? Number(1 / call.softcap) : Number(0)),
          m_factor(call.softcap > 0 || call.scaling <= 0 ? Number(1) : m_scaling * kLogitsPerNat<Number>) {}

    /// What apply leaves to be done: a logit is its value times this, which is larger than 0.
    __device__ __forceinline__ Number factor() const { return m_factor; }

    /// Products stay what they are, unless there is a softcap.
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

/// Whether a query at one position sees a key at another, where both exist.
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
