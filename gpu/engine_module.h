#pragma once

#include "gpu/device_engine.h"

#include <cstddef>
#include <memory>
#include <string>

namespace kvscope {

/// What the caller asks the LibTorch engine module for.
struct EngineModuleRequest {
    std::string device = {}; ///< "cpu" or "cuda"
    int threads = 0;         ///< of LibTorch on the CPU; 0: all cores
    Arithmetic arithmetic = Arithmetic::Exact;
    bool hasDriver = false; ///< whether this machine's driver runs LibTorch's CUDA
    std::string gpu = {};   ///< name of the GPU as the driver reports it, for device "cuda"
};

struct EngineModuleDevice {
    std::shared_ptr<const DeviceEngine> engine;
    std::size_t memoryBytes = 0; ///< what resident tensors should take of the device's memory; 0: no bound
};

/// The module's two exported functions, found by name at run time.
/// Fingerprint of the headers both sides were compiled with: a module from another build is refused.
using EngineModuleStamp = const char* (*)();
inline constexpr const char* kEngineModuleStamp = "kvscopeEngineModuleStamp";
/// Throws Error when the device cannot be used.
using EngineModuleMake = EngineModuleDevice (*)(const EngineModuleRequest&);
inline constexpr const char* kEngineModuleMake = "kvscopeEngineModuleMake";

} // namespace kvscope
