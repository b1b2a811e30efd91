// What a failed CUDA call means for the program: whether a smaller batch helps, or only another engine. The numbers are
// those of cudaError_t, which are part of CUDA's binary interface, so this file needs no CUDA header.
#include "gpu/kernels/device_error.h"

namespace kvscope::gpu {

namespace {

DeviceError::Cause causeOf(int code) {
    switch (code) {
    case 2: // cudaErrorMemoryAllocation
        return DeviceError::Cause::OutOfMemory;
    case 3:   // cudaErrorInitializationError
    case 34:  // cudaErrorStubLibrary
    case 35:  // cudaErrorInsufficientDriver
    case 100: // cudaErrorNoDevice
    case 101: // cudaErrorInvalidDevice
    case 209: // cudaErrorNoKernelImageForDevice
        return DeviceError::Cause::NoDevice;
    case 46:  // cudaErrorDevicesUnavailable
    case 214: // cudaErrorECCUncorrectable
    case 700: // cudaErrorIllegalAddress
    case 702: // cudaErrorLaunchTimeout
    case 714: // cudaErrorHardwareStackError
    case 719: // cudaErrorLaunchFailure
        return DeviceError::Cause::Lost;
    default:
        return DeviceError::Cause::Other;
    }
}

std::string remedyFor(DeviceError::Cause cause) {
    switch (cause) {
    case DeviceError::Cause::OutOfMemory:
        return "close what else uses the GPU, or use --engine cpu";
    case DeviceError::Cause::NoDevice:
        return "install a driver that fits this GPU, or use --engine cpu";
    case DeviceError::Cause::Lost:
        return "start the program again to use the GPU, or use --engine cpu";
    case DeviceError::Cause::Other:
        break;
    }
    return "use --engine cpu";
}

} // namespace

DeviceError::DeviceError(int code, const char* text, const char* during)
    : Error({"the GPU reports \"" + std::string(text) + "\" (CUDA error " + std::to_string(code) + ") during " + during,
             "CUDA device", remedyFor(causeOf(code)), ""}),
      m_cause(causeOf(code)) {}

} // namespace kvscope::gpu
