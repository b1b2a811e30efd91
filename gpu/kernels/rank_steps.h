#pragma once

#include "core/base/portable_math.h"

#include <cstdint>

// A score as an integer in the order of choice of the CPU engine: smaller is better.
namespace kvscope::gpu {

/// Equal scores have equal bits, -0 and +0 included. The caller must have refused NaN.
KVSCOPE_PORTABLE std::uint32_t rankBits(float score) {
    const auto bits = __builtin_bit_cast(std::uint32_t, score + 0.0F); // -0 becomes +0
    const std::uint32_t ascending = bits & 0x80000000U ? ~bits : bits | 0x80000000U;
    return ~ascending;
}

KVSCOPE_PORTABLE float scoreOfRank(std::uint32_t rank) {
    const std::uint32_t ascending = ~rank;
    return __builtin_bit_cast(float, ascending & 0x80000000U ? ascending & 0x7fffffffU : ~ascending);
}

/// How a head's count is split: the first rows, then the last ones, then the best of those between.
struct KeptShares {
    std::int64_t first, last, free;
};

KVSCOPE_PORTABLE KeptShares keptShares(std::int64_t rows, std::int64_t count, std::int64_t protectFirst,
                                       std::int64_t protectLast) {
    std::int64_t first = protectFirst < rows ? protectFirst : rows;
    first = first < count ? first : count;
    std::int64_t last = protectLast < rows - first ? protectLast : rows - first;
    last = last < count - first ? last : count - first;
    return {first, last, count - first - last};
}

/// Smallest kept score minus largest evicted one; 0 for equal scores, infinities included.
KVSCOPE_PORTABLE float marginOf(std::uint32_t worstKept, std::uint32_t bestEvicted) {
    return worstKept == bestEvicted ? 0 : scoreOfRank(worstKept) - scoreOfRank(bestEvicted);
}

} // namespace kvscope::gpu
