#pragma once

// The interface that kernel sources are written against. Under nvcc it is CUDA itself; tests compile the same sources
// with the host compiler and a header that runs blocks of threads on the CPU (tests/support/emulation), so that
// indices, barriers and sums are tested without a GPU. KVSCOPE_UNROLL: for loops over arrays that belong in registers;
// KVSCOPE_ROLL: for rare ones whose code should stay small.
#include "core/base/portable_math.h"
#include "gpu/kernels/device_data.h"

#include <cstddef>

#if defined(__CUDACC__)

#define KVSCOPE_UNROLL _Pragma("unroll")
#define KVSCOPE_ROLL _Pragma("unroll 1")
#include <cuda_runtime.h>

namespace kvscope::gpu {

/// Throws DeviceError for anything but cudaSuccess; defined in launch_check.cu.
void checkCuda(cudaError_t error, const char* during);

struct Grid {
    std::int64_t x = 1, y = 1, z = 1; ///< blocks
};

/// Whether the kernel was compiled with the instruction that waitForWorkBefore() needs, which code for older GPUs lacks
/// wherever it runs; defined in launch_check.cu.
bool waitsForWorkBefore(const void* kernel);

/// In a kernel that is launched early: waits for the work enqueued before; nothing may be read or written earlier.
__device__ __forceinline__ void waitForWorkBefore() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Once all blocks have called it or ended, a next kernel that is launched early begins, as far as there is room.
__device__ __forceinline__ void letNextBegin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Starts kernel(argument) with dynamic shared memory and checks the launch. An empty grid starts nothing. Early: the
/// kernel calls waitForWorkBefore(), so that starting it costs no time of its own.
template <class Argument>
void launch(const char* name, void (*kernel)(Argument), Grid grid, int threads, std::size_t sharedBytes, Stream stream,
            const Argument& argument, bool early = false) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    if (sharedBytes > 48 * 1024)
        checkCuda(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sharedBytes)),
            name);
    cudaLaunchAttribute overlap{};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch{};
    launch.gridDim = dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
    launch.blockDim = dim3(static_cast<unsigned>(threads));
    launch.dynamicSmemBytes = sharedBytes;
    launch.stream = stream;
    launch.attrs = &overlap;
    launch.numAttrs = early && waitsForWorkBefore(reinterpret_cast<const void*>(kernel)) ? 1 : 0;
    checkCuda(cudaLaunchKernelEx(&launch, kernel, argument), name);
}

/// The dynamic shared memory of the block as one struct.
template <class T> __device__ __forceinline__ T& sharedAs() {
    extern __shared__ __align__(1024) unsigned char kvscopeSharedBytes[];
    return *reinterpret_cast<T*>(kvscopeSharedBytes);
}

} // namespace kvscope::gpu

#elif defined(KVSCOPE_DEVICE_LAYER)
#define KVSCOPE_UNROLL
#define KVSCOPE_ROLL
#include KVSCOPE_DEVICE_LAYER
#else
#error "kernels are compiled by nvcc, or by tests with an emulated device"
#endif

namespace kvscope::gpu {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

} // namespace kvscope::gpu
