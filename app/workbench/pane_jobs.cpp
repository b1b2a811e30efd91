// A key per request says everything that determines a result: while it stays the same, nothing is computed again.
#include "app/workbench/pane_jobs.h"

#include <utility>

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
    for (int index = 0; index < kMaxPanes; ++index) refresh(index);
}

void PaneJobs::refresh(int index) {
    Pane& pane = m_panes[index];
    const std::optional<PaneRequest> request = m_open.paneRequest(index);
    if (!request) {
        m_scheduler.cancel(slotOf(index));
        pane = {};
        if (m_open.cutError.empty() || static_cast<std::size_t>(index) >= m_open.session().panes.size()) return;
        pane.fail(m_open.cutError);
    } else {
        std::string key = keyOf(*request);
        if (key == pane.key) return;
        pane.key = std::move(key);
        pane.isCurrent = false;
        if (auto known = m_recent.find(pane.key)) {
            m_scheduler.cancel(slotOf(index));
            pane.deliver(std::move(known), JobState::Ready);
            noteDelivered(pane);
        } else {
            submit(index, *request);
        }
    }
    m_listener.changed(index);
}

void PaneJobs::submit(int index, const PaneRequest& request) {
    Pane& pane = m_panes[index];
    pane.submit(
        m_scheduler, slotOf(index),
        [runner = m_open.runner, request](const Checkpoint& checkpoint, const auto& part) {
            return runner->run(resolvePane(request), checkpoint, part);
        },
        [this, &pane, index] {
            noteDelivered(pane);
            if (pane.state == JobState::Ready) m_recent.insert(pane.key, pane.value);
            m_listener.changed(index);
        },
        [this, index] { m_listener.progressed(index); });
}

/// A selection comes before its numbers: until they are there, the older ones stay.
void PaneJobs::noteDelivered(Pane& pane) {
    pane.isCurrent = true;
    if (pane.state != JobState::Computing || pane.value->fidelity) pane.measured = pane.value;
}

void PaneJobs::cancel(int index) {
    Pane& pane = m_panes[index];
    m_scheduler.cancel(slotOf(index));
    if (pane.value)
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
