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

/// The sums of several numbers over groups of Width lanes at once. With each exchange a lane gives half of its numbers
/// away, so that there are about Count exchanges, not Count times the levels of the tree. A lane of the group gets the
/// sum of number lane / (Width / Count).
template <int Width, int Count> __device__ __forceinline__ double sumOfEach(const double (&numbers)[Count], int lane) {
    if constexpr (Count == 1) {
        return sumOfLanes<Width>(numbers[0]);
    } else {
        constexpr int kKept = Count / 2;
        const bool keepsUpper = (lane & (Width / 2)) != 0;
        double kept[kKept];
        KVSCOPE_UNROLL
        for (int i = 0; i < kKept; ++i) {
            const double given = keepsUpper ? numbers[i] : numbers[i + kKept];
            kept[i] = (keepsUpper ? numbers[i + kKept] : numbers[i]) + __shfl_xor_sync(kAllLanes, given, Width / 2);
        }
        return sumOfEach<Width / 2>(kept, lane);
    }
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
