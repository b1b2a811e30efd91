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

/// The choice is a job, its measuring the next one in the same slot: behind the choices of the other panes, so that a
/// step of a drag shows what all panes keep before any is measured.
void PaneJobs::submit(int index, const PaneRequest& request) {
    Pane& pane = m_panes[index];
    const auto progressed = [this, index] { m_listener.progressed(index); };
    const auto changed = [this, &pane, index] {
        noteDelivered(pane);
        if (pane.state == JobState::Ready) m_recent.insert(pane.key, pane.value);
        m_listener.changed(index);
    };
    const auto measure = [runner = m_open.runner](const RunResult& chosen, const RunRequest& wanted,
                                                  const Checkpoint& checkpoint) {
        auto measured = std::make_shared<RunResult>(*runner->run(wanted, checkpoint)); // its choice is in the cache
        const double measureMs = measured->times.measureMs;
        const bool fidelityFromCache = measured->times.fidelityFromCache;
        measured->times = chosen.times;
        measured->times.measureMs = measureMs;
        measured->times.fidelityFromCache = fidelityFromCache;
        return std::shared_ptr<const RunResult>(std::move(measured));
    };
    const auto wanted = std::make_shared<RunRequest>(request.run);
    pane.submit(
        m_scheduler, slotOf(index),
        [runner = m_open.runner, request, wanted](const Checkpoint& checkpoint, const auto&) {
            *wanted = resolvePane(request);
            RunRequest choice = *wanted;
            choice.measure = false;
            return runner->run(choice, checkpoint.part(0, 0.5));
        },
        [this, &pane, index, wanted, measure, changed, progressed] {
            if (pane.state == JobState::Ready) {
                pane.submit(
                    m_scheduler, slotOf(index),
                    [chosen = pane.value, wanted, measure](const Checkpoint& checkpoint, const auto&) {
                        return measure(*chosen, *wanted, checkpoint.part(0.5, 1));
                    },
                    changed, progressed);
                pane.progress = 0.5;
            }
            changed();
        },
        progressed);
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
