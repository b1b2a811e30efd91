// A key per request says everything that determines a result: while it stays the same, nothing is computed again.
#include "app/workbench/pane_jobs.h"

#include "core/metrics/fidelity.h"
#include "core/run/choice.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kvscope {

namespace {

/// When a drag's steps come faster than they are measured, measuring waits for this pause, since it slows the pictures.
constexpr std::chrono::milliseconds kRest{80};
/// During a longer drag each pane is still measured this often, so that its numbers follow.
constexpr std::chrono::milliseconds kOnTheWay{500};

std::string slotOf(int pane) { return "pane " + std::to_string(pane); }
std::string slotOnTheWay(int pane) { return "numbers " + std::to_string(pane); }

std::string keyOf(const PaneRequest& request) {
    return std::to_string(request.run.layer.value) + "|" + resultKey(request);
}

constexpr std::size_t kMost = 96; ///< two dozen states of four panes; the search is linear

/// About what a result takes: scores [Hkv, cut], their parts, kept lists and the errors of the queries.
std::size_t bytesOf(const RunResult& result) {
    std::size_t numbers = result.scores.data.size() + result.queryHeadScores.data.size() + result.anchor.data.size();
    for (const auto& [name, part] : result.parts) numbers += part.data.size();
    for (const HeadSelection& head : result.selection.heads) {
        numbers += head.kept.size() * 3;
        for (const QueryHeadSet& own : head.queryHeads) numbers += own.kept.size();
    }
    if (result.fidelity)
        numbers += result.fidelity->outputError.data.size() + result.fidelity->retainedMass.data.size();
    return numbers * sizeof(float) + sizeof(RunResult);
}

} // namespace

std::shared_ptr<const RunResult> RecentResults::find(const std::string& key) {
    const auto found = std::ranges::find(m_entries, key, &Entry::key);
    if (found == m_entries.end()) return nullptr;
    m_entries.splice(m_entries.begin(), m_entries, found);
    return found->result;
}

void RecentResults::insert(const std::string& key, std::shared_ptr<const RunResult> result) {
    std::erase_if(m_entries, [&](const Entry& entry) {
        if (entry.key != key) return false;
        m_bytes -= entry.bytes;
        return true;
    });
    const std::size_t bytes = bytesOf(*result);
    m_entries.push_front({key, std::move(result), bytes});
    m_bytes += bytes;
    while ((m_bytes > m_maxBytes || m_entries.size() > kMost) && m_entries.size() > 1) {
        m_bytes -= m_entries.back().bytes;
        m_entries.pop_back();
    }
}

void RecentResults::clear() {
    m_entries.clear();
    m_bytes = 0;
}

PaneJobs::PaneJobs(const OpenSession& open, Scheduler& scheduler, Clock& clock, Listener listener)
    : m_open(open), m_scheduler(scheduler), m_clock(clock), m_listener(std::move(listener)),
      m_rest(clock.makeTimer([this] { submitWaiting(); })) {}

void PaneJobs::refresh() {
    std::vector<int> changed;
    for (int index = 0; index < kMaxPanes; ++index)
        if (refresh(index)) changed.push_back(index);
    if (!changed.empty()) m_listener.changed(changed);
}

bool PaneJobs::refresh(int index) {
    Pane& pane = m_panes[index];
    const std::optional<PaneRequest> request = m_open.paneRequest(index);
    if (!request) {
        m_scheduler.cancel(slotOf(index));
        m_scheduler.cancel(slotOnTheWay(index));
        pane = {};
        if (m_open.cutError.empty() || static_cast<std::size_t>(index) >= m_open.session().panes.size()) return false;
        pane.fail(m_open.cutError);
    } else {
        std::string key = keyOf(*request);
        if (key == pane.key) return false;
        const bool isOutpaced = pane.isAsked() && pane.isCurrent; // still without its numbers
        pane.key = std::move(key);
        pane.isCurrent = false;
        if (auto known = m_recent.find(pane.key)) {
            m_scheduler.cancel(slotOf(index));
            pane.deliver(std::move(known), JobState::Ready);
            noteDelivered(index);
        } else if (auto chosen = request->recordedPath.empty() ? chooseAtOnce(*m_open.runner, request->run) : nullptr) {
            pane.deliver(std::move(chosen), isOutpaced ? JobState::Waiting : JobState::Computing);
            noteDelivered(index);
            isOutpaced ? measureAtRest(index) : measureLater(index, *request);
        } else {
            m_scheduler.cancel(slotOnTheWay(index));
            submit(index, *request);
        }
    }
    return true;
}

/// Measures after the frame, because drawing what is kept and measuring it would take the same cores.
void PaneJobs::measureLater(int index, const PaneRequest& request) {
    m_scheduler.cancel(slotOf(index));
    m_listener.afterFrame([this, index, request, key = m_panes[index].key] {
        if (m_panes[index].key == key && m_panes[index].state == JobState::Computing) submit(index, request);
    });
}

/// The pause starts again when the frame of the step is drawn, however long that took.
void PaneJobs::measureAtRest(int index) {
    m_scheduler.cancel(slotOf(index));
    m_panes[index].progress = 0;
    m_rest->start(kRest);
    m_listener.afterFrame([this, index, key = m_panes[index].key] {
        Pane& pane = m_panes[index];
        if (pane.key != key || pane.state != JobState::Waiting) return;
        m_rest->start(kRest);
        if (m_clock.now() - pane.numbersAsked < kOnTheWay) return;
        pane.numbersAsked = m_clock.now();
        measureOnTheWay(index);
    });
}

/// The measured numbers replace older ones, even if the pane shows a newer choice by then.
void PaneJobs::measureOnTheWay(int index) {
    const auto work = [this, index, runner = m_open.runner, chosen = m_panes[index].value](const Checkpoint& checkpoint,
                                                                                           const auto& post) {
        post([this, index, measured = measureChoice(*runner, *chosen, checkpoint)] {
            m_panes[index].measured = measured;
            m_listener.changed({index});
        });
    };
    m_scheduler.submit(slotOnTheWay(index), {work, {}, {}, {}});
}

void PaneJobs::submitWaiting() {
    for (int index = 0; index < kMaxPanes; ++index)
        if (m_panes[index].state == JobState::Waiting)
            if (const auto request = m_open.paneRequest(index)) submit(index, *request);
}

/// The choice is one job, and its measuring is the next job in the same slot, after the choices of the other panes, so
/// that a step of a drag shows what all panes keep before any is measured.
void PaneJobs::submit(int index, const PaneRequest& request) {
    Pane& pane = m_panes[index];
    const bool isChosen = pane.isCurrent;
    const auto made = [this, &pane, index, request, isChosen] {
        if (pane.state == JobState::Idle) return m_listener.changed({index}); // a lost worker: nothing was delivered
        pane.isCurrent = true;
        if (pane.state == JobState::Ready && isChosen) m_recent.insert(pane.key, pane.value);
        if (pane.state == JobState::Ready && !isChosen) {
            pane.state = JobState::Computing;
            measureLater(index, request);
        }
        noteDelivered(index);
        m_listener.changed({index});
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
void PaneJobs::noteDelivered(int index) {
    Pane& pane = m_panes[index];
    pane.isCurrent = true;
    if (pane.isAsked() && !pane.value->fidelity) return;
    pane.measured = pane.value;
    m_scheduler.cancel(slotOnTheWay(index));
}

void PaneJobs::cancel(int index) {
    Pane& pane = m_panes[index];
    m_scheduler.cancel(slotOf(index));
    m_scheduler.cancel(slotOnTheWay(index));
    if (pane.value && pane.value->request.layer == m_open.session().layer) // a result of another layer is not shown
        pane.state = JobState::Idle;
    else
        pane.fail("Cancelled: change a parameter or press F5 to compute this pane.");
    m_listener.changed({index});
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
