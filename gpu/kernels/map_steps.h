#pragma once

#include "core/base/portable_math.h"

#include <cstdint>

// Pixels of an attention map, and numbers as integers whose largest is the largest number, so that pixels can be raised
// by many threads in any order.
namespace kvscope::gpu {

/// `length` keys cut into `pieces` nearly equal ones: first key of piece `index`.
KVSCOPE_PORTABLE std::int64_t pieceBegin(std::int64_t length, std::int64_t pieces, std::int64_t index) {
    return length * index / pieces;
}

/// The piece that holds key `offset`: the inverse of pieceBegin.
KVSCOPE_PORTABLE std::int64_t pieceOf(std::int64_t length, std::int64_t pieces, std::int64_t offset) {
    return ((offset + 1) * pieces - 1) / length;
}

/// Above 0 for every number that is not NaN; 0 stands for "nothing yet". NaN is the largest.
KVSCOPE_PORTABLE std::uint32_t pixelBits(float value) {
    if (value != value)
        return 0xffffffffU;
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

/// NaN for nothing.
KVSCOPE_PORTABLE float valueOfPixel(std::uint32_t bits) {
    if (bits == 0)
        return __builtin_nanf("");
    return __builtin_bit_cast(float, bits & 0x80000000U ? bits & 0x7fffffffU : ~bits);
}

} // namespace kvscope::gpu
