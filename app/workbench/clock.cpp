// The one place of the workbench that asks the machine for the time.
#include "app/workbench/clock.h"

#include <QCoreApplication>
#include <QEvent>
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

struct TaskEvent final : QEvent {
    explicit TaskEvent(std::function<void()> what) : QEvent(User), task(std::move(what)) {}
    std::function<void()> task;
};

struct TaskReceiver final : QObject {
    bool event(QEvent* event) override {
        auto* own = dynamic_cast<TaskEvent*>(event);
        if (own) own->task();
        return own || QObject::event(event);
    }
};

class MachineClock final : public Clock {
public:
    TimePoint now() const override { return std::chrono::steady_clock::now(); }
    std::unique_ptr<Timer> makeTimer(std::function<void()> expired) override {
        return std::make_unique<MachineTimer>(std::move(expired));
    }
    void afterFrame(std::function<void()> task) override {
        constexpr int kBehindFrames = Qt::LowEventPriority - 1; // frames are posted with the low priority
        QCoreApplication::postEvent(&m_receiver, new TaskEvent(std::move(task)), kBehindFrames);
    }

private:
    TaskReceiver m_receiver;
};

} // namespace

Clock& machineClock() {
    static MachineClock clock;
    return clock;
}

} // namespace kvscope
