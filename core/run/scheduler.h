#pragma once

#include "core/base/checkpoint.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace kvscope {

/// Latest wins: a slot per picture, a generation checked twice (architecture.md 1.7). The executor and the delivery are
/// arguments, so tests step through races without sleeping.
class Scheduler {
public:
    using Task = std::function<void()>;
    using Executor = std::function<void(Task)>; ///< runs the task later, on a worker
    using Deliver = std::function<void(Task)>;  ///< runs the task on the owner's (GUI) thread
    using Generation = std::uint64_t;

    struct Job {
        /// Runs on a worker. Post results with `post`: they are dropped when the slot has moved on.
        std::function<void(const Checkpoint&, const std::function<void(Task)>& post)> work;
        std::function<void(double fraction)> progress;     ///< on the owner's thread
        std::function<void(std::exception_ptr)> failed;    ///< on the owner's thread; never for Cancelled
        std::function<void()> finished;                    ///< on the owner's thread, also after failure
    };

    Scheduler(Executor executor, Deliver deliver);
    ~Scheduler();

    /// Replaces what waits in the slot and asks the running job of the slot to stop.
    Generation submit(const std::string& slot, Job job);
    void cancel(const std::string& slot);
    void cancelAll();
    bool busy(const std::string& slot) const;

private:
    struct State;
    std::shared_ptr<State> m_state;
};

/// An executor on `threads` low-priority worker threads (the GUI thread needs the same cores). Joined on destruction.
class WorkerPool {
public:
    explicit WorkerPool(int threads);
    ~WorkerPool();
    void run(Scheduler::Task task);

private:
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace kvscope
