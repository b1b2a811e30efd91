#pragma once

#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>

#include <atomic>
#include <cstdint>

namespace kvscope {

/// Calls work(piece) for 0 <= piece < pieces on TBB's threads; a piece writes only what is its own. Exceptions reach
/// the caller, after the other pieces have stopped.
template <class Work> void forEachPiece(std::int64_t pieces, const Work& work) {
#ifdef __SANITIZE_THREAD__
    // TBB's library is not instrumented, so the thread sanitizer does not see its synchronisation: this counter repeats
    // it. One counter for all calls, because a piece cannot read its own before the synchronisation.
    static std::atomic<std::int64_t> handedOver{0};
    const auto ordered = [&](std::int64_t piece) {
        handedOver.load(std::memory_order_acquire);
        work(piece);
        handedOver.fetch_add(1, std::memory_order_release);
    };
    handedOver.fetch_add(1, std::memory_order_release);
    tbb::parallel_for(std::int64_t{0}, pieces, ordered, tbb::simple_partitioner{});
    handedOver.load(std::memory_order_acquire);
#else
    tbb::parallel_for(std::int64_t{0}, pieces, work, tbb::simple_partitioner{});
#endif
}

} // namespace kvscope
