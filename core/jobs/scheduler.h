#pragma once

#include "core/base/checkpoint.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace kvscope {

/// Runs the newest job per slot. Executor and delivery are arguments, so tests step through races without sleeping.
///
/// A slot runs one job at a time and holds at most one waiting job. Every submit and cancel gives the slot a new
/// generation. Everything that a job of an older generation posts, reports or throws is dropped: the generation is
/// checked on the worker before `deliver`, and again on the owner's thread before the task runs. So after `cancel` or
/// `submit` has returned, nothing of an earlier job arrives, not even `finished`. Members may be called on the owner's
/// thread, also inside a delivered task.
class Scheduler {
public:
    using Task = std::function<void()>;
    using Executor = std::function<void(Task)>; ///< runs the task later, on a worker
    using Deliver = std::function<void(Task)>;  ///< runs the task on the owner's (GUI) thread
    using Generation = std::uint64_t;

    struct Job {
        /// Runs on a worker. Results go through `post`: they are dropped when the slot has a newer job.
        std::function<void(const Checkpoint&, const std::function<void(Task)>& post)> work;
        /// On the owner's thread; if reports come faster than they are read, only the newest is delivered.
        std::function<void(double fraction)> progress;
        std::function<void(std::exception_ptr)> failed; ///< on the owner's thread; never for Cancelled
        std::function<void()> finished;                 ///< on the owner's thread, last, also after failure
    };

    Scheduler(Executor executor, Deliver deliver);
    /// Asks all running jobs to stop without waiting for them; nothing is delivered afterwards.
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Replaces the slot's waiting job and asks its running job to stop.
    Generation submit(const std::string& slot, Job job);
    void cancel(const std::string& slot);
    void cancelAll();
    /// Whether a job of the slot's current generation waits, runs, or has deliveries pending before `finished`.
    bool busy(const std::string& slot) const;

private:
    struct State;
    std::shared_ptr<State> m_state;
};

/// An executor on `threads` low-priority worker threads (the GUI thread needs the same cores), and one more for each
/// that waits (ThreadWait). Threads of an engine inherit the priority. The destructor drops tasks that have not started
/// and waits for running ones, so stop those first (destroy or cancel the scheduler).
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
