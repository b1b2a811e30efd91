#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace kvscope {

/// The time for workbench and window; tests pass a clock that they step.
class Clock {
public:
    using TimePoint = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::steady_clock::duration;

    /// A single-shot timer that expires on the thread that started it, never within `start`. Starting it again restarts
    /// it. Stopping or destroying it prevents the expiry.
    class Timer {
    public:
        virtual ~Timer() = default;
        virtual void start(std::chrono::milliseconds after) = 0;
        virtual void stop() = 0;
        virtual bool isActive() const = 0; ///< started and not yet expired or stopped
    };

    virtual ~Clock() = default;
    virtual TimePoint now() const = 0;
    virtual std::unique_ptr<Timer> makeTimer(std::function<void()> expired) = 0;
    /// Runs the task on this thread when the frames that are due have been drawn; where none are, at once.
    virtual void afterFrame(std::function<void()> task) { task(); }
};

/// The system clock; its timers need an event loop.
Clock& machineClock();

} // namespace kvscope
