#pragma once

#include "core/base/checkpoint.h"
#include "gpu/primitives/device_memory.h"

#include <algorithm>

namespace kvscope::gpu {

/// Enqueues the launches of one call and waits for them. Nothing is waited for in between: some blocks of threads
/// look at the stop word when they begin, the others at what these have seen, and leave once it is set. Pieces bound
/// the time of one launch, because display drivers end a kernel that runs for seconds; results must not depend on them.
/// Work of a few milliseconds has no stop word: copying its results out waits for it.
class LongWork {
public:
    static constexpr double kPieceOperations = 1e11; ///< less than a second where double is slow

    /// `operations` of all calls of each() together.
    LongWork(const DeviceMemory& memory, Checkpoint checkpoint, double operations);
    /// Stops and waits for what was not waited for.
    ~LongWork();
    LongWork(const LongWork&) = delete;
    LongWork& operator=(const LongWork&) = delete;

    /// Calls launch(begin, end, stop word) for pieces of [0, count); all but the last are multiples of `step` items.
    template <class Launch>
    void each(std::int64_t count, double operationsEach, const Launch& launch, std::int64_t step = 1) {
        const double most = std::min(kPieceOperations / std::max(1.0, operationsEach * static_cast<double>(step)), 1e9);
        const std::int64_t piece = step * std::max<std::int64_t>(1, static_cast<std::int64_t>(most));
        for (std::int64_t begin = 0; begin < count; begin += piece) {
            const std::int64_t end = std::min(count, begin + piece);
            m_checkpoint.stopPoint();
            launch(begin, end, StopWord{m_words.get(), m_seen.get(), static_cast<std::int32_t>(m_begun.size()) - 1});
            m_begun.push_back(m_begun.back() + operationsEach * static_cast<double>(end - begin));
        }
    }

    /// Reports progress until all is done. Throws Cancelled after a stop.
    void wait();

private:
    static constexpr double kShortOperations = 1e10;

    const DeviceMemory& m_memory;
    Checkpoint m_checkpoint; ///< a copy: callers pass temporaries
    double m_operations;
    std::shared_ptr<std::int32_t> m_words; ///< null: short work
    std::shared_ptr<unsigned> m_seen;
    std::vector<double> m_begun{0}; ///< [k]: operations before piece k
    bool m_isDone = false;
};

} // namespace kvscope::gpu
