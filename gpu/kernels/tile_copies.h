#pragma once

#include "gpu/kernels/tensor_cores.h"
#include "gpu/kernels/warp_tile.h"

// How 16-bit rows get into shared memory: by copies that run beside the threads. waitForCopies and a barrier must
// follow.
namespace kvscope::gpu {

inline constexpr int kTileDepth = 128;           ///< elements of a row in shared memory at a time
inline constexpr int kPart = 8, kRowThreads = 4; ///< elements of a copy, threads that copy a row

/// 16-bit rows in shared memory, 64 columns to a slice. Eight rows permute the eight parts of 16 bytes that a row has
/// in a slice: those of a fragment lie in different banks, and warpgroups read this layout (PTX: 128-byte swizzle).
struct alignas(1024) TileMatrix {
    static constexpr int kColumns = 64;
    std::uint16_t slices[kTileDepth / kColumns][kTile][kColumns];

    __device__ __forceinline__ std::uint16_t* at(int row, int c) {
        return &slices[c / kColumns][row][((c / kPart ^ row) % 8) * kPart + c % kPart];
    }
};

/// Copies rows that are kTileDepth wide; zeros where there is none. waitForCopies and a barrier must follow.
template <int Threads> __device__ __forceinline__ void copyStraight(TileMatrix& to, const TileRows& from) {
    const int first = threadIdx.x % kRowThreads * kPart;
    const auto* data = static_cast<const std::uint16_t*>(from.data) + first;
    KVSCOPE_UNROLL for (int i = 0; i < kTile * kRowThreads / Threads; ++i) {
        const int row = threadIdx.x / kRowThreads + i * (Threads / kRowThreads);
        const std::int64_t offset = from.offsets[row];
        const std::uint16_t* source = data + (offset >= 0 ? offset : 0);
        KVSCOPE_UNROLL for (int c = 0; c < kTileDepth; c += kRowThreads * kPart)
            copySixteen(to.at(row, first + c), source + c, offset >= 0);
    }
}

template <int Threads>
__device__ __forceinline__ void copyByElements(TileMatrix& to, const std::uint16_t* data, const std::int64_t* offsets,
                                               std::int64_t left, int end) {
    KVSCOPE_ROLL for (int i = threadIdx.x; i < kTile * end; i += Threads) {
        const int row = i / end, c = i % end;
        *to.at(row, c) = offsets[row] >= 0 && c < left ? data[offsets[row] + c] : 0;
    }
}

/// Copies the elements [depth, depth + kTileDepth) of the rows; zeros up to a multiple of 16 elements where there are
/// none. waitForCopies and a barrier must follow.
template <int Threads>
__device__ __forceinline__ void copyRows(TileMatrix& to, const TileRows& from, std::int64_t depth) {
    const std::int64_t left = from.width - depth;
    const int end = left < kTileDepth ? static_cast<int>((left + 15) / 16 * 16) : kTileDepth;
    const auto* data = static_cast<const std::uint16_t*>(from.data) + depth;
    if (!from.isAligned()) return copyByElements<Threads>(to, data, from.offsets, left, end);
    const int first = threadIdx.x % kRowThreads * kPart;
    KVSCOPE_ROLL for (int row = threadIdx.x / kRowThreads; row < kTile; row += Threads / kRowThreads) {
        const std::int64_t offset = from.offsets[row];
        const int there = offset >= 0 ? static_cast<int>(left < kTileDepth ? left : kTileDepth) : 0;
        const std::uint16_t* source = data + (offset >= 0 ? offset : -depth);
        KVSCOPE_ROLL for (int c = first; c < end; c += kRowThreads * kPart)
            copySixteen(to.at(row, c), source + c, c < there);
    }
}

} // namespace kvscope::gpu
