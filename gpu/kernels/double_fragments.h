#pragma once

#include "gpu/kernels/device.h"

// Matrix products of doubles on tensor cores.
namespace kvscope::gpu {

#if defined(__CUDACC__)

/// c += a b for 8 x 4 a and 4 x 8 b of doubles, distributed over the lanes of a warp as the PTX manual defines
/// mma.m8n8k4: lane = 4 g + t holds (g, t) of a, (t, g) of b and (g, 2t), (g, 2t + 1) of c. Each of the four additions
/// to an element of c is a fused multiply-add.
__device__ __forceinline__ void multiplyDoubles(double (&c)[2], double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[0]), "+d"(c[1])
                 : "d"(a), "d"(b));
}

#endif

} // namespace kvscope::gpu
