#pragma once

#include "gpu/kernels/attention_call.h"
#include "gpu/kernels/warp_tile.h"

#include <bit>

// The places on one side of a tile: a side holds queries and, for each query, the query heads of one GQA group, in as
// many places as the next power of two, so that a place belongs to the same head in every tile. Places without a query
// head are read as zeros; their weights are 0.
namespace kvscope::gpu {

/// Rows of one side of a tile, in shared memory.
struct TileSide {
    std::int64_t offsets[kTile];   ///< in elements; -1: no such row
    std::int64_t positions[kTile]; ///< time
    std::int64_t rowSlots[kTile];  ///< of queries: slot * R + query, the place in [slots, R]; -1: no such query
};

/// Log2 of the places per query.
KVSCOPE_PORTABLE std::int32_t placeBitsOf(const AttentionCall& call) {
#if defined(__CUDA_ARCH__)
    return 32 - __clz(call.largestGroup - 1);
#else
    return static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(call.largestGroup - 1)));
#endif
}

KVSCOPE_PORTABLE std::int64_t queriesPerTile(const AttentionCall& call) { return kTile >> placeBitsOf(call); }

/// A query of a tile and the number of its head in the group.
struct PlacedQuery {
    std::int32_t query, member;
};

/// Which places belong to one query. Where queries are the columns of a tile (WarpTile), bit 0 of a place is one of two
/// neighbours, bits 1 and 2 are the lane, and the others count eights of columns. Heads take bit 0, bit 3, the lane and
/// bit 4, in this order: a thread has all of four heads, and up to sixteen heads are the same ones in every sixteen
/// places.
class PlaceRule {
public:
    KVSCOPE_PORTABLE explicit PlaceRule(const AttentionCall& call)
        : bits(placeBitsOf(call)), lanes(bits < 3   ? 0
                                         : bits < 4 ? 1
                                                    : 2),
          m_high(bits < 2   ? 3
                 : bits < 5 ? 4
                            : 5) {}

    KVSCOPE_PORTABLE PlacedQuery at(std::int32_t place) const {
        if (bits == 0) return {place, 0};
        const std::int32_t lane = place >> 1 & 3, eight = m_high > 3 ? place >> 3 & 1 : 0,
                           sixteen = m_high > 4 ? place >> 4 & 1 : 0;
        return {lane >> lanes | place >> m_high << (2 - lanes),
                (place & 1) | eight << 1 | (lane & ((1 << lanes) - 1)) << 2 | sixteen << 4};
    }
    KVSCOPE_PORTABLE std::int32_t placeOf(const PlacedQuery& q) const {
        if (bits == 0) return q.query;
        const std::int32_t lane = (q.member >> 2 & ((1 << lanes) - 1)) | (q.query & ((1 << (2 - lanes)) - 1)) << lanes;
        return (q.member & 1) | lane << 1 | (q.member >> 1 & 1) << 3 | q.member >> 4 << 4 |
               q.query >> (2 - lanes) << m_high;
    }

    std::int32_t bits, lanes; ///< log2 of the places, and of the lanes, that share a query

private:
    std::int32_t m_high; ///< first bit of a place beyond the heads and the lane
};

} // namespace kvscope::gpu
