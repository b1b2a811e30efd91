// The host's side of the stop word: asks the device whether it is done, at first often, at last once per millisecond.
#include "gpu/primitives/long_work.h"

#include <chrono>
#include <thread>
#include <utility>

namespace kvscope::gpu {

LongWork::LongWork(const DeviceMemory& memory, Checkpoint checkpoint, double operations)
    : m_memory(memory), m_checkpoint(std::move(checkpoint)), m_operations(std::max(1.0, operations)) {
    m_checkpoint.at(0, m_operations);
    if (operations <= kShortOperations) return;
    m_words = std::static_pointer_cast<std::int32_t>(memory.allocateShared(2 * sizeof(std::int32_t)));
    std::fill_n(m_words.get(), 2, 0);
    m_seen = std::static_pointer_cast<unsigned>(memory.allocate(sizeof(unsigned)));
    memory.copyIn(m_seen.get(), m_words.get(), sizeof(unsigned));
}

LongWork::~LongWork() {
    if (m_isDone || !m_words) return;
    __atomic_store_n(m_words.get(), 1, __ATOMIC_RELAXED);
    try {
        m_memory.finish(); // the kernels still read the word and write to the call's memory
    } catch (...) {        // a lost device runs nothing any more
    }
}

void LongWork::wait() {
    std::chrono::microseconds pause(20);
    while (m_words && !m_memory.isIdle()) {
        const auto piece = static_cast<std::size_t>(__atomic_load_n(m_words.get() + 1, __ATOMIC_RELAXED));
        m_checkpoint.at(std::min(m_begun[piece], m_operations), m_operations);
        std::this_thread::sleep_for(pause);
        pause = std::min(2 * pause, std::chrono::microseconds(1000));
    }
    m_isDone = true;
    m_checkpoint.at(m_operations, m_operations);
}

} // namespace kvscope::gpu
