#pragma once

#include "gpu/device_engine.h"

#include <cstddef>
#include <memory>

namespace kvscope {

/// Which tensors lie in the device's memory: each is uploaded when a primitive first needs it and stays until the
/// memory budget is full; then the least recently used is evicted. The numbers stay on the host as well, so nothing is
/// lost with the device. Rows of a tensor share its numbers. Tensors may outlive the residency and both engines.
/// Thread-safe; several tensors may be uploaded at a time, and none twice.
class Residency {
public:
    /// memoryBytes 0: no bound. The engines must outlive every call, not the tensors.
    Residency(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu, std::size_t memoryBytes);
    ~Residency();

    Tensor upload(HostTensor numbers);
    static Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end);
    static Tensor gatherRows(const Tensor& tensor, const RowPositions& rows);

    /// The tensor in the form that the device takes. Throws what uploading throws.
    Tensor onDevice(const Tensor& tensor);
    /// The tensor in the form that the CPU engine takes.
    Tensor onCpu(const Tensor& tensor) const;

    /// Evicts everything from the device's memory.
    void evictAll();
    std::size_t residentBytes() const;

private:
    struct Block;
    struct Storage;
    struct State;
    static const Storage& storageOf(const Tensor& tensor);
    Tensor wholeOnDevice(Block& block);
    void makeRoom(std::size_t bytes);

    std::shared_ptr<const DeviceEngine> m_device;
    std::shared_ptr<const Engine> m_cpu;
    std::size_t m_memoryBytes;
    std::shared_ptr<State> m_state;
};

} // namespace kvscope
