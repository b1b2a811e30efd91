#pragma once

#include "app/workbench/clock.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace kvscope::testing {

/// A clock that stands still until a test moves it. Timers expire in the order of their times, on the way there.
class FakeClock final : public Clock {
public:
    TimePoint now() const override { return m_now; }
    std::unique_ptr<Timer> makeTimer(std::function<void()> expired) override {
        return std::make_unique<FakeTimer>(*this, std::move(expired));
    }

    void advance(Duration by) {
        const TimePoint end = m_now + by;
        while (const FakeTimer* next = nextTimer())
            if (*next->due > end || !expireNext()) break;
        m_now = end;
    }
    /// Moves to the next timer that waits; false: none does.
    bool expireNext() {
        FakeTimer* next = nextTimer();
        if (!next) return false;
        m_now = *std::exchange(next->due, std::nullopt);
        const auto expired = next->expired; // the timer may go meanwhile
        expired();
        return true;
    }

private:
    struct FakeTimer final : Timer {
        FakeTimer(FakeClock& owner, std::function<void()> run) : clock(owner), expired(std::move(run)) {
            clock.m_timers.push_back(this);
        }
        ~FakeTimer() override { std::erase(clock.m_timers, this); }
        void start(std::chrono::milliseconds after) override { due = clock.m_now + after; }
        void stop() override { due.reset(); }
        bool isActive() const override { return due.has_value(); }

        FakeClock& clock;
        std::function<void()> expired;
        std::optional<TimePoint> due;
    };

    FakeTimer* nextTimer() const {
        const auto earlier = [](const FakeTimer* a, const FakeTimer* b) {
            return a->due && (!b->due || *a->due < *b->due);
        };
        const auto next = std::min_element(m_timers.begin(), m_timers.end(), earlier);
        return next != m_timers.end() && (*next)->due ? *next : nullptr;
    }

    TimePoint m_now{};
    std::vector<FakeTimer*> m_timers;
};

} // namespace kvscope::testing
