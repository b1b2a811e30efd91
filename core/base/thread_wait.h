#pragma once

#include <functional>

namespace kvscope {

/// While it lives, its thread waits for what another one or another process makes: a worker pool lets another task
/// compute in its place. Does nothing on a thread of no pool.
class ThreadWait {
public:
    enum class After {
        AtOnce, ///< the thread goes on, beside what runs in its place
        InTurn  ///< it waits until one of the others has finished: for waits that end for many threads together. No
                ///< mutex may be held then
    };
    explicit ThreadWait(After after);
    ~ThreadWait();
    ThreadWait(const ThreadWait&) = delete;
    ThreadWait& operator=(const ThreadWait&) = delete;

    /// What a pool does when a thread begins to wait and when it goes on.
    struct Pool {
        std::function<void()> begin;
        std::function<void(After)> end;
    };
    static void setPool(Pool pool); ///< of the calling thread

private:
    After m_after;
};

} // namespace kvscope
