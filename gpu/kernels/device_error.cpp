// Classifies failed CUDA calls: whether a smaller batch helps or only another engine. The numbers are cudaError_t
// values, which are part of CUDA's binary interface, so this file needs no CUDA header.
#include "gpu/kernels/device_error.h"

namespace kvscope::gpu {

using Cause = DeviceError::Cause;

Cause causeOfCode(int code) {
    switch (code) {
    case 2: // cudaErrorMemoryAllocation
        return Cause::OutOfMemory;
    case 3:   // cudaErrorInitializationError
    case 34:  // cudaErrorStubLibrary
    case 35:  // cudaErrorInsufficientDriver
    case 100: // cudaErrorNoDevice
    case 101: // cudaErrorInvalidDevice
    case 209: // cudaErrorNoKernelImageForDevice
    case 222: // cudaErrorUnsupportedPtxVersion
    case 802: // cudaErrorSystemNotReady
    case 803: // cudaErrorSystemDriverMismatch
        return Cause::NoDevice;
    case 4:   // cudaErrorCudartUnloading
    case 46:  // cudaErrorDevicesUnavailable
    case 214: // cudaErrorECCUncorrectable
    case 700: // cudaErrorIllegalAddress
    case 702: // cudaErrorLaunchTimeout
    case 709: // cudaErrorContextIsDestroyed
    case 710: // cudaErrorAssert
    case 714: // cudaErrorHardwareStackError
    case 715: // cudaErrorIllegalInstruction
    case 716: // cudaErrorMisalignedAddress
    case 717: // cudaErrorInvalidAddressSpace
    case 718: // cudaErrorInvalidPc
    case 719: // cudaErrorLaunchFailure
    case 999: // cudaErrorUnknown
        return Cause::Lost;
    default: return Cause::Other;
    }
}

Cause causeOfText(std::string_view text) {
    const auto has = [&](const char* part) { return text.find(part) != std::string_view::npos; };
    // Libraries allocate their workspace on first use, so these failures mean out of memory.
    if (has("_STATUS_ALLOC_FAILED") || has("_STATUS_NOT_INITIALIZED") || has("out of memory"))
        return Cause::OutOfMemory;
    if (has("_STATUS_EXECUTION_FAILED") || has("_STATUS_MAPPING_ERROR") || has("CUDA error") ||
        has("CUDA driver error"))
        return Cause::Lost;
    return Cause::Other;
}

namespace {

std::string remedyFor(DeviceError::Cause cause) {
    switch (cause) {
    case DeviceError::Cause::OutOfMemory: return "close what else uses the GPU, or use --engine cpu";
    case DeviceError::Cause::NoDevice: return "install a driver that fits this GPU, or use --engine cpu";
    case DeviceError::Cause::Lost: return "start the program again to use the GPU, or use --engine cpu";
    case DeviceError::Cause::Other: break;
    }
    return "use --engine cpu";
}

} // namespace

DeviceError::DeviceError(int code, const char* text, const char* during)
    : Error({"the GPU reports \"" + std::string(text) + "\" (CUDA error " + std::to_string(code) + ") during " + during,
             "CUDA device", remedyFor(causeOfCode(code))}),
      m_cause(causeOfCode(code)) {}

} // namespace kvscope::gpu
