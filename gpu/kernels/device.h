#pragma once

// The interface that kernel sources are written against. Under nvcc it is CUDA itself; tests compile the same sources
// with the host compiler and a header that runs blocks of threads on the CPU (tests/support/emulation), so that
// indices, barriers and sums are tested without a GPU. KVSCOPE_UNROLL: for loops over arrays that belong in registers.
#include "core/base/portable_math.h"
#include "gpu/kernels/device_data.h"

#include <cstddef>

#if defined(__CUDACC__)

#define KVSCOPE_UNROLL _Pragma("unroll")
#include <cuda_runtime.h>

namespace kvscope::gpu {

/// Throws DeviceError for anything but cudaSuccess; defined in launch_check.cu.
void checkCuda(cudaError_t error, const char* during);

struct Grid {
    std::int64_t x = 1, y = 1, z = 1; ///< blocks
};

/// Starts kernel(argument) with dynamic shared memory and checks the launch. An empty grid starts nothing.
template <class Argument>
void launch(const char* name, void (*kernel)(Argument), Grid grid, int threads, std::size_t sharedBytes, Stream stream,
            const Argument& argument) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    if (sharedBytes > 48 * 1024)
        checkCuda(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sharedBytes)),
            name);
    const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
    kernel<<<blocks, static_cast<unsigned>(threads), sharedBytes, stream>>>(argument);
    checkCuda(cudaGetLastError(), name);
}

/// The same, but blocks may begin while the stream's launch before this one ends, up to where they call
/// awaitPreviousLaunch (programmatic dependent launch): that launch's kernel has to call it too.
template <class Argument>
void launchOverlapping(const char* name, void (*kernel)(Argument), Grid grid, int threads, std::size_t sharedBytes,
                       Stream stream, const Argument& argument) {
    cudaFuncAttributes compiled = {};
    checkCuda(cudaFuncGetAttributes(&compiled, kernel), name);
    if (compiled.ptxVersion < 90 || sharedBytes > 48 * 1024)
        return launch(name, kernel, grid, threads, sharedBytes, stream, argument);
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)};
    config.blockDim = {static_cast<unsigned>(threads), 1, 1};
    config.dynamicSmemBytes = sharedBytes;
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = 1;
    checkCuda(cudaLaunchKernelEx(&config, kernel, argument), name);
}

/// Lets the launch after this one begin and waits for what the one before it wrote.
__device__ __forceinline__ void awaitPreviousLaunch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

/// The dynamic shared memory of the block as one struct.
template <class T> __device__ __forceinline__ T& sharedAs() {
    extern __shared__ __align__(16) unsigned char kvscopeSharedBytes[];
    return *reinterpret_cast<T*>(kvscopeSharedBytes);
}

} // namespace kvscope::gpu

#elif defined(KVSCOPE_DEVICE_LAYER)
#define KVSCOPE_UNROLL
#include KVSCOPE_DEVICE_LAYER
#else
#error "kernels are compiled by nvcc, or by tests with an emulated device"
#endif

namespace kvscope::gpu {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

} // namespace kvscope::gpu
