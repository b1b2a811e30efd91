#pragma once

#include "core/base/checkpoint.h"
#include "gpu/primitives/device_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kvscope::gpu {

/// How many pieces of long work to enqueue at once: some tens of milliseconds of it, whatever the device.
class SliceLength {
public:
    explicit SliceLength(std::int64_t first) : m_pieces(std::max<std::int64_t>(1, first)) {}

    std::int64_t pieces() const { return m_pieces; }
    template <class Work> void timed(const Work& work) {
        using Clock = std::chrono::steady_clock;
        const auto start = Clock::now();
        work();
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        if (seconds < kShort)
            m_pieces *= 2;
        else if (seconds > kLong)
            m_pieces = std::max<std::int64_t>(1, m_pieces / 2);
    }

private:
    static constexpr double kShort = 0.02, kLong = 0.08; ///< seconds of a slice

    std::int64_t m_pieces;
};

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
    Slices(const DeviceMemory& memory, Checkpoint checkpoint, double total)
        : m_memory(memory), m_checkpoint(std::move(checkpoint)), m_total(std::max(1.0, total)) {
        m_checkpoint.at(0, m_total);
    }

    /// Calls work(begin, end) for pieces of [0, count), each piece worth `units`; starts with `first` of them.
    template <class Work> void each(std::int64_t count, double units, std::int64_t first, const Work& work) {
        SliceLength length(first);
        for (std::int64_t begin = 0; begin < count;) {
            const std::int64_t end = std::min(count, begin + length.pieces());
            length.timed([&] {
                work(begin, end);
                m_memory.finish();
            });
            m_done += units * static_cast<double>(end - begin);
            m_checkpoint.at(std::min(m_done, m_total), m_total);
            begin = end;
        }
    }

    /// Inside a slice, between two launches of a piece that takes long by itself: a stop acts here too. `units` of the
    /// slice are done.
    void stopPoint(double units) const {
        m_memory.finish();
        m_checkpoint.at(std::min(m_done + units, m_total), m_total);
    }

    /// Whether a piece of so many operations is cut further where it can be.
    static bool isLong(double operations) { return operations > kFirstOperations; }

private:
    static constexpr double kFirstOperations = 1e10;

    const DeviceMemory& m_memory;
    Checkpoint m_checkpoint; ///< a copy: callers hand over parts of theirs
    double m_total, m_done = 0;
};

} // namespace kvscope::gpu
