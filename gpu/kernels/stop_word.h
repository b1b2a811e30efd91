#pragma once

#include "gpu/kernels/device.h"

namespace kvscope::gpu {

/// Whether the host wants no more of this work. All threads of a block call it together. Few blocks look at the host's
/// word: reads of it go through the bus one after the other, a microsecond each on an H100.
__device__ __forceinline__ bool isStopped(const StopWord& stop) {
    constexpr unsigned kBlocksPerLook = 128;
    if (!stop.words) return false;
    bool stopped = false;
    if (threadIdx.x == 0) {
        volatile std::int32_t* words = stop.words;
        const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        if (block == 0) words[1] = stop.piece;
        const bool sees = block % kBlocksPerLook == 0 && words[0] != 0;
        stopped = atomicMax(stop.seen, sees ? 1U : 0U) != 0 || sees;
    }
    return __syncthreads_or(stopped) != 0;
}

} // namespace kvscope::gpu
