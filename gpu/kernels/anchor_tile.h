#pragma once

#include "gpu/kernels/device.h"
#include "gpu/kernels/elements.h"

#include <cstddef>

// A tile of rows in shared memory, stored in the rows' own type, from which an anchor is summed. The next tile is
// loaded into registers while the current one is added up (double buffering).
namespace kvscope::gpu {

inline constexpr int kAnchorThreads = 512;
inline constexpr int kMostAnchorRows = 64;
inline constexpr int kWordsAhead = 4; ///< of 16 bytes, per thread
inline constexpr std::int64_t kAnchorTileBytes = std::int64_t{16} * kWordsAhead * kAnchorThreads;

/// Rows per tile. Wide rows leave room for fewer; the sums do not depend on the number.
constexpr int anchorRowsFor(const DeviceRows& rows) {
    const std::int64_t fit = kAnchorTileBytes / (rows.width * bytesOf(rows.type));
    return static_cast<int>(fit < 1 ? 1 : fit < kMostAnchorRows ? fit : kMostAnchorRows);
}

/// Doubles in front of the tile, an even number of them: the tile begins at a multiple of 16 bytes.
KVSCOPE_PORTABLE std::int64_t anchorDoubles(std::int64_t width) { return (width + kMostAnchorRows + 1) / 2 * 2; }

inline std::size_t anchorSharedBytes(const DeviceRows& rows, int tileRows) {
    return static_cast<std::size_t>(anchorDoubles(rows.width) * 8 + tileRows * rows.width * bytesOf(rows.type));
}

template <class Element> struct AnchorShared {
    double* sums;    ///< [d]
    double* factors; ///< [kMostAnchorRows]
    Element* tile;   ///< [tileRows, d]

    __device__ __forceinline__ AnchorShared(double* begin, std::int64_t width)
        : sums(begin), factors(begin + width), tile(reinterpret_cast<Element*>(begin + anchorDoubles(width))) {}
};

/// The elements of the next tile in registers: loaded 16 bytes at a time where the rows are 16-byte aligned and fit
/// into the registers, otherwise element by element.
template <class Element> class TileAhead {
public:
    __device__ __forceinline__ void fetch(const Element* from, std::int64_t count) {
        m_from = from;
        m_count = count;
        const bool straight = reinterpret_cast<std::uintptr_t>(from) % sizeof(Word) == 0;
        m_words = straight && count * std::int64_t{sizeof(Element)} <= kAnchorTileBytes ? count / kPerWord : 0;
        for (int k = 0; k < kWordsAhead; ++k)
            if (const int i = threadIdx.x + k * kAnchorThreads; i < m_words)
                m_ahead[k] = reinterpret_cast<const Word*>(from)[i];
    }

    /// A barrier must follow.
    __device__ __forceinline__ void store(Element* to) const {
        for (int k = 0; k < kWordsAhead; ++k)
            if (const int i = threadIdx.x + k * kAnchorThreads; i < m_words)
                reinterpret_cast<Word*>(to)[i] = m_ahead[k];
        for (std::int64_t i = m_words * kPerWord + threadIdx.x; i < m_count; i += kAnchorThreads) to[i] = m_from[i];
    }

private:
    struct __attribute__((may_alias)) Word {
        alignas(16) std::uint32_t parts[4];
    };
    static constexpr std::int64_t kPerWord = sizeof(Word) / sizeof(Element);

    const Element* m_from = nullptr;
    std::int64_t m_count = 0, m_words = 0;
    Word m_ahead[kWordsAhead];
};

} // namespace kvscope::gpu
