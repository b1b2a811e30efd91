#pragma once

#include "gpu/kernels/device.h"
#include "gpu/kernels/elements.h"

#include <type_traits>

// Instructions that have no name in C++: matrix products on tensor cores, loads of their fragments, copies into shared
// memory that run beside the threads. The emulated device has its own (tests/support/emulation).
namespace kvscope::gpu {

#if defined(__CUDACC__)

/// c += a b for 16 x 16 a and 16 x 8 b of 16-bit elements, distributed over the lanes of a warp as the PTX manual
/// defines mma.m16n8k16: lane = 4 g + t holds the pairs (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8) of a, the
/// pairs (2t, g), (2t + 8, g) of b and the elements (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) of c.
template <class Element>
__device__ __forceinline__ void multiplyFragments(float (&c)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2]) {
    if constexpr (std::is_same_v<Element, BFloat16>)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// c += a b for 8 x 4 a and 4 x 8 b of doubles, distributed over the lanes of a warp as the PTX manual defines
/// mma.m8n8k4: lane = 4 g + t holds (g, t) of a, (t, g) of b and (g, 2t), (g, 2t + 1) of c. Each of the four additions
/// to an element of c is a fused multiply-add, in ascending order: so seen on an H100, and `gpu-check parity` tests it.
__device__ __forceinline__ void multiplyDoubles(double (&c)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
}

/// Begins to copy 16 bytes to shared memory, or fills them with zeros; both addresses are multiples of 16.
__device__ __forceinline__ void copySixteen(void* to, const void* from, bool there = true) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

/// Waits for the copies of this thread; others, and tensor cores that read shared memory, see them after a barrier.
__device__ __forceinline__ void waitForCopies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// Four 8 x 8 matrices of 16-bit elements (ldmatrix): lane 8 i + r gives the address of row r of matrix i; into[i] of
/// lane 4 g + t holds the elements (g, 2t) and (g, 2t + 1) of it, transposed (2t, g) and (2t + 1, g).
template <bool Transposed> __device__ __forceinline__ void loadMatrices(std::uint32_t (&into)[4], const void* row) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    if constexpr (Transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                     : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
                     : "r"(address));
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool kHasWarpgroups = true;
#else
inline constexpr bool kHasWarpgroups = false; // the functions below do nothing then
#endif

#define KVSCOPE_SUMS_OF(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define KVSCOPE_ALL_SUMS                                                                                               \
    KVSCOPE_SUMS_OF(0), KVSCOPE_SUMS_OF(1), KVSCOPE_SUMS_OF(2), KVSCOPE_SUMS_OF(3), KVSCOPE_SUMS_OF(4),                \
        KVSCOPE_SUMS_OF(5), KVSCOPE_SUMS_OF(6), KVSCOPE_SUMS_OF(7)
#define KVSCOPE_MULTIPLY_BY_WARPGROUP(type)                                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,"    \
                 "%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "              \
                 "{%32,%33,%34,%35}, %36, 1, 1, 1, 0;"                                                                 \
                 : KVSCOPE_ALL_SUMS                                                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows))

/// Call before and after multiplyByWarpgroup, of which several may follow one another; c lies as that function says.
__device__ __forceinline__ void beginWarpgroup([[maybe_unused]] float (&c)[8][4]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.fence.sync.aligned;" : KVSCOPE_ALL_SUMS::"memory");
#endif
}
__device__ __forceinline__ void endWarpgroup([[maybe_unused]] float (&c)[8][4]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" : KVSCOPE_ALL_SUMS::"memory");
#endif
}

/// c += a b for 64 x 16 a and 16 x 64 b of 16-bit elements, by four warps. Warp i has the rows 16 i to 16 i + 15 of a
/// and c, eight columns of c to a fragment, all as multiplyFragments. Column n of b is row n of a slice of a TileMatrix
/// from the elements on that `b` points to, a multiple of 16.
template <class Element>
__device__ __forceinline__ void multiplyByWarpgroup([[maybe_unused]] float (&c)[8][4],
                                                    [[maybe_unused]] const std::uint32_t (&a)[4],
                                                    [[maybe_unused]] const std::uint16_t* b) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    // The matrix descriptor of the PTX manual: address, 1024 bytes from eight rows to the next, 128-byte swizzle.
    const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(b));
    const std::uint64_t rows =
        (address & 0x3ffff) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62;
    if constexpr (std::is_same_v<Element, BFloat16>)
        KVSCOPE_MULTIPLY_BY_WARPGROUP("bf16");
    else
        KVSCOPE_MULTIPLY_BY_WARPGROUP("f16");
#endif
}

#endif

/// multiplyDoubles for 16 x 8 a and 8 x 8 b, that is two fragments of c above one another, each of two products: one
/// instruction on newer GPUs, where it is faster than four.
__device__ __forceinline__ void multiplyDoubles(double (&upper)[2], double (&lower)[2], const double (&aUpper)[2],
                                                const double (&aLower)[2], const double (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(upper[0]), "+d"(upper[1]), "+d"(lower[0]), "+d"(lower[1])
        : "d"(aUpper[0]), "d"(aLower[0]), "d"(aUpper[1]), "d"(aLower[1]), "d"(b[0]), "d"(b[1]));
#else
    for (int k = 0; k < 2; ++k) {
        multiplyDoubles(upper, aUpper[k], b[k]);
        multiplyDoubles(lower, aLower[k], b[k]);
    }
#endif
}

/// Two weights as three pairs of bfloat16 that add up to them.
__device__ __forceinline__ void splitPair(float x, float y, std::uint32_t& upper, std::uint32_t& middle,
                                          std::uint32_t& lower) {
    const auto upperOf = [](float z) { return __builtin_bit_cast(std::uint32_t, z) & 0xffff0000U; };
    const auto pairOf = [](std::uint32_t a, std::uint32_t b) { return a >> 16 | b; };
    const auto numberOf = [](std::uint32_t bits) { return __builtin_bit_cast(float, bits); };
    const std::uint32_t x1 = upperOf(x), y1 = upperOf(y);
    const float restX = x - numberOf(x1), restY = y - numberOf(y1);
    const std::uint32_t x2 = upperOf(restX), y2 = upperOf(restY);
    upper = pairOf(x1, y1);
    middle = pairOf(x2, y2);
    lower = pairOf(upperOf(restX - numberOf(x2)), upperOf(restY - numberOf(y2)));
}

} // namespace kvscope::gpu
