#pragma once

#include "core/base/portable_math.h"
#include "gpu/kernels/device_data.h"

#include <cmath>
#include <cstdint>

namespace kvscope::gpu {

/// bfloat16: the upper half of a float.
struct BFloat16 {
    std::uint16_t bits;
};

/// IEEE half precision.
struct Float16 {
    std::uint16_t bits;
};

KVSCOPE_PORTABLE float widened(float x) { return x; }

KVSCOPE_PORTABLE float widened(BFloat16 x) { return __builtin_bit_cast(float, std::uint32_t{x.bits} << 16); }

/// Exact for every half, including subnormals, infinities and NaN: shifts the bits to a float's fields, which reads as
/// a number 2^112 too small, and multiplies by 2^112.
KVSCOPE_PORTABLE float widened(Float16 x) {
    const std::uint32_t sign = std::uint32_t{x.bits & 0x8000U} << 16, size = x.bits & 0x7fffU;
    const float magnitude = size < 0x7c00U ? __builtin_bit_cast(float, size << 13) * 0x1p112F
                                           : __builtin_bit_cast(float, (size << 13) | 0x7f800000U);
    return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, magnitude) | sign);
}

/// Element `index` of an array of any type; the branch is uniform over all threads.
KVSCOPE_PORTABLE float elementAt(const void* data, ElementType type, std::int64_t index) {
    if (type == ElementType::Float32) return static_cast<const float*>(data)[index];
    if (type == ElementType::BFloat16) return widened(static_cast<const BFloat16*>(data)[index]);
    return widened(static_cast<const Float16*>(data)[index]);
}

/// a * b + c where a and b are floats: their product is exact in double, so one rounding or two are the same number.
KVSCOPE_PORTABLE double exactMultiplyAdd(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

/// The same in float, for fast arithmetic.
KVSCOPE_PORTABLE float exactMultiplyAdd(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

KVSCOPE_PORTABLE float elementOf(const DeviceRows& rows, std::int64_t head, std::int64_t row, std::int64_t column) {
    return elementAt(rows.data, rows.type, head * rows.headStride + row * rows.width + column);
}

} // namespace kvscope::gpu
