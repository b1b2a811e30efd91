#pragma once

#include "gpu/device_engine.h"

#include <cstddef>
#include <memory>

namespace kvscope {

enum class Place { Device, Cpu };

/// Decides which tensors are resident on the device: a tensor is uploaded when a primitive first needs it and evicted
/// (least recently used first) when the memory budget is full. Uploaded tensors keep their numbers on the host; results
/// are downloaded when they are evicted. Tensors may outlive the residency and both engines. Thread-safe.
class Residency {
public:
    /// memoryBytes 0: no bound. The engines must outlive every call, but not the tensors.
    Residency(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu, std::size_t memoryBytes);
    ~Residency();

    Tensor upload(HostTensor numbers);
    /// Takes over a result that a primitive made in this place.
    Tensor keep(const Tensor& made, Place place);
    /// Rows [begin, end) of axis 1; shares the numbers.
    static Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end);

    /// Uploads a tensor that is on the host alone, if it fits without an eviction, while primitives run. Throws what
    /// uploading throws.
    void prefetch(const Tensor& tensor);

    /// The tensor in the form that the engine of `place` takes. Throws TensorsLost, and what uploading throws.
    Tensor on(Place place, const Tensor& tensor);
    HostTensor download(const Tensor& tensor);

    /// Evicts every tensor from the device.
    void evictAll();
    /// The device is lost: forgets what was resident. Results without a copy on the host are lost (TensorsLost).
    void handleDeviceLost();
    std::size_t residentBytes() const;

private:
    struct Block;
    struct Storage;
    struct State;
    struct PrefetchGuard;
    static const Storage& storageOf(const Tensor& tensor);
    static Tensor makeTensor(std::shared_ptr<Block> block);
    void admit(Block& block, const Tensor& device);
    void evict(Block& block);
    void makeRoom(std::size_t bytes);
    HostTensor numbersOf(Block& block);

    std::shared_ptr<const DeviceEngine> m_device;
    std::shared_ptr<const Engine> m_cpu;
    std::size_t m_memoryBytes;
    std::shared_ptr<State> m_state;
};

} // namespace kvscope
