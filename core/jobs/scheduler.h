#pragma once

#include "core/base/checkpoint.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace kvscope {

/// Latest wins: a slot per picture, a generation checked twice. The executor and the delivery are
/// arguments, so tests step through races without sleeping.
///
/// A slot runs one job at a time and holds at most one waiting job. Every submit and cancel gives the slot a new
/// generation. What a job of an older generation posts, reports or throws is dropped: once on the worker before it is
/// handed to `deliver`, and once more on the owner's thread before it runs. So after `cancel` or `submit` return
/// nothing of the earlier job arrives any more, not even `finished`. Members may be called from the owner's thread,
/// also from inside a delivered task.
class Scheduler {
public:
    using Task = std::function<void()>;
    using Executor = std::function<void(Task)>; ///< runs the task later, on a worker
    using Deliver = std::function<void(Task)>;  ///< runs the task on the owner's (GUI) thread
    using Generation = std::uint64_t;

    struct Job {
        /// Runs on a worker. Post results with `post`: they are dropped when the slot has moved on.
        std::function<void(const Checkpoint&, const std::function<void(Task)>& post)> work;
        /// On the owner's thread; reports that come faster than it takes them are merged into the newest.
        std::function<void(double fraction)> progress;
        std::function<void(std::exception_ptr)> failed; ///< on the owner's thread; never for Cancelled
        std::function<void()> finished;                 ///< on the owner's thread, last, also after failure
    };

    Scheduler(Executor executor, Deliver deliver);
    /// Asks all running jobs to stop and does not wait for them; nothing is delivered any more.
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Replaces what waits in the slot and asks the running job of the slot to stop.
    Generation submit(const std::string& slot, Job job);
    void cancel(const std::string& slot);
    void cancelAll();
    /// A job of the slot's present generation waits, runs, or has deliveries under way before its `finished`.
    bool busy(const std::string& slot) const;

private:
    struct State;
    std::shared_ptr<State> m_state;
};

/// An executor on `threads` low-priority worker threads (the GUI thread needs the same cores). Threads that an engine
/// starts from them inherit the priority. On destruction tasks that have not begun are dropped and running ones are
/// waited for, so stop them first (destroy or cancel the scheduler).
class WorkerPool {
public:
    explicit WorkerPool(int threads);
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    void run(Scheduler::Task task);

private:
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace kvscope
