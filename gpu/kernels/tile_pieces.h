#pragma once

#include "gpu/kernels/warp_tile.h"

// How rows of any type get into shared memory as doubles: through registers, loaded before they are needed.
namespace kvscope::gpu {

inline constexpr int kPieceElements = 4;

/// kPieceElements neighbouring elements of one row, which a thread takes from global to shared memory.
struct TilePiece {
    const TileRows& from;
    int row;
    std::int64_t c;

    __device__ __forceinline__ std::int64_t element() const { return from.offsets[row] + c; }
    __device__ __forceinline__ std::int64_t left() const { return from.offsets[row] < 0 ? 0 : from.width - c; }
};

class PieceAhead {
public:
    /// Begins to load a piece; storeTo loads pieces that are not aligned.
    __device__ __forceinline__ void load(const TilePiece& piece) {
        m_ahead = {};
        if (!piece.from.isAligned() || piece.left() <= 0) return;
        const auto* bytes = static_cast<const unsigned char*>(piece.from.data);
        if (piece.from.type == ElementType::Float32) {
            m_ahead = *reinterpret_cast<const SixteenBytes*>(bytes + piece.element() * 4);
        } else {
            const auto half = *reinterpret_cast<const EightBytes*>(bytes + piece.element() * 2);
            m_ahead.words[0] = half.words[0];
            m_ahead.words[1] = half.words[1];
        }
    }

    /// Writes the loaded piece as doubles; zeros where there are no elements.
    __device__ __forceinline__ void storeTo(double* to, const TilePiece& piece) const {
        const TileRows& from = piece.from;
        if (!from.isAligned()) {
            const std::int64_t left = piece.left(), element = piece.element();
            KVSCOPE_ROLL for (int k = 0; k < kPieceElements; ++k) to[k] =
                k < left ? double(elementAt(from.data, from.type, element + k)) : 0;
            return;
        }
        KVSCOPE_UNROLL for (int k = 0; k < kPieceElements; ++k) {
            const std::uint32_t word = m_ahead.words[k / 2];
            const auto bits = static_cast<std::uint16_t>(k % 2 == 0 ? word : word >> 16);
            to[k] = double(from.type == ElementType::Float32    ? __builtin_bit_cast(float, m_ahead.words[k])
                           : from.type == ElementType::BFloat16 ? widened(BFloat16{bits})
                                                                : widened(Float16{bits}));
        }
    }

private:
    SixteenBytes m_ahead;
};

} // namespace kvscope::gpu
