#pragma once

#include "gpu/kernels/tensor_cores.h"
#include "gpu/kernels/tile_pieces.h"

namespace kvscope::gpu {

/// Products of rows of any type in double, on tensor cores. The fixed rows stay in shared memory as doubles where they
/// are no wider than kDepth; moving rows pass through it in slices, each of which is loaded into registers while the
/// one before is multiplied. Two slices take turns, so that one barrier each is enough.
template <int Rows, int Columns> class DoubleProducts : public WarpTile<Rows, Columns> {
    using Base = WarpTile<Rows, Columns>;
    static constexpr int kAhead = kPieceElements; ///< elements of a slice per thread

public:
    using Value = double;
    static constexpr int kDepth = 128, kSlice = 16;
    static constexpr int kBlocks = 2, kMapBlocks = 2, kWeightedBlocks = 1; ///< of a multiprocessor, by registers
    static constexpr int kValueRows = kTile * kSlice / kDepth; ///< moving values per slice, kDepth columns wide
    static_assert(Base::kThreads * kAhead == kTile * kSlice);

    /// The pads put the lanes of a fragment into different banks.
    struct Shared {
        alignas(16) double fixed[kTile][kDepth + 4];
        union {
            alignas(16) double slice[kTile][kSlice + 4];
            alignas(16) double values[kValueRows][kDepth + 2];
        } turns[2];
    };

    using SharedWithValues = Shared;
    using Outputs = double[Base::kSlots][kDepth / 8][2];
    static __device__ __forceinline__ double& outputAt(Outputs& outputs, int slot, int n, int j) {
        return outputs[slot][n][j];
    }

    __device__ __forceinline__ void request(Shared&, const TileRows&, const TileRows&) {}

    __device__ __forceinline__ void start(Shared& s, const TileRows& fixed, const TileRows& first) {
        if (fixed.width <= kDepth) hold(s, fixed, 0);
        fetch(s, first, 0);
    }

    __device__ __forceinline__ void fetch(Shared&, const TileRows& next, int) { m_ahead.load(slicePiece(next, 0)); }

    template <class Ahead>
    __device__ __forceinline__ void multiply(Shared& s, const TileRows& fixed, const TileRows& moving, int,
                                             const Ahead& ahead, double (&values)[Base::kSlots][Base::kPerSlot]) {
        double sums[Base::kSlots][Columns / 8][2] = {};
        for (std::int64_t depth = 0; depth < moving.width; depth += kSlice) {
            const std::int64_t left = moving.width - depth;
            if (fixed.width > kDepth && depth % kDepth == 0) {
                __syncthreads(); // the rows that they replace have been read
                hold(s, fixed, depth);
            }
            auto& slice = s.turns[takeTurn()].slice;
            m_ahead.storeTo(&slice[sliceRow()][sliceColumn()], slicePiece(moving, depth));
            __syncthreads();
            if (left > kSlice)
                m_ahead.load(slicePiece(moving, depth + kSlice));
            else
                ahead();
            const int at = static_cast<int>(depth % kDepth), end = static_cast<int>(left < kSlice ? left : kSlice);
            if (end == kSlice) {
                KVSCOPE_UNROLL for (int c = 0; c < kSlice; c += 8) addProducts(s, slice, at, c, sums);
            } else {
                KVSCOPE_ROLL for (int c = 0; c < end; c += 8) addProducts(s, slice, at, c, sums);
            }
        }
        KVSCOPE_UNROLL for (int slot = 0; slot < Base::kSlots; ++slot) {
            KVSCOPE_UNROLL for (int k = 0; k < Base::kPerSlot; ++k) values[slot][k] = sums[slot][k / 2][k % 2];
        }
    }

    /// Begins to load the columns [column, column + kDepth) of the first values of a tile.
    __device__ __forceinline__ void fetchValues(Shared&, const TileRows& values, std::int64_t column) {
        m_ahead.load(valuePiece(values, column, 0));
    }

    /// outputs += weights times the fetched values. A warp has whole rows, so its products of queries and keys are
    /// fragments of the left operand: lane 4 g + t has the weights of row g and of two keys, which stand for two
    /// products over four keys each.
    template <class Ahead>
    __device__ __forceinline__ void addWeighted(Shared& s, const double (&weights)[Base::kSlots][Base::kPerSlot],
                                                const TileRows& values, std::int64_t column, const Ahead& ahead,
                                                Outputs& outputs) {
        static_assert(Columns == kTile && Base::kSlots == 1);
        const int g = Base::lane() / 4, t = Base::lane() % 4;
        KVSCOPE_UNROLL for (int first = 0; first < kTile; first += kValueRows) {
            auto& turn = s.turns[takeTurn()].values;
            m_ahead.storeTo(&turn[valueRow()][valueColumn()], valuePiece(values, column, first));
            __syncthreads();
            if (first + kValueRows < kTile)
                m_ahead.load(valuePiece(values, column, first + kValueRows));
            else
                ahead();
            KVSCOPE_UNROLL for (int k = 0; k < kValueRows / 4; ++k) {
                const double weight = weights[0][first / 4 + k];
                const double* row = &turn[k / 2 * 8 + 2 * t + k % 2][g];
                KVSCOPE_UNROLL for (int n = 0; n < kDepth / 8; ++n) {
                    if (column + n * 8 < values.width) multiplyDoubles(outputs[0][n], weight, row[n * 8]);
                }
            }
        }
    }

private:
    __device__ __forceinline__ int takeTurn() { return m_turn ^= 1; }

    static __device__ __forceinline__ int sliceRow() { return threadIdx.x / (kSlice / kAhead); }
    static __device__ __forceinline__ int sliceColumn() { return threadIdx.x % (kSlice / kAhead) * kAhead; }
    static __device__ __forceinline__ int valueRow() { return threadIdx.x / (kDepth / kAhead); }
    static __device__ __forceinline__ int valueColumn() { return threadIdx.x % (kDepth / kAhead) * kAhead; }

    static __device__ __forceinline__ TilePiece slicePiece(const TileRows& from, std::int64_t depth) {
        return {from, sliceRow(), depth + sliceColumn()};
    }
    static __device__ __forceinline__ TilePiece valuePiece(const TileRows& from, std::int64_t column, int first) {
        return {from, first + valueRow(), column + valueColumn()};
    }

    /// Loads the fixed rows' elements [depth, depth + kDepth); a barrier must follow. The piece loaded ahead stays.
    __device__ __forceinline__ void hold(Shared& s, const TileRows& fixed, std::int64_t depth) {
        PieceAhead loader;
        for (int c = 0; c < kDepth && depth + c < fixed.width; c += kSlice) {
            const TilePiece piece = slicePiece(fixed, depth + c);
            loader.load(piece);
            loader.storeTo(&s.fixed[sliceRow()][c + sliceColumn()], piece);
        }
    }

    /// Adds the products over eight elements: those from `at` + c on of the fixed rows, from c on of the slice.
    static __device__ __forceinline__ void addProducts(const Shared& s, const double (&slice)[kTile][kSlice + 4],
                                                       int at, int c, double (&sums)[Base::kSlots][Columns / 8][2]) {
        const int g = Base::lane() / 4, t = Base::lane() % 4;
        double a[Base::kSlots][2];
        KVSCOPE_UNROLL for (int slot = 0; slot < Base::kSlots; ++slot) {
            const double* row = &s.fixed[Base::rowOf(slot)][at + c + t];
            a[slot][0] = row[0], a[slot][1] = row[4];
        }
        KVSCOPE_UNROLL for (int n = 0; n < Columns / 8; ++n) {
            const double* column = &slice[Base::warpColumn() + n * 8 + g][c + t];
            const double b[2] = {column[0], column[4]};
            if constexpr (Base::kSlots == 1) {
                multiplyDoubles(sums[0][n], a[0][0], b[0]);
                multiplyDoubles(sums[0][n], a[0][1], b[1]);
            } else {
                static_assert(Base::kSlots == 2);
                multiplyDoubles(sums[0][n], sums[1][n], a[0], a[1], b);
            }
        }
    }

    PieceAhead m_ahead;
    int m_turn = 0;
};

} // namespace kvscope::gpu
