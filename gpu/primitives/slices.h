#pragma once

#include "core/base/checkpoint.h"
#include "gpu/primitives/device_memory.h"

#include <algorithm>
#include <chrono>

namespace kvscope::gpu {

/// Cuts long work into slices that a stop need not wait for long: each takes some tens of milliseconds, whatever the
/// device. The cut never changes a result; the clock decides only how much is enqueued at once.
class Slices {
public:
    /// Pieces of the first slice, when each takes so many operations: some ten milliseconds also on a card with little
    /// double throughput. The clock decides about the others.
    static std::int64_t firstOf(double operationsEach) {
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(kFirstOperations / operationsEach, 1e6)));
    }

    /// `total`: units of work of all calls of each() together.
    Slices(const DeviceMemory& memory, const Checkpoint& checkpoint, double total)
        : m_memory(memory), m_checkpoint(checkpoint), m_total(std::max(1.0, total)) {
        m_checkpoint.at(0, m_total);
    }

    /// Calls work(begin, end) for pieces of [0, count), each piece worth `units`; starts with `first` of them.
    template <class Work> void each(std::int64_t count, double units, std::int64_t first, const Work& work) {
        using Clock = std::chrono::steady_clock;
        std::int64_t size = std::max<std::int64_t>(1, first);
        for (std::int64_t begin = 0; begin < count;) {
            const std::int64_t end = std::min(count, begin + size);
            const auto start = Clock::now();
            work(begin, end);
            m_memory.finish();
            const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
            m_done += units * static_cast<double>(end - begin);
            m_checkpoint.at(std::min(m_done, m_total), m_total);
            if (seconds < kShort)
                size *= 2;
            else if (seconds > kLong)
                size = std::max<std::int64_t>(1, size / 2);
            begin = end;
        }
    }

private:
    static constexpr double kFirstOperations = 1e10;
    static constexpr double kShort = 0.02, kLong = 0.08; ///< seconds of a slice

    const DeviceMemory& m_memory;
    const Checkpoint& m_checkpoint;
    double m_total, m_done = 0;
};

} // namespace kvscope::gpu
