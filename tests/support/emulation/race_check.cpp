// Shadow cells in pages that are made when first touched. An access of four bytes or more notes one cell per word, a
// smaller one that of its first byte.
#include "tests/support/emulation/race_check.h"

#include "tests/support/emulation/emulated_device.h"

#include <memory>
#include <unordered_map>
#include <utility>

namespace kvscope::gpu::emulation {

void RaceCheck::beginBlock(const void* shared, std::size_t sharedBytes, unsigned threads) {
    m_blockBegan = m_blockBarrier = ++m_now;
    m_warpBarriers.assign(threads / 32 + 1, m_now);
    m_sharedBegin = reinterpret_cast<std::uintptr_t>(shared);
    m_sharedEnd = m_sharedBegin + sharedBytes;
}

RaceCheck::Cell& RaceCheck::cellOf(std::uintptr_t address) {
    constexpr std::uintptr_t kPage = 4096;
    static std::unordered_map<std::uintptr_t, std::unique_ptr<Cell[]>> pages;
    static std::pair<std::uintptr_t, Cell*> last{~std::uintptr_t{0}, nullptr};
    if (last.first != address / kPage) {
        auto& page = pages[address / kPage];
        if (!page) page = std::make_unique<Cell[]>(kPage);
        last = {address / kPage, page.get()};
    }
    return last.second[address % kPage];
}

bool RaceCheck::isOrdered(const Moment& before, unsigned thread, bool isShared) const {
    if (before.time < m_launchBegan) return true;
    if (before.time < m_blockBegan) return isShared; // another block of the launch
    if (before.time < m_blockBarrier || before.thread == thread) return true;
    return before.thread / 32 == thread / 32 && before.time < m_warpBarriers[thread / 32];
}

void RaceCheck::note(const void* address, std::size_t bytes, const Access& access) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const bool isShared = m_sharedBegin <= begin && begin < m_sharedEnd;
    const Moment now{m_now, static_cast<std::uint16_t>(access.thread), access.isAtomic};
    const auto collides = [&](const Moment& before) {
        return !(before.isAtomic && access.isAtomic) && !isOrdered(before, access.thread, isShared);
    };
    for (std::uintptr_t at = bytes < 4 ? begin : begin & ~std::uintptr_t{3}; at < begin + bytes; at += 4) {
        Cell& cell = cellOf(at);
        const Moment* other = collides(cell.write)                         ? &cell.write
                              : access.isWrite && collides(cell.read)      ? &cell.read
                              : access.isWrite && collides(cell.otherRead) ? &cell.otherRead
                                                                           : nullptr;
        if (other && m_race.empty())
            m_race = std::string(access.isWrite ? "write" : "read") + " by thread " + std::to_string(access.thread) +
                     " races with a" + (other == &cell.write ? " write" : " read") + " by thread " +
                     std::to_string(other->thread) + (other->time < m_blockBegan ? " of an earlier block" : "") +
                     (isShared ? ", shared memory byte " + std::to_string(begin - m_sharedBegin) : ", global memory");
        if (access.isWrite) {
            cell.write = now;
        } else {
            if (cell.read.thread != now.thread) cell.otherRead = cell.read;
            cell.read = now;
        }
    }
}

std::string RaceCheck::takeRace() { return std::exchange(m_race, {}); }

} // namespace kvscope::gpu::emulation

// What the compiler calls at every access of instrumented code.
extern "C" {
using kvscope::gpu::emulation::noteAccess;
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
#define KVSCOPE_ACCESS(bytes)                                                                                          \
    void __tsan_read##bytes(void* at) { noteAccess(at, bytes, false); }                                                \
    void __tsan_write##bytes(void* at) { noteAccess(at, bytes, true); }                                                \
    void __tsan_unaligned_read##bytes(void* at) { noteAccess(at, bytes, false); }                                      \
    void __tsan_unaligned_write##bytes(void* at) { noteAccess(at, bytes, true); }
KVSCOPE_ACCESS(1)
KVSCOPE_ACCESS(2)
KVSCOPE_ACCESS(4)
KVSCOPE_ACCESS(8)
KVSCOPE_ACCESS(16)
#undef KVSCOPE_ACCESS
void __tsan_read_range(void* at, std::size_t bytes) { noteAccess(at, bytes, false); }
void __tsan_write_range(void* at, std::size_t bytes) { noteAccess(at, bytes, true); }
}
