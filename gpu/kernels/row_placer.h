#pragma once

#include "gpu/kernels/attention_rows.h"

// How the rows of a tile get their places in shared memory: offsets, positions and slots, not their elements.
namespace kvscope::gpu {

/// Places the queries of one group's tiles in shared memory, one query to a thread. What all tiles share is looked up
/// once. read() loads what belongs to a tile, put() stores it: products in between hide the load. The first kTile
/// threads place; the next kTile know the same queries and load a kernel's own numbers of them (isNormalising).
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

} // namespace kvscope::gpu
