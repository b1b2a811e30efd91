// The one place where a CUDA error becomes an exception.
#include "gpu/kernels/device.h"
#include "gpu/kernels/device_error.h"

namespace kvscope::gpu {

void checkCuda(cudaError_t error, const char* during) {
    if (error != cudaSuccess) throw DeviceError(static_cast<int>(error), cudaGetErrorString(error), during);
}

} // namespace kvscope::gpu
