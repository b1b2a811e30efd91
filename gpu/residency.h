#pragma once

#include "gpu/device_engine.h"

#include <cstddef>
#include <memory>

namespace kvscope {

enum class Place { Device, Cpu };

/// Which tensors lie in the device's memory: each is uploaded when a primitive first needs it and stays until the
/// memory budget is full; then the least recently used goes. Uploaded tensors keep their numbers on the host, results
/// are downloaded when they must go. Tensors may outlive the residency and both engines. Thread-safe.
class Residency {
public:
    /// memoryBytes 0: no bound. The engines must outlive every call, not the tensors.
    Residency(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu, std::size_t memoryBytes);
    ~Residency();

    Tensor upload(HostTensor numbers);
    /// A result that a primitive made in this place.
    Tensor keep(const Tensor& made, Place place);
    /// Rows [begin, end) of axis 1; shares the numbers.
    static Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end);

    /// Uploads what lies on the host alone and fits beside what is there; the primitives go on meanwhile. Throws what
    /// uploading throws.
    void prefetch(const Tensor& tensor);

    /// The tensor in the form that the engine of that place takes. Throws TensorsLost, and what uploading throws.
    Tensor on(Place place, const Tensor& tensor);
    HostTensor download(const Tensor& tensor);

    /// Moves everything out of the device's memory.
    void evictAll();
    /// The device is gone: forgets what lay there. Results that were nowhere else are lost.
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
