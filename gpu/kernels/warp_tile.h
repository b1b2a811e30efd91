#pragma once

#include "gpu/kernels/device.h"
#include "gpu/kernels/elements.h"

// Tiles of products of kTile fixed rows with kTile moving rows of the other operand (the columns of the tile): a block
// of threads keeps the fixed rows and multiplies them with tile after tile of moving rows. Two kinds have the same
// interface, so that kernels are written once: TensorProducts (fast) and DoubleProducts (exact).
//
//     request(shared, fixed, first);                        // begins to load; offsets are placed, a barrier has passed
//     start(shared, fixed, first);                          // waits for it
//     multiply(shared, fixed, moving, stage, ahead, values) // all threads; calls ahead() once `moving` is loaded
//     fetch(shared, next, 1 - stage)                        // for ahead: begins to load the next moving rows
namespace kvscope::gpu {

inline constexpr int kTile = 64;

/// Offsets of an operand's rows, in elements; -1: no such row, read as zeros.
struct TileRows {
    const void* data;
    ElementType type;
    std::int64_t width;
    const std::int64_t* offsets; ///< [kTile] in shared memory
    std::int64_t headStride;

    /// Whether eight elements from any multiple of eight on can be loaded at once. Ask only where it matters: straight
    /// rows need no answer for every tile.
    KVSCOPE_PORTABLE bool isAligned() const {
        return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && width % 8 == 0 && headStride % 8 == 0;
    }
};

/// Which products a thread holds, values[slot][k]: each warp has Rows x Columns of them, a thread one row of every
/// eight and two neighbouring columns of every eight, as tensor cores distribute them: lane = 4 g + t has row g and the
/// columns 2t, 2t + 1.
template <int Rows, int Columns> struct WarpTile {
    static constexpr int kThreads = (kTile / Rows) * (kTile / Columns) * kWarp;
    static constexpr int kSlots = Rows / 8, kPerSlot = Columns / 4;
    static constexpr int kColumnWarps = kTile / Columns;

    static __device__ __forceinline__ int lane() { return threadIdx.x % kWarp; }
    static __device__ __forceinline__ int warpRow() { return threadIdx.x / kWarp % (kTile / Rows) * Rows; }
    static __device__ __forceinline__ int warpColumn() { return threadIdx.x / kWarp / (kTile / Rows) * Columns; }
    static __device__ __forceinline__ int rowOf(int slot) { return warpRow() + slot * 8 + lane() / 4; }
    static __device__ __forceinline__ int columnOf(int k) { return warpColumn() + k / 2 * 8 + lane() % 4 * 2 + k % 2; }
    static __device__ __forceinline__ int columnWarp() { return warpColumn() / Columns; }
};

/// Bytes that are loaded at once.
struct __attribute__((may_alias)) SixteenBytes {
    alignas(16) std::uint32_t words[4];
};
struct __attribute__((may_alias)) EightBytes {
    alignas(8) std::uint32_t words[2];
};

/// Rows of `from` at these offsets.
KVSCOPE_PORTABLE TileRows rowsAt(const DeviceRows& from, const std::int64_t* offsets) {
    return {from.data, from.type, from.width, offsets, from.headStride};
}

} // namespace kvscope::gpu
