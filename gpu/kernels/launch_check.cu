// Turns CUDA errors into exceptions, in one place, and queries device properties.
#include "gpu/kernels/device.h"
#include "gpu/kernels/device_error.h"
#include "gpu/kernels/exact_sums.h"

namespace kvscope::gpu {

void checkCuda(cudaError_t error, const char* during) {
    if (error != cudaSuccess)
        throw DeviceError(static_cast<int>(error), cudaGetErrorString(error), during);
}

int singleToDoubleRatio() {
    int device = 0, ratio = 1;
    if (cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio, device) == cudaSuccess)
        return ratio;
    cudaGetLastError(); // clears the error state
    return 1;
}

} // namespace kvscope::gpu
