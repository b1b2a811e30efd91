#pragma once

#include "gpu/kernels/device.h"
#include "gpu/kernels/row_steps.h"

// Sums over groups of lanes of a warp. All 32 lanes must call them together.
namespace kvscope::gpu {

/// Tree sum over groups of Width lanes (part i + part i + Width / 2, and so on): every lane of a group gets the same
/// bits, those of the CPU engine.
template <int Width, class Number> __device__ __forceinline__ Number sumOfLanes(Number value) {
    for (int half = Width / 2; half > 0; half /= 2) value += __shfl_xor_sync(kAllLanes, value, half);
    return value;
}

/// sum x_c y_c over 16 lanes; every lane gets it.
template <class X, class Y>
__device__ __forceinline__ double productOfRows(const X* x, const Y* y, std::int64_t width, int lane) {
    return sumOfLanes<kProductParts>(productPart(x, y, width, lane)) + productTail(x, y, width);
}

/// Squared Euclidean distance over 8 lanes; every lane gets it.
template <class X, class Y>
__device__ __forceinline__ double distanceOfRows(const X* x, const Y* y, std::int64_t width, int lane) {
    return sumOfLanes<kDistanceParts>(distancePart(x, y, width, lane));
}

/// Calls work(Element{}) with the element type of the rows.
template <class Work> void withElement(ElementType type, const Work& work) {
    if (type == ElementType::Float32)
        work(float{});
    else if (type == ElementType::BFloat16)
        work(BFloat16{});
    else
        work(Float16{});
}

} // namespace kvscope::gpu
