// The data side of the workbench: what each visible view shows beside the results, in a slot of its own. A view that
// nobody sees asks for nothing.
#include "app/study/makers/all_makers.h"
#include "app/study/session_requests.h"
#include "app/workbench/workbench.h"
#include "views/common/view_facts.h"

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

constexpr std::chrono::milliseconds kRest{80}; ///< without a movement

std::string slotOf(const std::string& viewId) { return "data " + viewId; }

} // namespace

void Workbench::showView(const View& view) {
    DataRun& run = m_data[view.card().id];
    if (++run.shown != 1)
        return;
    refreshData(view);
    emit shownViewsChanged();
}

void Workbench::hideView(const View& view) {
    DataRun& run = m_data[view.card().id];
    if (--run.shown > 0)
        return;
    emit shownViewsChanged();
    if (!run.state.computing)
        return; // finished data stay for the next time
    m_scheduler.cancel(slotOf(view.card().id));
    run.wantedKey.clear();
    run.state.computing = run.waits = false;
}

std::vector<const View*> Workbench::shownViews() const {
    std::vector<const View*> shown;
    for (const View* view : allViews())
        if (const auto run = m_data.find(view->card().id); run != m_data.end() && run->second.shown > 0)
            shown.push_back(view);
    return shown;
}

void Workbench::setFrame(const View& view, std::int64_t width, std::int64_t height) {
    DataRun& run = m_data[view.card().id];
    if (run.width == width && run.height == height)
        return;
    run.width = width;
    run.height = height;
    if (run.shown > 0)
        refreshData(view);
}

std::optional<ViewDataRequest> Workbench::request() const {
    if (!m_capture || !m_cut)
        return std::nullopt;
    return dataRequestOf(session(), m_capture, *m_cut);
}

ViewDataRequest Workbench::dataRequest(const View& view, const DataRun& run) const {
    return dataRequestFor(view, session(), *request(), run.width, run.height);
}

void Workbench::refreshAllData() {
    for (auto& [id, run] : m_data)
        if (run.shown > 0)
            refreshData(viewById(id));
}

void Workbench::refreshData(const View& view, bool moving) {
    const ViewDataMaker* maker = makerFor(view);
    if (!maker)
        return;
    const std::string id = view.card().id;
    DataRun& run = m_data[id];
    if (!m_capture || !m_cut) {
        m_scheduler.cancel(slotOf(id));
        run.wantedKey.clear();
        run.identity.clear();
        run.waits = false;
        run.state = {.value = {}, .computing = false, .progress = 0, .error = m_cutError};
        return;
    }
    const ViewDataRequest request = dataRequest(view, run);
    const std::string key = maker->key(request), identity = maker->identity(request);
    if (key == run.wantedKey)
        return;
    // What is taken back took at least as long as it was given, all its goes together: a quick part before says nothing
    // of it.
    const bool underWay = run.state.computing && !run.waits;
    const Clock::TimePoint begun = underWay ? run.asked : m_clock.now();
    if (underWay)
        run.took = std::max(run.took, m_clock.now() - begun);
    // Another part of the same, while one moves on: what takes long would be begun in vain, and hold the movement up.
    run.waits = moving && run.isSlow() && identity == run.identity && run.state.value;
    // Data of something else would be a wrong picture; another part of the same stays until the new part is there.
    if (identity != run.identity)
        run.state = {};
    run.wantedKey = key;
    run.identity = identity;
    run.state.computing = true;
    run.state.progress = 0;
    run.state.error.clear();
    if (run.waits) {
        m_scheduler.cancel(slotOf(id));
        m_rest->start(kRest);
    } else {
        submitData(view);
        run.asked = begun;
    }
    emit dataChanged(QString::fromStdString(id));
}

void Workbench::submitWaitingData() {
    for (auto& [id, run] : m_data)
        if (std::exchange(run.waits, false))
            submitData(viewById(id));
}

void Workbench::submitData(const View& view) {
    const std::string& id = view.card().id;
    DataRun& run = m_data[id];
    run.asked = m_clock.now();
    Scheduler::Job job;
    job.work = [this, runner = m_runner, &maker = *makerFor(view), request = dataRequest(view, run),
                id](const Checkpoint& checkpoint, const auto& post) {
        const auto deliverLater = [&](ViewDataMaker::Value value, bool finished) {
            post([this, id, value = std::move(value), finished] { deliverData(id, value, finished); });
        };
        deliverLater(maker.make(*runner, request, checkpoint,
                                [&](ViewDataMaker::Value value) { deliverLater(std::move(value), false); }),
                     true);
    };
    job.progress = [this, id](double fraction) {
        m_data[id].state.progress = fraction;
        emit dataChanged(QString::fromStdString(id));
    };
    job.failed = [this, id](std::exception_ptr failure) {
        m_data[id].state = {
            .value = {}, .computing = false, .progress = 0, .error = withFullStop(asSentence(messageOf(failure)))};
        emit dataChanged(QString::fromStdString(id));
    };
    m_scheduler.submit(slotOf(id), std::move(job));
}

void Workbench::deliverData(const std::string& id, ViewDataMaker::Value value, bool finished) {
    DataRun& run = m_data[id];
    if (finished)
        run.took = m_clock.now() - run.asked;
    DataState& state = run.state;
    state.value = std::move(value);
    state.computing = !finished;
    state.error.clear();
    emit dataChanged(QString::fromStdString(id));
}

} // namespace kvscope
