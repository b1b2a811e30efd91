#pragma once

#include "core/engine/engine.h"
#include "gpu/primitives/device_memory.h"

namespace kvscope::gpu {

/// An engine whose primitives run by CUDA kernels where there is a kernel and on `rest` elsewhere, which holds the
/// tensors too. Every call copies its tensors to the device and back: for checking, not for speed. Rows go to the
/// device in the type in which they are stored.
std::unique_ptr<Engine> makeKernelEngine(std::shared_ptr<const DeviceMemory> memory, std::shared_ptr<const Engine> rest,
                                         Arithmetic arithmetic);

/// Host memory in the place of the device's: for the emulated device.
class HostMemory final : public DeviceMemory {
public:
    std::shared_ptr<void> allocate(std::size_t bytes) const override;
    std::shared_ptr<void> allocateShared(std::size_t bytes) const override;
    void copyIn(void* to, const void* from, std::size_t bytes) const override;
    void copyOut(void* to, const void* from, std::size_t bytes) const override;
    void finish() const override {}
    bool isIdle() const override { return true; }
    Stream stream() const override { return nullptr; }
};

} // namespace kvscope::gpu
