#pragma once

#include "app/workbench/workbench.h"
#include "tests/support/cpu_runner.h"
#include "tests/support/fake_clock.h"

#include <QAbstractEventDispatcher>
#include <QApplication>
#include <QDeadlineTimer>
#include <QPropertyAnimation>
#include <QWindow>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

namespace kvscope::testing {

/// A workbench for tests of windows: its jobs run on workers, its time passes only in `settle`.
struct SteppedWorkbench {
    /// What the jobs have to tell, and how many of them have not told all.
    struct Jobs {
        std::atomic<int> pending = 0;
        std::mutex mutex;
        std::deque<Scheduler::Task> told; ///< guarded by mutex
        bool isHeld = false;              ///< for the owner's thread

        void tellNext() {
            Scheduler::Task next;
            {
                const std::lock_guard lock(mutex);
                if (isHeld || told.empty()) return;
                next = std::move(told.front());
                told.pop_front();
            }
            next();
        }
    };
    FakeClock clock;
    WorkerPool workers{2};
    std::shared_ptr<Jobs> jobs = std::make_shared<Jobs>(); // events may outlive the workbench
    Workbench bench;

    /// `machine`: instead of the clock that stands still.
    explicit SteppedWorkbench(int engineThreads, Clock* machine = nullptr)
        : bench(
              std::shared_ptr<const LayerRunner>(new LayerRunner(cpuRunner(engineThreads))),
              [this](Scheduler::Task task) { run(std::move(task)); },
              [jobs = jobs](Scheduler::Task task) {
                  {
                      const std::lock_guard lock(jobs->mutex);
                      jobs->told.push_back(std::move(task));
                  }
                  postTelling(jobs);
              },
              machine ? *machine : clock) {}

    /// Runs jobs and events until it holds. False: nothing is left to do, and it does not hold. No pause passes.
    template <class Condition> bool until(const Condition& holds) { return work(true, holds); }
    /// Until no event, frame or movement of a panel is left. Jobs go on and tell nothing meanwhile.
    void arrange() {
        jobs->isHeld = true;
        (void)work(false, [] { return false; });
        jobs->isHeld = false;
        const std::lock_guard lock(jobs->mutex);
        for (std::size_t i = 0; i < jobs->told.size(); ++i) postTelling(jobs);
    }
    /// Until no job is left either.
    void finish() {
        (void)work(true, [] { return false; });
    }
    /// The same, and every pause of the workbench passes.
    void settle() {
        do finish();
        while (clock.expireNext());
    }

private:
    static void postTelling(const std::shared_ptr<Jobs>& jobs) {
        QMetaObject::invokeMethod(
            qApp, [jobs] { jobs->tellNext(); }, Qt::QueuedConnection);
    }
    void run(Scheduler::Task task) {
        ++jobs->pending;
        workers.run([jobs = jobs, task = std::move(task)] {
            task();
            // Behind what the task has posted.
            QMetaObject::invokeMethod(
                qApp, [jobs] { --jobs->pending; }, Qt::QueuedConnection);
        });
    }
    template <class Condition> bool work(bool withJobs, const Condition& holds) {
        const QDeadlineTimer patience(std::chrono::minutes(4)); // ends before a test function's five minutes do
        for (int calm = 0; calm < 3 && !patience.hasExpired(); calm = workOn(withJobs) ? 0 : calm + 1)
            if (holds()) return true;
        return holds();
    }
    /// False: there is nothing to do.
    bool workOn(bool withJobs) {
        QGuiApplication::sync(); // the display answers
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        auto* events = QAbstractEventDispatcher::instance();
        if (events->processEvents(QEventLoop::AllEvents)) return true;
        if ((!withJobs || jobs->pending == 0) && !isMoving()) return false;
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
