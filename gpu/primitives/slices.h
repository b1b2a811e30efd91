#pragma once

#include "core/base/checkpoint.h"
#include "gpu/primitives/device_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kvscope::gpu {

/// Chooses how many pieces of long work to enqueue at once: a slice of some tens of milliseconds on any device.
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

/// Cuts long work into slices of some tens of milliseconds with a checkpoint between them, so that a stop acts soon.
/// Slicing never changes a result: the clock only decides how much is enqueued at once.
class Slices {
public:
    /// Pieces of the first slice, given the operations of a piece: some ten milliseconds even on a card with little
    /// double throughput. Measured times decide about the later slices.
    static std::int64_t firstOf(double operationsEach) {
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(kFirstOperations / operationsEach, 1e6)));
    }

    /// `total`: units of work of all calls of each() together, for progress.
    Slices(const DeviceMemory& memory, Checkpoint checkpoint, double total)
        : m_memory(memory), m_checkpoint(std::move(checkpoint)), m_total(std::max(1.0, total)) {
        m_checkpoint.at(0, m_total);
    }

    /// Calls work(begin, end) for pieces of [0, count), each worth `units`; the first slice has `first` pieces.
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

    /// A stop point between two launches inside one long piece. `units` of the slice are done.
    void stopPoint(double units) const {
        m_memory.finish();
        m_checkpoint.at(std::min(m_done + units, m_total), m_total);
    }

    /// Whether a piece of so many operations should be cut further where it can be.
    static bool isLong(double operations) { return operations > kFirstOperations; }

private:
    static constexpr double kFirstOperations = 1e10;

    const DeviceMemory& m_memory;
    Checkpoint m_checkpoint; ///< a copy: callers pass temporaries
    double m_total, m_done = 0;
};

} // namespace kvscope::gpu
