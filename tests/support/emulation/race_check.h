#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::gpu::emulation {

/// Finds accesses of two threads to the same memory, one of them a write, that no barrier orders: whatever the order of
/// turns was, another one may give another result. Memory remembers its last write and its last readers with their
/// time, a counter of barriers. The kernels are compiled with calls to this check (-fsanitize=thread without its
/// library); other builds check nothing.
class RaceCheck {
public:
    void beginLaunch() { m_launchBegan = ++m_now; }
    /// `shared` and `stacks` belong to one block or thread: what earlier blocks did to them is over.
    void beginBlock(const void* shared, std::size_t sharedBytes, unsigned threads);
    void blockBarrier() { m_blockBarrier = ++m_now; }
    void warpBarrier(unsigned warp) { m_warpBarriers[warp] = ++m_now; }

    struct Access {
        unsigned thread;
        bool isWrite, isAtomic;
    };
    void note(const void* address, std::size_t bytes, const Access& access);

    /// The first race of the launch; empty: none.
    std::string takeRace();

private:
    struct Moment {
        std::uint32_t time = 0;
        std::uint16_t thread = 0;
        bool isAtomic = false;
    };
    struct Cell {
        Moment write, read, otherRead; ///< otherRead: the last one by another thread than `read`
    };

    Cell& cellOf(std::uintptr_t address);
    bool isOrdered(const Moment& before, unsigned thread, bool isShared) const;

    std::uint32_t m_now = 0, m_launchBegan = 0, m_blockBegan = 0, m_blockBarrier = 0;
    std::vector<std::uint32_t> m_warpBarriers;
    std::uintptr_t m_sharedBegin = 0, m_sharedEnd = 0;
    std::string m_race;
};

} // namespace kvscope::gpu::emulation
