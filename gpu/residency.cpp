// A tensor of ResidentEngine is a block of numbers that may be on the host, on the device or on both. The device's
// memory is an LRU cache of blocks.
#include "gpu/residency.h"

#include "core/engine/tensors_lost.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <list>
#include <mutex>
#include <utility>

namespace kvscope {

/// Shared with the blocks, so that a block whose last owner goes away removes itself from the LRU list.
struct Residency::State {
    std::mutex mutex;
    std::condition_variable prefetchEnded; ///< notified when a prefetch has ended
    std::list<Block*> resident;            ///< most recently used first
    std::atomic<std::size_t> bytes{0};     ///< written under the mutex, read without it
};

/// Guarded by the state's mutex. At least one of the forms holds the numbers, or they are lost.
struct Residency::Block {
    explicit Block(std::shared_ptr<State> owner, const Shape& s) : state(std::move(owner)), shape(s) {}
    ~Block() {
        const std::lock_guard lock(state->mutex);
        dropDeviceCopy();
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    std::size_t bytes() const { return static_cast<std::size_t>(shape.count()) * sizeof(float); }
    bool lost() const { return device.empty() && cpu.empty() && !host; }
    void dropDeviceCopy() {
        if (device.empty())
            return;
        state->resident.erase(place);
        state->bytes -= deviceBytes;
        device = Tensor();
    }

    std::shared_ptr<State> state;
    Shape shape;
    std::shared_ptr<const HostTensor> host;
    Tensor cpu, device;
    std::size_t deviceBytes = 0;
    bool isPrefetching = false;        ///< a prefetch is copying this block
    std::list<Block*>::iterator place; ///< valid while `device` is not empty
};

/// Rows [begin, end) of axis 1 of a block; end -1: all of it.
struct Residency::Storage : TensorStorage {
    std::shared_ptr<Block> block;
    std::int64_t begin = 0, end = -1;
};

/// Ends the prefetch and wakes the waiting threads, also after an exception.
struct Residency::PrefetchGuard {
    PrefetchGuard(State& s, Block& b) : state(s), block(b) {}
    ~PrefetchGuard() {
        const std::lock_guard lock(state.mutex);
        block.isPrefetching = false;
        state.prefetchEnded.notify_all();
    }
    PrefetchGuard(const PrefetchGuard&) = delete;
    PrefetchGuard& operator=(const PrefetchGuard&) = delete;

    State& state;
    Block& block;
};

namespace {

[[noreturn]] void throwTensorsLost() {
    throw TensorsLost({.sentence = "the GPU stopped answering and took intermediate results with it",
                       .remedy = "Ask again: what is computed now runs on the CPU"});
}

Shape withRows(const Shape& shape, std::int64_t rows) {
    return shape.rank() == 3 ? Shape{shape[0], rows, shape[2]} : Shape{shape[0], rows};
}

HostTensor rowsOf(const HostTensor& whole, std::int64_t begin, std::int64_t end) {
    const std::int64_t width = whole.shape.rank() == 3 ? whole.shape[2] : 1, stride = whole.shape[1] * width;
    HostTensor part{withRows(whole.shape, end - begin), {}};
    part.data.reserve(static_cast<std::size_t>(part.shape.count()));
    for (std::int64_t h = 0; h < whole.shape[0]; ++h) {
        const auto head = whole.data.begin() + h * stride;
        part.data.insert(part.data.end(), head + begin * width, head + end * width);
    }
    return part;
}

} // namespace

Residency::Residency(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu,
                     std::size_t memoryBytes)
    : m_device(std::move(device)), m_cpu(std::move(cpu)), m_memoryBytes(memoryBytes),
      m_state(std::make_shared<State>()) {}

Residency::~Residency() = default;

const Residency::Storage& Residency::storageOf(const Tensor& tensor) {
    assert(!tensor.empty());
    return static_cast<const Storage&>(*tensor.storage());
}

Tensor Residency::makeTensor(std::shared_ptr<Block> block) {
    const Shape shape = block->shape;
    auto storage = std::make_shared<Storage>();
    storage->block = std::move(block);
    return {shape, std::move(storage)};
}

Tensor Residency::upload(HostTensor numbers) {
    auto block = std::make_shared<Block>(m_state, numbers.shape);
    block->host = std::make_shared<const HostTensor>(std::move(numbers));
    return makeTensor(std::move(block));
}

Tensor Residency::keep(const Tensor& made, Place place) {
    auto block = std::make_shared<Block>(m_state, made.shape());
    const std::lock_guard lock(m_state->mutex);
    if (place == Place::Cpu) {
        block->cpu = made;
    } else {
        makeRoom(block->bytes());
        admit(*block, made);
    }
    return makeTensor(std::move(block));
}

Tensor Residency::rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
    assert(0 <= begin && begin <= end && end <= tensor.size(1));
    const Storage& whole = storageOf(tensor);
    auto part = std::make_shared<Storage>(whole);
    part->begin = whole.begin + begin;
    part->end = whole.begin + end;
    return {withRows(tensor.shape(), end - begin), std::move(part)};
}

Tensor Residency::on(Place place, const Tensor& tensor) {
    if (tensor.empty())
        return {};
    const Storage& storage = storageOf(tensor);
    Block& block = *storage.block;
    std::unique_lock lock(m_state->mutex);
    if (place == Place::Cpu) {
        if (block.cpu.empty())
            block.cpu = m_cpu->upload(numbersOf(block));
        block.host.reset(); // the CPU engine's form holds the same numbers
        return storage.end < 0 ? block.cpu : m_cpu->rows(block.cpu, storage.begin, storage.end);
    }
    m_state->prefetchEnded.wait(lock, [&] { return !block.isPrefetching; }); // one upload per block
    if (block.device.empty()) {
        HostTensor numbers = numbersOf(block);
        makeRoom(block.bytes());
        admit(block, m_device->upload(std::move(numbers)));
        if (!m_device->hasOwnMemory()) {
            block.host.reset();
            block.cpu = Tensor();
        }
    }
    m_state->resident.splice(m_state->resident.begin(), m_state->resident, block.place);
    return storage.end < 0 ? block.device : m_device->rows(block.device, storage.begin, storage.end);
}

void Residency::prefetch(const Tensor& tensor) {
    if (tensor.empty() || !m_device->hasOwnMemory())
        return;
    Block& block = *storageOf(tensor).block;
    const auto fits = [&] { return m_memoryBytes == 0 || m_state->bytes + block.bytes() <= m_memoryBytes; };
    std::shared_ptr<const HostTensor> numbers;
    {
        const std::lock_guard lock(m_state->mutex);
        if (!block.device.empty() || block.isPrefetching || !block.host || !fits())
            return;
        numbers = block.host;
        block.isPrefetching = true;
    }
    const PrefetchGuard guard(*m_state, block);
    const Tensor onDevice = m_device->uploadOnCopyStream(HostTensor(*numbers)); // without the lock: primitives go on
    const std::lock_guard lock(m_state->mutex);
    if (block.device.empty() && fits())
        admit(block, onDevice);
}

HostTensor Residency::download(const Tensor& tensor) {
    const Storage& storage = storageOf(tensor);
    Tensor onDevice;
    {
        const std::lock_guard lock(m_state->mutex);
        Block& block = *storage.block;
        if (block.host || !block.cpu.empty() || block.lost()) {
            HostTensor whole = numbersOf(block);
            return storage.end < 0 ? whole : rowsOf(whole, storage.begin, storage.end);
        }
        onDevice = block.device;
    }
    return m_device->download(storage.end < 0 ? onDevice : m_device->rows(onDevice, storage.begin, storage.end));
}

/// A copy of a block's numbers, from the host or from the device.
HostTensor Residency::numbersOf(Block& block) {
    if (block.lost())
        throwTensorsLost();
    if (block.host)
        return *block.host;
    return block.cpu.empty() ? m_device->download(block.device) : m_cpu->download(block.cpu);
}

void Residency::admit(Block& block, const Tensor& device) {
    block.device = device;
    block.place = m_state->resident.insert(m_state->resident.begin(), &block);
    block.deviceBytes = m_device->bytesOf(device);
    m_state->bytes += block.deviceBytes;
}

void Residency::evict(Block& block) {
    if (!block.host && block.cpu.empty())
        block.host = std::make_shared<const HostTensor>(m_device->download(block.device));
    block.dropDeviceCopy();
}

void Residency::makeRoom(std::size_t bytes) {
    while (m_memoryBytes > 0 && !m_state->resident.empty() && m_state->bytes + bytes > m_memoryBytes)
        evict(*m_state->resident.back());
}

void Residency::evictAll() {
    const std::lock_guard lock(m_state->mutex);
    while (!m_state->resident.empty())
        evict(*m_state->resident.back());
}

void Residency::handleDeviceLost() {
    const std::lock_guard lock(m_state->mutex);
    while (!m_state->resident.empty())
        m_state->resident.back()->dropDeviceCopy();
}

std::size_t Residency::residentBytes() const { return m_state->bytes; }

} // namespace kvscope
