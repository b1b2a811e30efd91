#pragma once

#include <functional>

namespace kvscope {

/// Marks a scope in which its thread waits for another thread or another process: a worker pool then lets another task
/// compute in its place. Does nothing on a thread that belongs to no pool.
class ThreadWait {
public:
    enum class After {
        AtOnce, ///< the thread goes on at once, beside the task that runs in its place
        InTurn  ///< the thread first waits until fewer tasks compute than the pool allows: for waits that end for many
                ///< threads at once. The thread must not hold a mutex then
    };
    explicit ThreadWait(After after);
    ~ThreadWait();
    ThreadWait(const ThreadWait&) = delete;
    ThreadWait& operator=(const ThreadWait&) = delete;

    /// What a pool does when one of its threads begins to wait and when it goes on.
    struct Pool {
        std::function<void()> begin;
        std::function<void(After)> end;
    };
    static void setPool(Pool pool); ///< for the calling thread

private:
    After m_after;
};

} // namespace kvscope
