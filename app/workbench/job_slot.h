#pragma once

#include "app/workbench/open_session.h"
#include "core/jobs/scheduler.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace kvscope {

/// State of a requested value. Until it is Ready or Failed, the previous value stays visible.
enum class JobState {
    Idle,      ///< nothing is requested, or the job was cancelled
    Waiting,   ///< requested; the job starts when the user stops dragging
    Computing, ///< the job runs or waits for a worker; partial values may exist
    Ready,
    Failed
};

/// A scheduler slot with its request and result. Must not move while a job runs. To be used on the owner's thread.
template <class Value> struct JobSlot {
    using Pointer = std::shared_ptr<const Value>;
    using Make = std::function<Pointer(const Checkpoint&, const std::function<void(Pointer)>& part)>;

    JobState state = JobState::Idle;
    std::string key;     ///< of the request; empty: none
    Pointer value;       ///< of an older key until the first partial value of the new one arrives
    std::string error;   ///< of the last failed job, until another is delivered
    double progress = 0; ///< 0..1 while Computing

    bool isAsked() const { return state == JobState::Waiting || state == JobState::Computing; }

    /// Runs `make` on a worker. Calls `changed` after each partial value, the value and an error; `progressed` after
    /// each report.
    void submit(Scheduler& scheduler, const std::string& name, Make make, std::function<void()> changed,
                std::function<void()> progressed) {
        Scheduler::Job job;
        job.work = [this, make = std::move(make), changed](const Checkpoint& checkpoint, const auto& post) {
            const auto deliverLater = [&](Pointer made, JobState then) {
                post([this, changed, made = std::move(made), then] {
                    deliver(made, then);
                    changed();
                });
            };
            deliverLater(make(checkpoint, [&](Pointer part) { deliverLater(std::move(part), JobState::Computing); }),
                         JobState::Ready);
        };
        job.progress = [this, progressed = std::move(progressed)](double fraction) {
            progress = fraction;
            progressed();
        };
        job.failed = [this, changed](std::exception_ptr failure) {
            const Pointer older = isLostWorker(failure) ? value : nullptr; // the older value stays
            fail(messageOf(failure));
            if (older) state = JobState::Idle, value = older;
            changed();
        };
        state = JobState::Computing;
        progress = 0;
        scheduler.submit(name, std::move(job));
    }
    void deliver(Pointer made, JobState then) {
        state = then;
        value = std::move(made);
        error.clear();
    }
    void fail(const std::string& message) {
        state = JobState::Failed;
        value = nullptr;
        error = message;
    }
    void clear() {
        fail({});
        state = JobState::Idle;
        key.clear();
    }
};

} // namespace kvscope
