#pragma once

#include "core/base/portable_math.h"

#include <cstdint>

// Pixels of an attention map as integers in the order of the numbers, so that an atomic maximum updates a pixel from
// many threads in any order.
namespace kvscope::gpu {

/// First key of piece `index` when `length` keys are cut into `pieces` nearly equal pieces.
KVSCOPE_PORTABLE std::int64_t pieceBegin(std::int64_t length, std::int64_t pieces, std::int64_t index) {
    return length * index / pieces;
}

/// The piece that holds key `offset`: the inverse of pieceBegin.
KVSCOPE_PORTABLE std::int64_t pieceOf(std::int64_t length, std::int64_t pieces, std::int64_t offset) {
    return ((offset + 1) * pieces - 1) / length;
}

/// Larger than 0 for every number; 0 stands for an empty pixel. NaN is the largest.
KVSCOPE_PORTABLE std::uint32_t pixelBits(float value) {
    if (value != value) return 0xffffffffU;
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

/// NaN for an empty pixel.
KVSCOPE_PORTABLE float valueOfPixel(std::uint32_t bits) {
    if (bits == 0) return __builtin_nanf("");
    return __builtin_bit_cast(float, bits & 0x80000000U ? bits & 0x7fffffffU : ~bits);
}

} // namespace kvscope::gpu
