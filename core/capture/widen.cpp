// Widening of 16-bit numbers. A bfloat16 is the upper half of a float; a half is rebiased by a multiplication that also
// handles subnormals. Both loops are branch-free, so that the compiler vectorises them.
#include "core/capture/widen.h"

#include <bit>
#include <cmath>

namespace kvscope {

void widenBfloat16(std::span<const std::uint16_t> in, float* out) {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = std::bit_cast<float>(std::uint32_t{in[i]} << 16);
}

void widenFloat16(std::span<const std::uint16_t> in, float* out) {
    constexpr float kRebias = 0x1p112f; // moves the exponent bias from 15 to 127; exact, subnormals included
    for (std::size_t i = 0; i < in.size(); ++i) {
        const std::uint32_t sign = std::uint32_t{in[i] & 0x8000u} << 16;
        const std::uint32_t magnitude = std::uint32_t{in[i] & 0x7FFFu} << 13;
        const std::uint32_t finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * kRebias);
        const bool special = (in[i] & 0x7C00u) == 0x7C00u; // infinity or NaN: the payload is kept
        out[i] = std::bit_cast<float>((special ? (magnitude | 0x7F800000u) : finite) | sign);
    }
}

std::uint16_t narrowToBfloat16(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

std::uint16_t narrowToFloat16(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const float magnitude = std::fabs(value);
    if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00u);
    if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7C00u);
    if (magnitude < 0x1p-14f) // subnormal: the unit is 2^-24, nearbyint rounds ties to even
        return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::nearbyint(magnitude * 0x1p24f)));
    const std::uint32_t rebased = (bits & 0x7FFFFFFFu) - (112u << 23);
    return static_cast<std::uint16_t>(sign | ((rebased + 0xFFFu + ((rebased >> 13) & 1u)) >> 13));
}

} // namespace kvscope
