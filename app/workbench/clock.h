#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace kvscope {

/// The time as the workbench and its window see it. Tests give them a clock that they step.
class Clock {
public:
    using TimePoint = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::steady_clock::duration;

    /// Expires once after each `start`, on the thread that started it and never within `start`. Starting it again
    /// begins its time anew. A timer that is stopped or destroyed does not expire.
    class Timer {
    public:
        virtual ~Timer() = default;
        virtual void start(std::chrono::milliseconds after) = 0;
        virtual void stop() = 0;
        virtual bool isActive() const = 0; ///< started, and neither stopped nor expired since
    };

    virtual ~Clock() = default;
    virtual TimePoint now() const = 0;
    virtual std::unique_ptr<Timer> makeTimer(std::function<void()> expired) = 0;
};

/// The machine's own clock; its timers need an event loop.
Clock& machineClock();

} // namespace kvscope
