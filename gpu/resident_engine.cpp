// Handling of device failures, for all primitives in one place.
#include "gpu/resident_engine.h"

#include "core/base/error.h"

#include <atomic>
#include <cassert>
#include <condition_variable>
#include <list>
#include <mutex>
#include <new>
#include <utility>

namespace kvscope {

namespace {

/// The failure in its own words, without the remedy of an Error or the stack that LibTorch adds.
std::string wordsOf(const std::exception& failure) {
    if (const auto* error = dynamic_cast<const Error*>(&failure)) return error->parts().sentence;
    const std::string text = failure.what();
    return text.substr(0, text.find('\n'));
}

/// Call inside the handler of a failure that is not the device's fault.
[[noreturn]] void rethrow(const std::string& call, const std::exception& failure) {
    if (dynamic_cast<const Error*>(&failure) || dynamic_cast<const std::bad_alloc*>(&failure)) throw;
    throw Error({call + " was given what it cannot compute: " + wordsOf(failure), "engine",
                 "This is a mistake in KVScope, not of the device: report it with the command that led here"});
}

} // namespace

ResidentEngine::ResidentEngine(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu,
                               std::size_t memoryBytes, bool strict)
    : m_device(std::move(device)), m_cpu(std::move(cpu)), m_memoryBytes(memoryBytes), m_strict(strict),
      m_residency(m_device, m_cpu, memoryBytes) {}

void ResidentEngine::Attempt::add(const Tensor& tensor) {
    if (tensor.empty()) return;
    std::string sizes;
    for (int axis = 0; axis < tensor.shape().rank(); ++axis)
        sizes += (axis > 0 ? ", " : "") + std::to_string(tensor.size(axis));
    shapes += (shapes.empty() ? "[" : ", [") + sizes + "]";
}

/// Call inside a handler. Throws what is not the device's fault. False: run this call on the CPU engine.
bool ResidentEngine::tryAgain(const Attempt& attempt, const std::exception& failure) const {
    if (dynamic_cast<const NoDeviceCode*>(&failure)) {
        const std::lock_guard lock(m_mutex);
        ++m_state.delegated[attempt.primitive];
        return false;
    }
    switch (m_device->classify(failure)) {
    case DeviceFailure::Ours: rethrow(attempt.text(), failure);
    case DeviceFailure::OutOfMemory:
        if (makeRoom()) return true;
        fallBack(attempt, "GPU memory is full: " + attempt.primitive + " ran on the CPU", wordsOf(failure));
        return false;
    case DeviceFailure::Refused:
        fallBack(attempt, "The GPU could not run " + attempt.primitive + ": it ran on the CPU", wordsOf(failure));
        return false;
    case DeviceFailure::Lost: break;
    }
    {
        const std::lock_guard lock(m_mutex);
        m_state.failure = attempt.text() + ": " + wordsOf(failure);
    }
    m_lost = true;
    m_residency.evictAll();
    return true; // the retry finds the device lost
}

/// Evicts all tensors and asks for smaller batches. False when that does not help.
bool ResidentEngine::makeRoom() const {
    m_residency.evictAll();
    try {
        if (!m_device->shrink()) return false;
    } catch (const std::exception&) { // a lost device fails again in the next call
        return false;
    }
    const std::lock_guard lock(m_mutex);
    m_state.notice = "GPU memory is full: smaller batches";
    return true;
}

/// Counts a call that the CPU engine is to repeat; throws in strict mode. Without `words` the last failure is the
/// cause.
void ResidentEngine::fallBack(const Attempt& attempt, const std::string& notice, const std::string& words) const {
    const std::lock_guard lock(m_mutex);
    if (!words.empty()) m_state.failure = attempt.text() + ": " + words;
    if (m_strict)
        throw Error({attempt.text() +
                         " did not run on the device: " + (words.empty() ? "it was lost in " + m_state.failure : words),
                     "engine " + name() + ", strict", "An engine that is not strict repeats such a call on the CPU"});
    m_state.notice = notice;
    ++m_state.fallbacks[attempt.primitive];
}

EngineState ResidentEngine::state() const {
    const EngineState device = m_device->state(), cpu = m_cpu->state();
    const std::lock_guard lock(m_mutex);
    EngineState state = m_state;
    state.device = device.device;
    state.residentBytes = m_residency.residentBytes();
    state.memoryBytes = m_memoryBytes;
    state.threads = cpu.threads;
    return state;
}

/// Shared with the blocks, so that a block whose last owner goes away removes itself from the LRU list.
struct Residency::State {
    std::mutex mutex;
    std::condition_variable uploadEnded;
    std::list<Block*> resident;        ///< most recently used first
    std::atomic<std::size_t> bytes{0}; ///< written under the mutex
};

/// The copy on the device is guarded by the state's mutex.
struct Residency::Block {
    Block(std::shared_ptr<State> owner, Tensor numbers) : state(std::move(owner)), cpu(std::move(numbers)) {}
    ~Block() {
        const std::lock_guard lock(state->mutex);
        evict();
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    std::size_t bytes() const { return static_cast<std::size_t>(cpu.shape().count()) * sizeof(float); }
    void admit(const Tensor& uploaded, std::size_t size) {
        device = uploaded;
        deviceBytes = size;
        place = state->resident.insert(state->resident.begin(), this);
        state->bytes += size;
    }
    void evict() {
        if (device.empty()) return;
        state->resident.erase(place);
        state->bytes -= deviceBytes;
        device = Tensor();
    }

    std::shared_ptr<State> state;
    const Tensor cpu; ///< the CPU engine's
    Tensor device;    ///< the device engine's; empty: not resident
    std::size_t deviceBytes = 0;
    bool isUploading = false;
    std::list<Block*>::iterator place; ///< valid while `device` is not empty
};

/// Rows [begin, end) of axis 1 of a block, or the rows that are listed.
struct Residency::Storage : TensorStorage {
    std::shared_ptr<Block> block;
    std::int64_t begin = 0, end = 0;
    std::shared_ptr<const RowPositions> listed; ///< null: rows [begin, end)

    Tensor of(const Engine& engine, const Tensor& whole) const {
        if (listed) return engine.gatherRows(whole, *listed);
        const bool all = whole.shape().rank() < 3 || (begin == 0 && end == whole.size(1));
        return all ? whole : engine.rows(whole, begin, end);
    }
};

Residency::Residency(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu,
                     std::size_t memoryBytes)
    : m_device(std::move(device)), m_cpu(std::move(cpu)), m_memoryBytes(memoryBytes),
      m_state(std::make_shared<State>()) {}

Residency::~Residency() = default;

const Residency::Storage& Residency::storageOf(const Tensor& tensor) {
    assert(!tensor.empty());
    return static_cast<const Storage&>(*tensor.storage());
}

Tensor Residency::upload(HostTensor numbers) {
    const Shape shape = numbers.shape;
    auto storage = std::make_shared<Storage>();
    storage->block = std::make_shared<Block>(m_state, m_cpu->upload(std::move(numbers)));
    storage->end = shape.rank() > 1 ? shape[1] : 0;
    return {shape, std::move(storage)};
}

Tensor Residency::rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
    assert(0 <= begin && begin <= end && end <= tensor.size(1));
    auto part = std::make_shared<Storage>(storageOf(tensor));
    if (part->listed) {
        RowPositions lists = *part->listed;
        for (auto& list : lists) list = {list.begin() + begin, list.begin() + end};
        part->listed = std::make_shared<const RowPositions>(std::move(lists));
    } else {
        part->end = part->begin + end;
        part->begin += begin;
    }
    return {{tensor.size(0), end - begin, tensor.size(2)}, std::move(part)};
}

Tensor Residency::gatherRows(const Tensor& tensor, const RowPositions& rows) {
    const Storage& from = storageOf(tensor);
    auto part = std::make_shared<Storage>(from);
    RowPositions lists = rows;
    for (std::size_t h = 0; h < lists.size(); ++h)
        for (TokenIndex& row : lists[h])
            row = from.listed ? (*from.listed)[h][static_cast<std::size_t>(row)]
                              : row + static_cast<TokenIndex>(from.begin);
    const std::int64_t count = lists.empty() ? 0 : std::ssize(lists.front());
    part->listed = std::make_shared<const RowPositions>(std::move(lists));
    return {{tensor.size(0), count, tensor.size(2)}, std::move(part)};
}

Tensor Residency::onCpu(const Tensor& tensor) const {
    return tensor.empty() ? Tensor() : storageOf(tensor).of(*m_cpu, storageOf(tensor).block->cpu);
}

Tensor Residency::onDevice(const Tensor& tensor) {
    if (tensor.empty()) return {};
    const Storage& storage = storageOf(tensor);
    return storage.of(*m_device, wholeOnDevice(*storage.block));
}

/// Uploads without holding the mutex, so that other tensors can be used and uploaded meanwhile.
Tensor Residency::wholeOnDevice(Block& block) {
    std::unique_lock lock(m_state->mutex);
    m_state->uploadEnded.wait(lock, [&] { return !block.isUploading; });
    if (block.device.empty()) {
        makeRoom(block.bytes());
        block.isUploading = true;
        lock.unlock();
        Tensor uploaded;
        std::exception_ptr failure;
        try {
            uploaded = m_device->upload(m_cpu->download(block.cpu));
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        block.isUploading = false;
        m_state->uploadEnded.notify_all();
        if (failure) std::rethrow_exception(failure);
        block.admit(uploaded, m_device->bytesOf(uploaded));
    }
    m_state->resident.splice(m_state->resident.begin(), m_state->resident, block.place);
    return block.device;
}

void Residency::makeRoom(std::size_t bytes) {
    while (m_memoryBytes > 0 && !m_state->resident.empty() && m_state->bytes + bytes > m_memoryBytes)
        m_state->resident.back()->evict();
}

void Residency::evictAll() {
    const std::lock_guard lock(m_state->mutex);
    while (!m_state->resident.empty()) m_state->resident.back()->evict();
}

std::size_t Residency::residentBytes() const { return m_state->bytes; }

} // namespace kvscope
