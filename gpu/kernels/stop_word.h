#pragma once

#include "gpu/kernels/device.h"

namespace kvscope::gpu {

/// Whether the host wants no more of this work. All threads of a block call it together.
__device__ __forceinline__ bool isStopped(const StopWord& stop) {
    if (!stop.words) return false;
    volatile std::int32_t* words = stop.words;
    const bool speaks = threadIdx.x == 0;
    if (speaks && blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0) words[1] = stop.piece;
    return __syncthreads_or(speaks && words[0] != 0) != 0;
}

} // namespace kvscope::gpu
