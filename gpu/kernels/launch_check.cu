// The one place where a CUDA error becomes an exception, and what launches ask of the device.
#include "gpu/kernels/device.h"
#include "gpu/kernels/device_error.h"

namespace kvscope::gpu {

void checkCuda(cudaError_t error, const char* during) {
    if (error != cudaSuccess) throw DeviceError(static_cast<int>(error), cudaGetErrorString(error), during);
}

bool overlapsLaunches() {
    int device = 0, major = 0;
    checkCuda(cudaGetDevice(&device), "asking for the device");
    checkCuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for the capability");
    return major >= 9;
}

} // namespace kvscope::gpu
