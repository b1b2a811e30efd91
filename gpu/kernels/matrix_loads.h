#pragma once

#include "gpu/kernels/device.h"

// Copies into shared memory that run beside the threads, and loads of fragments from it.
namespace kvscope::gpu {

#if defined(__CUDACC__)

/// Begins to copy 16 bytes to shared memory; both addresses are multiples of 16.
__device__ __forceinline__ void copySixteen(void* to, const void* from) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

/// Waits for the copies of this thread; others see them after a barrier.
__device__ __forceinline__ void waitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Four 8 x 8 matrices of 16-bit elements (ldmatrix): lane 8 i + r gives the address of row r of matrix i; into[i] of
/// lane 4 g + t holds the elements (g, 2t) and (g, 2t + 1) of it, transposed (2t, g) and (2t + 1, g).
template <bool Transposed> __device__ __forceinline__ void loadMatrices(std::uint32_t (&into)[4], const void* row) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    if constexpr (Transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                     : "r"(address)
                     : "memory");
}

#endif

} // namespace kvscope::gpu
