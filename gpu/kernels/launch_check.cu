// The one place where a CUDA error becomes an exception, and what launches ask of a kernel.
#include "gpu/kernels/device.h"
#include "gpu/kernels/device_error.h"

namespace kvscope::gpu {

void checkCuda(cudaError_t error, const char* during) {
    if (error != cudaSuccess) throw DeviceError(static_cast<int>(error), cudaGetErrorString(error), during);
}

bool waitsForWorkBefore(const void* kernel) {
    thread_local const void* last = nullptr; // k-center asks about one kernel a thousand times
    thread_local bool waits = false;
    if (kernel == last) return waits;
    cudaFuncAttributes compiled{};
    checkCuda(cudaFuncGetAttributes(&compiled, kernel), "asking for a kernel");
    last = kernel;
    waits = compiled.ptxVersion >= 90;
    return waits;
}

} // namespace kvscope::gpu
