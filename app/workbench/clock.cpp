// The one place of the workbench that asks the machine for the time.
#include "app/workbench/clock.h"

#include <QTimer>

#include <utility>

namespace kvscope {

namespace {

class MachineTimer final : public Clock::Timer {
public:
    explicit MachineTimer(std::function<void()> expired) {
        m_timer.setSingleShot(true);
        m_timer.setTimerType(Qt::PreciseTimer);
        QObject::connect(&m_timer, &QTimer::timeout, &m_timer, std::move(expired));
    }
    void start(std::chrono::milliseconds after) override { m_timer.start(after); }
    void stop() override { m_timer.stop(); }
    bool isActive() const override { return m_timer.isActive(); }

private:
    QTimer m_timer;
};

class MachineClock final : public Clock {
public:
    TimePoint now() const override { return std::chrono::steady_clock::now(); }
    std::unique_ptr<Timer> makeTimer(std::function<void()> expired) override {
        return std::make_unique<MachineTimer>(std::move(expired));
    }
};

} // namespace

Clock& machineClock() {
    static MachineClock clock;
    return clock;
}

} // namespace kvscope
