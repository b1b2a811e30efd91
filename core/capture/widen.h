#pragma once

#include <cstdint>
#include <span>

namespace kvscope {

/// 16-bit numbers as bits -> float, bit-exact, also for subnormals, infinities and NaN payloads. in and out: size n.
/// HDF5's own conversion runs at 23 M elements/s; these loops are bound by memory.
void widenBfloat16(std::span<const std::uint16_t> in, float* out);
void widenFloat16(std::span<const std::uint16_t> in, float* out);

/// Round to nearest, ties to even; NaN stays NaN. For writers.
std::uint16_t narrowToBfloat16(float value);
std::uint16_t narrowToFloat16(float value);

} // namespace kvscope
