#pragma once

#include "gpu/kernels/device_data.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace kvscope::gpu {

/// Memory of the device that kernels run on, as its owner provides it: LibTorch's allocator, CUDA, or host memory under
/// the emulated device.
class DeviceMemory {
public:
    virtual ~DeviceMemory() = default;
    virtual std::shared_ptr<void> allocate(std::size_t bytes) const = 0;
    virtual void copyIn(void* to, const void* from, std::size_t bytes) const = 0;
    /// Waits for all work enqueued before.
    virtual void copyOut(void* to, const void* from, std::size_t bytes) const = 0;
    virtual void finish() const = 0; ///< waits for all work enqueued before
    virtual Stream stream() const = 0;
};

/// A list of numbers in device memory. Empty lists have the address null.
template <class T> class DeviceList {
public:
    DeviceList() = default;
    DeviceList(const DeviceMemory& memory, std::size_t count)
        : m_count(count), m_data(count > 0 ? memory.allocate(count * sizeof(T)) : nullptr) {}
    DeviceList(const DeviceMemory& memory, const std::vector<T>& numbers) : DeviceList(memory, numbers.size()) {
        if (m_count > 0) memory.copyIn(data(), numbers.data(), m_count * sizeof(T));
    }

    T* data() const { return static_cast<T*>(m_data.get()); }
    std::vector<T> read(const DeviceMemory& memory) const {
        std::vector<T> numbers(m_count);
        if (m_count > 0) memory.copyOut(numbers.data(), data(), m_count * sizeof(T));
        return numbers;
    }

private:
    std::size_t m_count = 0;
    std::shared_ptr<void> m_data;
};

} // namespace kvscope::gpu
