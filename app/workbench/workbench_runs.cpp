// The run side of the workbench: what each pane asks for, what comes back, and which of it is still wanted. A key per
// request says everything that determines a result; a result whose key is no longer wanted is kept for undo only.
#include "app/study/session_requests.h"
#include "app/workbench/workbench.h"
#include "core/base/error.h"

#include <utility>

namespace kvscope {

namespace {

std::string slotOf(int pane) { return "pane " + std::to_string(pane); }

std::string keyOf(const PaneRequest& request) {
    return std::to_string(request.run.layer.value) + "|" + resultKey(request);
}

} // namespace

void Workbench::refresh() {
    resolveCut();
    for (int pane = 0; pane < kMaxPanes; ++pane)
        refreshPane(pane);
    refreshAllData();
    refreshLayerScan();
}

void Workbench::resolveCut() {
    m_cut.reset();
    m_cutError.clear();
    if (!m_capture)
        return;
    try {
        m_cut = Cut::resolve(session().cut, *m_capture);
    } catch (const Error& error) {
        m_cutError = error.what();
    }
}

std::optional<PaneRequest> Workbench::requestFor(int pane) const {
    const auto index = static_cast<std::size_t>(pane);
    if (!m_capture || !m_cut || index >= session().panes.size())
        return std::nullopt;
    return paneRequestOf(session(), index, m_capture, *m_cut);
}

void Workbench::refreshPane(int pane) {
    PaneRun& run = m_panes[static_cast<std::size_t>(pane)];
    const std::optional<PaneRequest> request = requestFor(pane);
    if (!request) {
        if (!run.wantedKey.empty() || run.error != m_cutError)
            m_scheduler.cancel(slotOf(pane));
        const bool there = static_cast<std::size_t>(pane) < session().panes.size();
        run = {};
        if (there && !m_cutError.empty())
            failPane(pane, m_cutError);
        return;
    }
    const std::string key = keyOf(*request);
    if (key == run.wantedKey)
        return;
    run.wantedKey = key;
    if (auto known = m_recent.find(key)) {
        m_scheduler.cancel(slotOf(pane));
        run.computing = false;
        run.error.clear();
        run.result = std::move(known);
        emit paneChanged(pane);
        return;
    }
    submitPane(pane, *request, key);
}

void Workbench::submitPane(int pane, const PaneRequest& request, const std::string& key) {
    Scheduler::Job job;
    job.work = [this, runner = m_runner, pane, request, key](const Checkpoint& checkpoint, const auto& post) {
        const RunRequest mine = resolvePane(request);
        const auto deliverLater = [&](std::shared_ptr<const RunResult> result, bool finished) {
            post([this, pane, key, result, finished] { deliver(pane, key, result, finished); });
        };
        deliverLater(runner->run(mine, checkpoint, [&](auto partial) { deliverLater(std::move(partial), false); }),
                     true);
    };
    job.progress = [this, pane](double fraction) {
        m_panes[static_cast<std::size_t>(pane)].progress = fraction;
        emit progressChanged(pane, fraction);
    };
    job.failed = [this, pane](std::exception_ptr failure) { failPane(pane, messageOf(failure)); };
    PaneRun& run = m_panes[static_cast<std::size_t>(pane)];
    run.computing = true;
    run.progress = 0;
    m_scheduler.submit(slotOf(pane), std::move(job));
    emit paneChanged(pane);
}

void Workbench::deliver(int pane, const std::string& key, std::shared_ptr<const RunResult> result, bool finished) {
    if (finished)
        m_recent.insert(key, result);
    PaneRun& run = m_panes[static_cast<std::size_t>(pane)];
    if (key != run.wantedKey)
        return;
    run.computing = !finished;
    run.error.clear();
    run.result = std::move(result);
    if (pane == session().activePane && run.result->fidelity)
        noteResult(*run.result);
    emit paneChanged(pane);
}

void Workbench::failPane(int pane, const std::string& message) {
    PaneRun& run = m_panes[static_cast<std::size_t>(pane)];
    run.computing = false;
    run.error = message;
    run.result = nullptr;
    emit paneChanged(pane);
}

void Workbench::cancelPane(int pane) {
    m_scheduler.cancel(slotOf(pane));
    PaneRun& run = m_panes[static_cast<std::size_t>(pane)];
    run.computing = false;
    if (!run.result)
        run.error = "Cancelled: change a parameter or press F5 to compute this pane.";
    emit paneChanged(pane);
}

PaneData Workbench::paneData(int pane) const {
    const auto index = static_cast<std::size_t>(pane);
    const PaneRun& run = m_panes[index];
    PaneData data = paneDataOf(session(), index, run.result);
    data.computing = run.computing;
    data.error = run.error;
    return data;
}

} // namespace kvscope
