#pragma once

#include "app/workbench/workbench.h"
#include "core/engine/engine.h"
#include "tests/support/fake_clock.h"

#include <QAbstractEventDispatcher>
#include <QApplication>
#include <QDeadlineTimer>
#include <QPropertyAnimation>
#include <QWindow>

#include <algorithm>
#include <atomic>
#include <memory>

namespace kvscope::testing {

/// A workbench for tests of windows: its jobs run on workers, its time passes only in `settle`.
struct SteppedWorkbench {
    FakeClock clock;
    WorkerPool workers{2};
    std::shared_ptr<std::atomic<int>> pending = std::make_shared<std::atomic<int>>(0);
    Workbench bench;

    /// `machine`: instead of the clock that stands still.
    explicit SteppedWorkbench(int engineThreads, Clock* machine = nullptr)
        : bench(
              std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(makeCpuEngine(engineThreads))),
              [this](Scheduler::Task task) { run(std::move(task)); },
              [](Scheduler::Task task) { QMetaObject::invokeMethod(qApp, std::move(task), Qt::QueuedConnection); },
              machine ? *machine : clock) {}

    /// Runs jobs and events until it holds. False: nothing is left to do, and it does not hold. No pause passes.
    template <class Condition> bool until(const Condition& holds) { return work(true, holds); }
    /// Until no event, frame or movement of a panel is left; jobs may go on.
    void arrange() {
        (void)work(false, [] { return false; });
    }
    /// Until no job is left either.
    void finish() {
        (void)work(true, [] { return false; });
    }
    /// The same, and every pause of the workbench passes.
    void settle() {
        do
            finish();
        while (clock.expireNext());
    }

private:
    void run(Scheduler::Task task) {
        ++*pending;
        workers.run([pending = pending, task = std::move(task)] {
            task();
            // Behind what the task has posted.
            QMetaObject::invokeMethod(
                qApp, [pending] { --*pending; }, Qt::QueuedConnection);
        });
    }
    template <class Condition> bool work(bool withJobs, const Condition& holds) {
        const QDeadlineTimer patience(std::chrono::minutes(1));
        for (int calm = 0; calm < 3 && !patience.hasExpired(); calm = workOn(withJobs) ? 0 : calm + 1)
            if (holds())
                return true;
        return holds();
    }
    /// False: there is nothing to do.
    bool workOn(bool withJobs) {
        QGuiApplication::sync(); // the display answers
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        auto* events = QAbstractEventDispatcher::instance();
        if (events->processEvents(QEventLoop::AllEvents))
            return true;
        if ((!withJobs || *pending == 0) && !isMoving())
            return false;
        events->processEvents(QEventLoop::WaitForMoreEvents);
        return true;
    }
    /// A panel is on its way to its place, or a window waits for its frame.
    static bool isMoving() {
        const auto windows = QGuiApplication::allWindows();
        const auto widgets = QApplication::topLevelWidgets();
        return std::any_of(windows.begin(), windows.end(),
                           [](QWindow* window) {
                               return !QAbstractEventDispatcher::instance()->registeredTimers(window).isEmpty();
                           }) ||
               std::any_of(widgets.begin(), widgets.end(), [](const QWidget* widget) {
                   const auto animations = widget->findChildren<QPropertyAnimation*>();
                   return std::any_of(animations.begin(), animations.end(), [](const QPropertyAnimation* animation) {
                       return animation->state() == QAbstractAnimation::Running;
                   });
               });
    }
};

} // namespace kvscope::testing
