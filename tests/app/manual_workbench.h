#pragma once

#include "app/workbench/workbench.h"
#include "tests/app/sample.h"
#include "tests/support/cpu_runner.h"
#include "tests/support/fake_clock.h"

#include <deque>
#include <memory>
#include <string>

namespace kvscope::testing {

/// An executor that runs nothing by itself, and a clock that stands still.
struct ManualExecutor {
    FakeClock clock;
    std::deque<Scheduler::Task> tasks, deliveries;

    bool runTask() {
        if (tasks.empty()) return false;
        auto task = std::move(tasks.front());
        tasks.pop_front();
        task();
        return true;
    }
    bool deliver() {
        if (deliveries.empty()) return false;
        auto task = std::move(deliveries.front());
        deliveries.pop_front();
        task();
        return true;
    }
    void runAll() {
        while (runTask() || deliver()) {
        }
    }
    /// Every pause passes; tasks wait.
    void passPauses() {
        while (clock.expireNext()) {
        }
    }
    /// Until nothing is left to do, pauses included.
    void settle() {
        do runAll();
        while (clock.expireNext());
    }
};

/// With no view shown.
inline std::unique_ptr<Workbench> manualWorkbench(ManualExecutor& executor) {
    static const auto runner = std::shared_ptr<const LayerRunner>(new LayerRunner(cpuRunner(2)));
    return std::make_unique<Workbench>(
        runner, [&executor](Scheduler::Task task) { executor.tasks.push_back(std::move(task)); },
        [&executor](Scheduler::Task task) { executor.deliveries.push_back(std::move(task)); }, executor.clock);
}

} // namespace kvscope::testing
