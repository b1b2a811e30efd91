#pragma once

#include "gpu/kernels/device.h"
#include "gpu/kernels/elements.h"

// Tiles of 64 rows (the queries of a GQA group) by 64 keys of unscaled logits, 16 values in the registers of each of
// 256 threads. A tile type defines the number type, which values a thread holds, and the layout of operands in shared
// memory; kernels are written once for all tile types.
namespace kvscope::gpu {

inline constexpr int kTile = 64;
inline constexpr int kTileThreads = 256;
inline constexpr int kTileValues = kTile * kTile / kTileThreads;

/// Offsets of an operand's rows, in elements; -1: no such row, read as zeros.
struct TileRows {
    const void* data;
    ElementType type;
    std::int64_t width;
    const std::int64_t* offsets; ///< [kTile] in shared memory
    bool isAligned = false;      ///< eight elements from any multiple of eight on can be loaded at once
};

/// Number is double (exact) or float. A thread has 4 rows by 4 keys; a sum over the width is added element by element,
/// so that in double it has the CPU engine's bits.
template <class Number> struct PlainTile {
    using Value = Number;
    static constexpr int kDepth = 32, kPad = 2;
    static constexpr int kRowsPerThread = 4;
    static constexpr int kParts = 16; ///< threads that share a row
    static constexpr bool kKeepsOperands = false;
    static constexpr int kBlocks = 2; ///< of a multiprocessor, by registers: more of them would spill

    struct Shared {
        Number rows[kDepth][kTile + kPad];
        Number keys[kDepth][kTile + kPad];
    };

    static __device__ __forceinline__ int rowSlot(int value) { return value / 4; }
    static __device__ __forceinline__ int rowOf(int value) { return threadIdx.x / 16 * 4 + value / 4; }
    static __device__ __forceinline__ int keyOf(int value) { return threadIdx.x % 16 * 4 + value % 4; }
    static __device__ __forceinline__ int part() { return threadIdx.x % 16; }

    static __device__ __forceinline__ void fill(Number (&to)[kDepth][kTile + kPad], const TileRows& from,
                                                std::int64_t depth) {
        for (int i = threadIdx.x; i < kTile * kDepth; i += kTileThreads) {
            const int row = i / kDepth, c = i % kDepth;
            const bool there = from.offsets[row] >= 0 && depth + c < from.width;
            to[c][row] = there ? Number(elementAt(from.data, from.type, from.offsets[row] + depth + c)) : Number(0);
        }
    }

    /// Called by all threads together; the caller places barriers before and after the use of shared memory.
    static __device__ __forceinline__ void multiply(Shared& s, const TileRows& rows, const TileRows& keys, bool, bool,
                                                    Number (&values)[kTileValues]) {
        for (Number& value : values) value = 0;
        const int row = rowOf(0), key = keyOf(0);
        for (std::int64_t depth = 0; depth < rows.width; depth += kDepth) {
            __syncthreads();
            fill(s.rows, rows, depth);
            fill(s.keys, keys, depth);
            __syncthreads();
            for (int c = 0; c < kDepth; ++c)
                for (int v = 0; v < kTileValues; ++v)
                    values[v] = exactMultiplyAdd(s.rows[c][row + v / 4], s.keys[c][key + v % 4], values[v]);
        }
    }

    /// sums += weights [kTile rows][stride] of 64 keys times the columns [column, column + 64) of the keys' `from`
    /// rows; a thread's sums lie where multiply's values do. Called as multiply.
    static __device__ __forceinline__ void addWeighted(Shared& s, const Number* weights, int stride,
                                                       const TileRows& from, std::int64_t column,
                                                       Number (&sums)[kTileValues]) {
        const int row = rowOf(0), key = keyOf(0);
        for (int depth = 0; depth < kTile; depth += kDepth) {
            __syncthreads();
            for (int i = threadIdx.x; i < kTile * kDepth; i += kTileThreads) {
                const std::int64_t offset = from.offsets[depth + i / kTile], c = column + i % kTile;
                s.keys[i / kTile][i % kTile] =
                    offset >= 0 && c < from.width ? Number(elementAt(from.data, from.type, offset + c)) : Number(0);
            }
            __syncthreads();
            for (int c = 0; c < kDepth; ++c)
                for (int v = 0; v < kTileValues; ++v)
                    sums[v] =
                        exactMultiplyAdd(weights[(row + v / 4) * stride + depth + c], s.keys[c][key + v % 4], sums[v]);
        }
    }
};

} // namespace kvscope::gpu
