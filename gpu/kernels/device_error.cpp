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
    case 36:  // cudaErrorCallRequiresNewerDriver
    case 304: // cudaErrorOperatingSystem
    case 802: // cudaErrorSystemNotReady
    case 803: // cudaErrorSystemDriverMismatch
    case 804: // cudaErrorCompatNotSupportedOnDevice
        return Cause::NoDevice;
    case 4:   // cudaErrorCudartUnloading
    case 46:  // cudaErrorDevicesUnavailable
    case 214: // cudaErrorECCUncorrectable
    case 220: // cudaErrorNvlinkUncorrectable
    case 226: // cudaErrorContained
        return Cause::Lost;
    case 701: // cudaErrorLaunchOutOfResources
    case 704: // cudaErrorPeerAccessAlreadyEnabled
    case 705: // cudaErrorPeerAccessNotEnabled
    case 712: // cudaErrorHostMemoryAlreadyRegistered
    case 713: // cudaErrorHostMemoryNotRegistered
    case 720: // cudaErrorCooperativeLaunchTooLarge
    case 800: // cudaErrorNotPermitted
    case 801: // cudaErrorNotSupported
    case 912: // cudaErrorInvalidClusterSize
        return Cause::Other;
    default: break;
    }
    if (100 <= code && code < 300) return Cause::NoDevice; // no device, no kernel image, PTX that is not compiled
    // From 700 on, a kernel failed and its context with it; 900 to 910 are about the capture of graphs.
    return code >= 700 && !(900 <= code && code <= 910) ? Cause::Lost : Cause::Other;
}

Cause causeOfText(std::string_view text) {
    const auto has = [&](const char* part) { return text.find(part) != std::string_view::npos; };
    // Libraries allocate their workspace on first use, so these failures mean out of memory.
    if (has("_STATUS_ALLOC_FAILED") || has("_STATUS_NOT_INITIALIZED") || has("out of memory"))
        return Cause::OutOfMemory;
    if (has("_STATUS_EXECUTION_FAILED") || has("_STATUS_MAPPING_ERROR") || has("CUDA error") ||
        has("CUDA driver error"))
        return Cause::Lost;
    for (const char* library : {"CUDA", "CUBLAS", "cublas", "CUSOLVER", "cusolver", "NVRTC", "nvrtc"})
        if (has(library)) return Cause::Other;
    return Cause::Ours;
}

namespace {

std::string remedyFor(DeviceError::Cause cause) {
    switch (cause) {
    case DeviceError::Cause::OutOfMemory: return "close what else uses the GPU, or use --engine cpu";
    case DeviceError::Cause::NoDevice: return "install a driver that fits this GPU, or use --engine cpu";
    case DeviceError::Cause::Lost: return "start the program again to use the GPU, or use --engine cpu";
    case DeviceError::Cause::Other:
    case DeviceError::Cause::Ours: break;
    }
    return "use --engine cpu";
}

} // namespace

DeviceError::DeviceError(int code, const char* text, const char* during)
    : Error({"the GPU reports \"" + std::string(text) + "\" (CUDA error " + std::to_string(code) + ") during " + during,
             "CUDA device", remedyFor(causeOfCode(code))}),
      m_cause(causeOfCode(code)) {}

} // namespace kvscope::gpu
