#pragma once

#include "gpu/device_engine.h"

#include <cstddef>
#include <memory>

namespace kvscope {

/// Decides which tensors are resident on the device: a tensor is uploaded when a primitive first needs it and evicted
/// (least recently used first) when the memory budget is full. The host keeps the numbers, so a lost device loses
/// nothing. Rows of a tensor share its numbers. Tensors may outlive the residency and both engines. Thread-safe;
/// tensors may be uploaded concurrently, each once.
class Residency {
public:
    /// memoryBytes 0: no bound. The engines must outlive every call, but not the tensors.
    Residency(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu, std::size_t memoryBytes);
    ~Residency();

    Tensor upload(HostTensor numbers);
    static Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end);
    static Tensor gatherRows(const Tensor& tensor, const RowPositions& rows);

    /// The tensor as a tensor of the device engine. Throws what uploading throws.
    Tensor onDevice(const Tensor& tensor);
    /// The tensor as a tensor of the CPU engine.
    Tensor onCpu(const Tensor& tensor) const;

    /// Evicts every tensor from the device.
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
