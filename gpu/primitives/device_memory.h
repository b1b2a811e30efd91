#pragma once

#include "core/base/host_tensor.h"
#include "gpu/kernels/device_data.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace kvscope::gpu {

/// Memory of the device that kernels run on, as its owner provides it: LibTorch's allocator, CUDA, or host memory under
/// the emulated device.
class DeviceMemory {
public:
    virtual ~DeviceMemory() = default;
    virtual std::shared_ptr<void> allocate(std::size_t bytes) const = 0;
    /// Memory of the host that running kernels read and write, and that copies run to at full speed.
    virtual std::shared_ptr<void> allocateShared(std::size_t bytes) const = 0;
    virtual void copyIn(void* to, const void* from, std::size_t bytes) const = 0;
    /// Waits for all work enqueued before.
    virtual void copyOut(void* to, const void* from, std::size_t bytes) const = 0;
    virtual void finish() const = 0; ///< waits for all work enqueued before
    virtual bool isIdle() const = 0; ///< whether all work enqueued before has ended
    virtual Stream stream() const = 0;
};

/// Lists, results and scratch of one call in one allocation: all lists are copied in at once, all results out at once.
/// Describe the parts, place() them, enqueue the work, fetch() the results.
class CallMemory {
public:
    explicit CallMemory(const DeviceMemory& memory) : m_memory(memory) {}

    /// Parts: `address` must live until place() sets it; null for an empty part.
    template <class T> void list(const T*& address, const std::vector<T>& numbers) { fill(Lists, address, numbers); }
    /// A list that write(T*) fills at once.
    template <class T, class Write> void list(const T*& address, std::size_t count, const Write& write) {
        const std::size_t offset = m_bytes[Lists];
        add(Lists, address, count);
        m_input[Lists].resize(m_bytes[Lists]);
        write(reinterpret_cast<T*>(m_input[Lists].data() + offset));
    }
    template <class T> void result(T*& address, std::size_t count) { add(Results, address, count); }
    /// A result that the call starts from.
    template <class T> void changed(T*& address, const std::vector<T>& numbers) { fill(Changed, address, numbers); }
    template <class T> void scratch(T*& address, std::size_t count) { add(Scratch, address, count); }

    void place();
    void fetch(); ///< waits for the work
    /// The numbers of a result, after fetch().
    template <class T> std::span<const T> view(const T* address, std::size_t count) const {
        if (count == 0) return {};
        const auto* bytes = static_cast<const unsigned char*>(m_fetched.get()) +
                            (reinterpret_cast<const unsigned char*>(address) - at(Changed));
        return {reinterpret_cast<const T*>(bytes), count};
    }
    template <class T> std::vector<T> read(const T* address, std::size_t count) const {
        const std::span<const T> numbers = view(address, count);
        return {numbers.begin(), numbers.end()};
    }
    HostTensor read(const float* address, const Shape& shape) const {
        return {shape, read(address, static_cast<std::size_t>(shape.count()))};
    }

private:
    enum Section { Lists, Changed, Results, Scratch, kSections };
    struct Part {
        Section section;
        std::size_t offset;
        std::function<void(void*)> set;
    };

    template <class T> void add(Section section, T*& address, std::size_t count) {
        address = nullptr;
        if (count == 0) return;
        m_parts.push_back({section, m_bytes[section], [&address](void* at) { address = static_cast<T*>(at); }});
        m_bytes[section] += (count * sizeof(T) + 15) / 16 * 16;
    }
    template <class T, class Pointer> void fill(Section section, Pointer& address, const std::vector<T>& numbers) {
        const std::size_t offset = m_bytes[section];
        add(section, address, numbers.size());
        m_input[section].resize(m_bytes[section]);
        if (!numbers.empty()) std::memcpy(m_input[section].data() + offset, numbers.data(), numbers.size() * sizeof(T));
    }
    /// Where a section begins on the device.
    unsigned char* at(Section section) const;

    const DeviceMemory& m_memory;
    std::vector<Part> m_parts;
    std::array<std::size_t, kSections> m_bytes{};
    std::array<std::vector<unsigned char>, 2> m_input; ///< Lists and Changed
    std::shared_ptr<void> m_data;
    std::shared_ptr<void> m_fetched; ///< Changed and Results, on the host
};

} // namespace kvscope::gpu
