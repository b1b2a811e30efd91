#pragma once

#include "app/workbench/open_session.h"
#include "core/jobs/scheduler.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace kvscope {

/// What has become of something that the session asks for. Until it is Ready or Failed, what was shown before stays.
enum class JobState {
    Idle,      ///< nothing is asked for, or the job was cancelled
    Waiting,   ///< asked for; the job begins when the hand rests
    Computing, ///< the job runs or waits for a worker; parts of the value may be there
    Ready,
    Failed
};

/// A slot of the scheduler together with what is asked for in it and what has come of that. Stays where it is while a
/// job is under way. For the owner's thread.
template <class Value> struct JobSlot {
    using Pointer = std::shared_ptr<const Value>;
    using Make = std::function<Pointer(const Checkpoint&, const std::function<void(Pointer)>& part)>;

    JobState state = JobState::Idle;
    std::string key;     ///< of what is asked for; empty: nothing
    Pointer value;       ///< of an older key until the first part of the new one is there
    std::string error;   ///< of the last job that failed, until a value is there
    double progress = 0; ///< 0..1 while Computing

    bool isAsked() const { return state == JobState::Waiting || state == JobState::Computing; }

    /// Runs `make` on a worker. `changed` follows each part, the value and an error; `progressed` each report.
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
            fail(messageOf(failure));
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
