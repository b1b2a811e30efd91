#pragma once

#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>

#include <atomic>
#include <cstdint>

namespace kvscope {

#ifdef __SANITIZE_THREAD__
/// TBB's library is not instrumented, so the thread sanitizer does not see its synchronisation: this counter repeats it
/// at both ends of a scope, also when an exception leaves the scope. All calls share one counter: the sanitizer would
/// report a race when a piece reads a counter of its own call, which it must do before it has synchronised.
class HandOver {
public:
    HandOver() { exchange(); }
    ~HandOver() { exchange(); }
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;

private:
    static void exchange() { s_count.fetch_add(1, std::memory_order_acq_rel); }
    static inline std::atomic<std::int64_t> s_count{0};
};
#endif

/// Calls work(piece) for 0 <= piece < pieces on TBB's threads; no two pieces may write the same data. Exceptions reach
/// the caller, after the other pieces have stopped.
template <class Work> void forEachPiece(std::int64_t pieces, const Work& work) {
#ifdef __SANITIZE_THREAD__
    const auto ordered = [&](std::int64_t piece) {
        const HandOver own;
        work(piece);
    };
    const HandOver call;
    tbb::parallel_for(std::int64_t{0}, pieces, ordered, tbb::simple_partitioner{});
#else
    tbb::parallel_for(std::int64_t{0}, pieces, work, tbb::simple_partitioner{});
#endif
}

} // namespace kvscope
