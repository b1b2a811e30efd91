// What each shown view draws beside the results of the panes. Its maker says by two texts what may stay on the screen:
// equal keys are the same data, equal identities other parts of the same.
#include "app/workbench/view_data_jobs.h"

#include "app/study/session_requests.h"
#include "views/common/view_facts.h"

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

constexpr std::chrono::milliseconds kRest{80}; ///< pause that ends a drag
constexpr std::chrono::milliseconds kSlow{25}; ///< slower data would slow a drag down

std::string slotOf(const View& view) { return "data " + view.card().id; }

} // namespace

ViewDataJobs::ViewDataJobs(const OpenSession& open, Scheduler& scheduler, Clock& clock, Changed changed)
    : m_open(open), m_scheduler(scheduler), m_clock(clock), m_changed(std::move(changed)),
      m_rest(clock.makeTimer([this] { submitWaiting(); })) {}

bool ViewDataJobs::show(const View& view) {
    if (++m_data[view.card().id].shownBy != 1) return false;
    refresh(view, false);
    return true;
}

bool ViewDataJobs::hide(const View& view) {
    Data& data = m_data[view.card().id];
    if (--data.shownBy > 0) return false;
    if (data.isAsked()) { // finished data stay cached
        m_scheduler.cancel(slotOf(view));
        data.key.clear();
        data.state = JobState::Idle;
    }
    return true;
}

void ViewDataJobs::setFrame(const View& view, std::int64_t width, std::int64_t height) {
    Data& data = m_data[view.card().id];
    if (data.width == width && data.height == height) return;
    data.width = width;
    data.height = height;
    if (data.shownBy > 0) refresh(view, false);
}

std::vector<const View*> ViewDataJobs::shown() const {
    std::vector<const View*> shown;
    for (const View* view : allViews())
        if (const auto found = m_data.find(view->card().id); found != m_data.end() && found->second.shownBy > 0)
            shown.push_back(view);
    return shown;
}

DataState ViewDataJobs::stateOf(const View& view) const {
    const auto found = m_data.find(view.card().id);
    if (found == m_data.end()) return {};
    const Data& data = found->second;
    return {.value = data.value, .computing = data.isAsked(), .progress = data.progress, .error = data.error};
}

ViewDataRequest ViewDataJobs::requestFor(const View& view, const Data& data) const {
    return dataRequestFor(view, m_open.session(), *m_open.dataRequest(), data.width, data.height);
}

void ViewDataJobs::refresh() {
    for (auto& [id, data] : m_data) {
        const View& view = viewById(id);
        if (data.shownBy > 0)
            refresh(view, false);
        else if (data.value && (!m_open.cut || makerFor(view)->identity(requestFor(view, data)) != data.identity))
            data.clear(); // the window reads what a hidden view found, too
    }
}

void ViewDataJobs::refreshMoved(const View& view) {
    if (m_data[view.card().id].shownBy > 0) refresh(view, true);
}

void ViewDataJobs::refresh(const View& view, bool isMoving) {
    const ViewDataMaker* maker = makerFor(view);
    if (!maker) return;
    Data& data = m_data[view.card().id];
    if (!m_open.cut) {
        m_scheduler.cancel(slotOf(view));
        data.clear();
        if (!m_open.cutError.empty()) data.fail(m_open.cutError);
        return;
    }
    const ViewDataRequest request = requestFor(view, data);
    std::string key = maker->key(request), identity = maker->identity(request);
    if (key == data.key) return;
    if (data.state == JobState::Computing) // replaced while running: it takes at least this long
        data.took = std::max(data.took, m_clock.now() - data.asked);
    else
        data.asked = m_clock.now();
    if (identity != data.identity) // data of another picture are dropped, data of another range stay
        data.value = nullptr;
    data.key = std::move(key);
    data.identity = std::move(identity);
    data.error.clear();
    if (isMoving && data.value && data.took > kSlow) {
        m_scheduler.cancel(slotOf(view));
        data.state = JobState::Waiting;
        data.progress = 0;
        m_rest->start(kRest);
    } else {
        submit(view, data);
    }
    m_changed(view.card().id);
}

void ViewDataJobs::submitWaiting() {
    for (auto& [id, data] : m_data)
        if (data.state == JobState::Waiting) {
            data.asked = m_clock.now();
            submit(viewById(id), data);
        }
}

void ViewDataJobs::submit(const View& view, Data& data) {
    data.submit(
        m_scheduler, slotOf(view),
        [runner = m_open.runner, &maker = *makerFor(view), request = requestFor(view, data)](
            const Checkpoint& checkpoint, const auto& part) { return maker.make(*runner, request, checkpoint, part); },
        [this, &view, &data] {
            if (data.state == JobState::Ready) data.took = m_clock.now() - data.asked;
            if (!data.error.empty()) data.fail(withFullStop(asSentence(data.error)));
            m_changed(view.card().id);
        },
        [this, &view] { m_changed(view.card().id); });
}

void ViewDataJobs::outdate() {
    for (auto& [id, data] : m_data) data.key.clear();
}

void ViewDataJobs::clear() {
    for (auto& [id, data] : m_data) data.clear();
}

} // namespace kvscope
