// Another engine in the middle of a session: made on a worker, because opening it may take seconds; then everything
// that is shown is asked for again, and the old pictures stay until the new ones are there.
#include "app/workbench/workbench.h"
#include "core/engine/engine.h"

#include <utility>

namespace kvscope {

void Workbench::useEngine(std::function<std::unique_ptr<Engine>()> make) {
    m_engineMaker = make;
    Scheduler::Job job;
    job.work = [this, make = std::move(make)](const Checkpoint&, const auto& post) {
        const auto runner = std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(make()));
        post([this, runner] { installRunner(runner); });
    };
    job.failed = [this](std::exception_ptr failure) {
        m_engineMaker = nullptr;
        emit engineFailed(QString::fromStdString(messageOf(failure)));
    };
    m_scheduler.submit("engine", std::move(job));
}

void Workbench::installRunner(std::shared_ptr<const LayerRunner> runner) {
    m_engineMaker = nullptr;
    m_runner = std::move(runner);
    // Keys do not name the engine: what the old one computed must not answer for the new one.
    m_recent.clear();
    for (PaneRun& run : m_panes)
        run.wantedKey.clear();
    for (auto& [id, run] : m_data)
        run.wantedKey.clear();
    m_layerScanKey.clear();
    for (auto& [measure, rows] : m_layerScans)
        for (auto& [layer, row] : rows)
            row.key.clear();
    emit engineChanged();
    refresh();
}

} // namespace kvscope
