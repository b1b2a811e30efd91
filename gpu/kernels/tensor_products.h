#pragma once

#include "gpu/kernels/tile_copies.h"

#include <type_traits>

namespace kvscope::gpu {

/// Products of 16-bit rows on tensor cores, with float sums. The fragments of the fixed rows stay in registers where
/// the rows are no wider than kDepth; a tile of moving rows is copied to shared memory while the one before is
/// multiplied. The four warps are a warpgroup, which multiplies together where the GPU can.
template <class Element> class TensorProducts : public WarpTile<16, kTile> {
    using Base = WarpTile<16, kTile>;
    using Sums = float[kTile / 8][4];

public:
    using Value = float;
    static constexpr int kDepth = kTileDepth, kBlocks = 4, kMapBlocks = kHasWarpgroups ? 4 : 3,
                         kWeightedBlocks = 2; ///< by registers

    struct Shared {
        TileMatrix tiles[2];
    };
    struct SharedWithValues : Shared {
        TileMatrix values;
    };

    using Outputs = float[kDepth / 8][4];
    static __device__ __forceinline__ float& outputAt(Outputs& outputs, int slot, int n, int j) {
        return outputs[n][slot * 2 + j];
    }

    /// Begins to load what start waits for.
    __device__ __forceinline__ void request(Shared& s, const TileRows& fixed, const TileRows& first) {
        m_isStraight = fixed.width == kDepth && fixed.isAligned() && first.isAligned();
        if (fixed.width > kDepth) return;
        copyRows<kThreads>(s.tiles[1], fixed, 0);
        fetch(s, first, 0);
    }

    __device__ __forceinline__ void start(Shared& s, const TileRows& fixed, const TileRows&) {
        if (fixed.width > kDepth) return;
        waitForCopies();
        __syncthreads();
        loadFixed(s.tiles[1], fixed.width);
    }

    __device__ __forceinline__ void fetch(Shared& s, const TileRows& next, int stage) {
        if (m_isStraight)
            copyStraight<kThreads>(s.tiles[stage], next);
        else if (next.width <= kDepth)
            copyRows<kThreads>(s.tiles[stage], next, 0);
    }

    template <class Ahead>
    __device__ __forceinline__ void multiply(Shared& s, const TileRows& fixed, const TileRows& moving, int stage,
                                             const Ahead& ahead, float (&values)[kSlots][kPerSlot]) {
        Sums sums = {};
        if (m_isStraight) {
            waitForCopies();
            __syncthreads();
            ahead();
            if constexpr (kHasWarpgroups)
                addByWarpgroup(s.tiles[stage], sums);
            else
                addProducts<true>(s.tiles[stage], kDepth, sums);
        } else {
            multiplySlowly(s, fixed, moving, stage, ahead, sums);
        }
        KVSCOPE_UNROLL for (int slot = 0; slot < kSlots; ++slot) {
            KVSCOPE_UNROLL for (int k = 0; k < kPerSlot; ++k) values[slot][k] = sums[k / 2][slot * 2 + k % 2];
        }
    }

    /// Begins to load the columns [column, column + kDepth) of a tile's values.
    __device__ __forceinline__ void fetchValues(SharedWithValues& s, const TileRows& values, std::int64_t column) {
        if (m_isStraight && values.isAligned() && values.width == kDepth)
            copyStraight<kThreads>(s.values, values);
        else
            copyRows<kThreads>(s.values, values, column);
    }

    /// outputs += weights times the fetched values. A warp has whole rows, so its products of queries and keys are
    /// fragments of the left operand. A weight is the sum of three bfloat16, so all 24 bits of it count.
    template <class Ahead>
    __device__ __forceinline__ void addWeighted(SharedWithValues& s, const float (&weights)[kSlots][kPerSlot],
                                                const TileRows& values, std::int64_t column, const Ahead& ahead,
                                                Outputs& outputs) {
        static_assert(std::is_same_v<Element, BFloat16>);
        waitForCopies();
        __syncthreads();
        ahead();
        KVSCOPE_UNROLL for (int step = 0; step < kTile / 16; ++step) {
            std::uint32_t left[3][4]; // parts of the weights, largest first
            KVSCOPE_UNROLL for (int i = 0; i < 4; ++i) {
                const float* two = &weights[i % 2][step * 4 + i / 2 * 2];
                splitPair(two[0], two[1], left[0][i], left[1][i], left[2][i]);
            }
            KVSCOPE_UNROLL for (int n = 0; n < kDepth / 8; n += 2) {
                if (column + n * 8 >= values.width) continue;
                std::uint32_t b[4];
                loadMatrices<true>(b, s.values.at(step * 16 + lane() % 16, n * 8 + lane() / 16 * 8));
                const std::uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
                KVSCOPE_UNROLL for (int part = 2; part >= 0; --part) {
                    multiplyFragments<Element>(outputs[n], left[part], first);
                    multiplyFragments<Element>(outputs[n + 1], left[part], second);
                }
            }
        }
    }

private:
    /// Rows of any width: narrow ones as straight ones, wide ones slice by slice, for which the fixed rows are loaded
    /// again.
    template <class Ahead>
    __device__ __forceinline__ void multiplySlowly(Shared& s, const TileRows& fixed, const TileRows& moving, int stage,
                                                   const Ahead& ahead, Sums& sums) {
        for (std::int64_t depth = 0; depth < moving.width; depth += kDepth) {
            const bool isWide = moving.width > kDepth;
            if (isWide) {
                __syncthreads();
                copyRows<kThreads>(s.tiles[0], moving, depth);
                copyRows<kThreads>(s.tiles[1], fixed, depth);
            }
            waitForCopies();
            __syncthreads();
            if (isWide) loadFixed(s.tiles[1], moving.width - depth);
            if (depth + kDepth >= moving.width) ahead();
            addProducts<false>(s.tiles[isWide ? 0 : stage], moving.width - depth, sums);
        }
    }

    __device__ __forceinline__ void loadFixed(TileMatrix& rows, std::int64_t width) {
        KVSCOPE_UNROLL for (int step = 0; step < kDepth / 16; ++step) {
            if (step * 16 < width)
                loadMatrices<false>(m_fixed[step], rows.at(warpRow() + lane() % 16, step * 16 + lane() / 16 * 8));
        }
    }

    template <bool IsStraight>
    __device__ __forceinline__ void addProducts(TileMatrix& moving, std::int64_t width, Sums& sums) const {
        const int matrix = lane() / 8, row = matrix / 2 * 8 + lane() % 8;
        KVSCOPE_UNROLL for (int step = 0; step < kDepth / 16; ++step) {
            if (!IsStraight && step * 16 >= width) continue;
            KVSCOPE_UNROLL for (int n = 0; n < kTile / 8; n += 2) {
                std::uint32_t b[4];
                loadMatrices<false>(b, moving.at(row + n * 8, step * 16 + matrix % 2 * 8));
                const std::uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
                multiplyFragments<Element>(sums[n], m_fixed[step], first);
                multiplyFragments<Element>(sums[n + 1], m_fixed[step], second);
            }
        }
    }

    /// The same as addProducts<true>, for all warps at once.
    __device__ __forceinline__ void addByWarpgroup(const TileMatrix& moving, Sums& sums) const {
        beginWarpgroup(sums);
        KVSCOPE_UNROLL for (int step = 0; step < kDepth / 16; ++step)
            multiplyByWarpgroup<Element>(sums, m_fixed[step], &moving.slices[step / 4][0][step % 4 * 16]);
        endWarpgroup(sums);
    }

    std::uint32_t m_fixed[kDepth / 16][4];
    bool m_isStraight; ///< all rows are kDepth wide and aligned
};

} // namespace kvscope::gpu
