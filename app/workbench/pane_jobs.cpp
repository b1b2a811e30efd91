// A key per request says everything that determines a result: while it stays the same, nothing is computed again.
#include "app/workbench/pane_jobs.h"

#include "core/run/choice.h"

#include <utility>
#include <vector>

namespace kvscope {

namespace {

std::string slotOf(int pane) { return "pane " + std::to_string(pane); }

std::string keyOf(const PaneRequest& request) {
    return std::to_string(request.run.layer.value) + "|" + resultKey(request);
}

} // namespace

PaneJobs::PaneJobs(const OpenSession& open, Scheduler& scheduler, Listener listener)
    : m_open(open), m_scheduler(scheduler), m_listener(std::move(listener)) {}

void PaneJobs::refresh() {
    std::vector<int> changed;
    for (int index = 0; index < kMaxPanes; ++index)
        if (refresh(index)) changed.push_back(index);
    for (const int index : changed) m_listener.changed(index);
}

bool PaneJobs::refresh(int index) {
    Pane& pane = m_panes[index];
    const std::optional<PaneRequest> request = m_open.paneRequest(index);
    if (!request) {
        m_scheduler.cancel(slotOf(index));
        pane = {};
        if (m_open.cutError.empty() || static_cast<std::size_t>(index) >= m_open.session().panes.size()) return false;
        pane.fail(m_open.cutError);
    } else {
        std::string key = keyOf(*request);
        if (key == pane.key) return false;
        pane.key = std::move(key);
        pane.isCurrent = false;
        if (auto known = m_recent.find(pane.key)) {
            m_scheduler.cancel(slotOf(index));
            pane.deliver(std::move(known), JobState::Ready);
            noteDelivered(pane);
        } else if (auto chosen = request->recordedPath.empty() ? chooseAtOnce(*m_open.runner, request->run) : nullptr) {
            pane.deliver(std::move(chosen), JobState::Computing);
            noteDelivered(pane);
            measureLater(index, *request);
        } else {
            submit(index, *request);
        }
    }
    return true;
}

/// Drawing what is kept and measuring it would take the same cores.
void PaneJobs::measureLater(int index, const PaneRequest& request) {
    m_scheduler.cancel(slotOf(index));
    m_listener.afterFrame([this, index, request, key = m_panes[index].key] {
        if (m_panes[index].key == key && m_panes[index].state == JobState::Computing) submit(index, request);
    });
}

/// The choice is a job, its measuring the next one in the same slot: behind the choices of the other panes, so that a
/// step of a drag shows what all panes keep before any is measured.
void PaneJobs::submit(int index, const PaneRequest& request) {
    Pane& pane = m_panes[index];
    const bool isChosen = pane.isCurrent;
    const auto made = [this, &pane, index, request, isChosen] {
        if (pane.state == JobState::Idle) return m_listener.changed(index); // a lost worker: nothing was delivered
        pane.isCurrent = true;
        if (pane.state == JobState::Ready && isChosen) m_recent.insert(pane.key, pane.value);
        if (pane.state == JobState::Ready && !isChosen) {
            pane.state = JobState::Computing;
            measureLater(index, request);
        }
        noteDelivered(pane);
        m_listener.changed(index);
    };
    const auto make = [runner = m_open.runner, request,
                       chosen = isChosen ? pane.value : nullptr](const Checkpoint& checkpoint, const auto&) {
        if (chosen) return measureChoice(*runner, *chosen, checkpoint.part(0.5, 1));
        RunRequest choice = resolvePane(request);
        choice.measure = false;
        return runner->run(choice, checkpoint.part(0, 0.5));
    };
    pane.submit(m_scheduler, slotOf(index), make, made, [this, index] { m_listener.progressed(index); });
    pane.progress = isChosen ? 0.5 : 0;
}

/// A selection comes before its numbers: until they are there, the older ones stay.
void PaneJobs::noteDelivered(Pane& pane) {
    pane.isCurrent = true;
    if (pane.state != JobState::Computing || pane.value->fidelity) pane.measured = pane.value;
}

void PaneJobs::cancel(int index) {
    Pane& pane = m_panes[index];
    m_scheduler.cancel(slotOf(index));
    if (pane.value && pane.value->request.layer == m_open.session().layer) // of another layer nothing is shown
        pane.state = JobState::Idle;
    else
        pane.fail("Cancelled: change a parameter or press F5 to compute this pane.");
    m_listener.changed(index);
}

void PaneJobs::outdate() {
    m_recent.clear();
    for (Pane& pane : m_panes) pane.key.clear();
}

void PaneJobs::clear() {
    m_recent.clear();
    m_panes = {};
}

} // namespace kvscope
