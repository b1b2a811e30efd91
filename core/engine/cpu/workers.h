#pragma once

#include "core/base/checkpoint.h"
#include "core/base/parallel.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace kvscope::cpu {

/// The engine's threads. Work is cut into numbered pieces by its shape alone, and a piece writes only its own numbers,
/// so results do not depend on the number of threads.
class Workers {
public:
    /// 0: all cores.
    explicit Workers(int threads)
        : m_arena(std::make_unique<tbb::task_arena>(threads > 0 ? threads : int{tbb::task_arena::automatic})) {
        // TBB starts no more workers than cores unless asked to; tests ask for more.
        if (threads > m_arena->max_concurrency() || threads > tbb::this_task_arena::max_concurrency())
            m_more = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                           static_cast<std::size_t>(threads));
    }

    /// Calls work(piece) for 0 <= piece < pieces. Exceptions reach the caller, after the other pieces have stopped.
    template <class Work> void each(std::int64_t pieces, const Work& work) const {
        m_arena->execute([&] { forEachPiece(pieces, work); });
    }

    int threads() const { return m_arena->max_concurrency(); }

private:
    std::unique_ptr<tbb::global_control> m_more;
    std::unique_ptr<tbb::task_arena> m_arena;
};

/// Progress summed over all threads, in units of `total`; also the stop point.
class Progress {
public:
    Progress(const Checkpoint& checkpoint, double total) : m_checkpoint(checkpoint), m_total(total) {}

    void advance(double amount) {
        const double before = m_done.fetch_add(amount);
        m_checkpoint.at(std::min(before + amount, m_total),
                        m_total); // the last panel counts as a whole one
    }

    const Checkpoint& checkpoint() const { return m_checkpoint; }

private:
    const Checkpoint& m_checkpoint;
    std::atomic<double> m_done{0};
    double m_total;
};

} // namespace kvscope::cpu
