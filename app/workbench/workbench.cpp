// Every edit goes through `change` and is a step that can be undone, but for edits of the look alone; after each edit
// the requests are compared with what is shown.
#include "app/workbench/workbench.h"

#include "app/live/live_client.h"
#include "app/study/live_cut.h"
#include "app/study/session_requests.h"
#include "core/engine/engine.h"
#include "core/run/stage_cache.h"
#include "views/common/colour_scale.h"

#include <QPointer>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace kvscope {

namespace {

/// The model of a live context that is open holds memory that the next one may need.
std::string openingMessage(std::exception_ptr failure, bool hasLiveContext) {
    try {
        if (hasLiveContext) std::rethrow_exception(failure);
    } catch (const live::OutOfMemory& error) {
        Error::Parts parts = error.parts();
        parts.remedy += parts.remedy.empty() ? "Close" : ", or close";
        parts.remedy += " the live context that is open";
        return Error(std::move(parts)).what();
    } catch (...) { // below
    }
    return messageOf(failure);
}

} // namespace

Workbench::Workbench(std::shared_ptr<const LayerRunner> runner, Scheduler::Executor executor,
                     Scheduler::Deliver deliver, Clock& clock)
    : m_clock(clock), m_scheduler(executor, deliver), m_writers(executor, deliver),
      m_engineScheduler(executor, deliver),
      m_panes(m_open, m_scheduler, clock,
              {[this](const std::vector<int>& panes) {
                   for (const int pane : panes) {
                       if (pane == session().activePane) m_layerScan.note(m_panes.at(pane));
                       emit paneChanged(pane);
                   }
                   emit panesChanged();
               },
               [this](int pane) { emit progressChanged(pane, progress(pane)); },
               [this](Scheduler::Task task) {
                   m_clock.afterFrame([guard = QPointer<Workbench>(this), task = std::move(task)] {
                       if (guard) task();
                   });
               }}),
      m_views(m_open, m_scheduler, clock,
              [this](const std::string& viewId) { emit dataChanged(QString::fromStdString(viewId)); }),
      m_layerScan(m_open, m_scheduler, clock, [this] { emit layerScanChanged(); }),
      m_makeSecond([this, executor, deliver] { return makeSecondWorkbench(*this, executor, deliver); }) {
    m_open.runner = std::move(runner);
}

Workbench::~Workbench() {
    for (Scheduler* jobs : {&m_scheduler, &m_writers, &m_engineScheduler}) jobs->cancelAll();
}

void Workbench::refresh() {
    m_open.resolveCut();
    m_views.refresh(); // before the panes, whose results may be there at once: no picture mixes them with older data
    m_panes.refresh();
    m_layerScan.refresh(m_panes.at(session().activePane));
}

void Workbench::change(const std::function<void(Session&)>& edit, const QString& label, const QString& mergeKey) {
    Session next = session();
    edit(next);
    if (capture()) fitToCapture(next, *capture());
    if (next == session()) return;
    m_open.history.change(std::move(next), label.toStdString(), mergeKey.toStdString());
    refresh();
    emit sessionChanged();
}

void Workbench::setCursor(std::optional<TokenIndex> tokens) {
    if (tokens && capture())
        tokens = std::clamp<TokenIndex>(*tokens, 0, static_cast<TokenIndex>(capture()->info().numTokens));
    if (tokens == session().look.cursor) return;
    keepLook([&](Session& s) { s.look.cursor = tokens; });
    emit cursorChanged();
}

void Workbench::setRange(const View& view, const std::optional<Viewport::Range>& range) {
    Session next = session();
    if (range)
        next.look.ranges[view.card().id] = *range;
    else
        next.look.ranges.erase(view.card().id);
    if (next == session()) return;
    m_open.history.change(std::move(next), {});
    m_views.refreshMoved(view);
    emit rangeChanged(QString::fromStdString(view.card().id));
}

SecondWorkbench& Workbench::second() {
    if (!m_second) m_second = m_makeSecond();
    return *m_second;
}

void Workbench::setCompared(std::shared_ptr<const CaptureReader> other) {
    m_open.compared = std::move(other);
    m_views.refresh();
}

void Workbench::keepLook(const std::function<void(Session&)>& edit) {
    Session next = session();
    edit(next);
    m_open.history.change(std::move(next), {});
}

void Workbench::undo() { moveTo(&SessionHistory::undone, &SessionHistory::undo); }

void Workbench::redo() { moveTo(&SessionHistory::redone, &SessionHistory::redo); }

void Workbench::leaveLesson() { moveTo(&SessionHistory::beforeLesson, &SessionHistory::leaveLesson); }

void Workbench::moveTo(const Session* (SessionHistory::*target)() const, void (SessionHistory::*move)()) {
    const Session* to = (history().*target)();
    if (!to) return;
    const SessionSource source = sourceOf(*to);
    const auto moveFitted = [this, move](const CaptureReader* capture) { // its file may have changed since
        (m_open.history.*move)();
        if (!capture) return;
        Session fitted = session();
        fitToCapture(fitted, *capture);
        m_open.history.adapt(std::move(fitted));
    };
    if (source == sourceOf(session())) {
        moveFitted(capture().get());
        refresh();
        emit sessionChanged();
        return;
    }
    const auto moved = [this, source, target, moveFitted](std::shared_ptr<const CaptureReader> capture) {
        const Session* now = (history().*target)();
        if (!now || sourceOf(*now) != source) return setOpening({}); // changed while the capture was opened
        replaceCapture(capture, [&] { moveFitted(capture.get()); });
    };
    if (source.isEmpty())
        moved(nullptr);
    else
        withSource(source, moved);
}

void Workbench::startWith(Session session) {
    m_open.history = SessionHistory(std::move(session));
    emit sessionChanged();
}

void Workbench::markSaved(const std::string& file) {
    m_open.history.markSaved(file);
    emit sessionChanged();
}

void Workbench::openCapture(const std::string& path) { open({path, {}}); }

void Workbench::openLive(const live::LiveDescription& description) {
    open({{}, SharedText(live::textOf(description))});
}

void Workbench::openSession(Session session, const std::string& file) {
    const SessionSource source = sourceOf(session);
    withSource(source,
               [this, session = std::move(session), file](std::shared_ptr<const CaptureReader> capture) mutable {
                   const std::string name = std::filesystem::path(file).filename().string();
                   const std::string label = session.lesson.empty() ? "Open " + name : "Open lesson";
                   begin(std::move(capture), std::move(session), file, label);
               });
}

void Workbench::open(SessionSource source) {
    withSource(source, [this, source](std::shared_ptr<const CaptureReader> capture) {
        std::optional<Session> same = openedAgain(session(), source.live);
        if (same && this->capture() && capture->info().path == this->capture()->info().path) {
            fitToCapture(*same, *capture);
            return replaceCapture(std::move(capture), [&] { m_open.history.change(std::move(*same), "Reload"); });
        }
        const bool isLesson = !session().lesson.empty();
        const Session* before = isLesson ? history().beforeLesson() : &session();
        CarriedSession carried = carriedTo(*capture, before ? *before : Session{});
        nameSource(carried.session, {capture->info().path, source.live});
        const bool isCarried = before && !before->panes.empty();
        begin(std::move(capture), std::move(carried.session), {}, "Open " + source.name());
        if (isCarried) emit carriedOver(carried.adapted);
    });
}

void Workbench::reload() {
    Session next = session();
    readAtShownCut(next);
    if (capture()) open(sourceOf(next));
}

void Workbench::openAfresh() {
    if (!capture()) return;
    const SessionSource source = sourceOf(session());
    withSource(source, [this, source](std::shared_ptr<const CaptureReader> capture) {
        Session next = firstSession(*capture);
        keepInterface(next, session());
        nameSource(next, {capture->info().path, source.live});
        begin(std::move(capture), std::move(next), {}, "Open " + source.name());
    });
}

void Workbench::withSource(const SessionSource& source,
                           std::function<void(std::shared_ptr<const CaptureReader>)> install) {
    Scheduler::Job job;
    job.work = [this, source, install = std::move(install)](const Checkpoint& checkpoint, const auto& post) {
        auto capture = openSource(source, checkpoint, [&](const std::string& stage) {
            post([this, stage] {
                m_open.opening.stage = stage;
                emit openingProgressed();
            });
        });
        post([capture, install]() mutable { install(capture); });
    };
    job.progress = [this](double fraction) {
        m_open.opening.progress = fraction;
        emit openingProgressed();
    };
    job.failed = [this](std::exception_ptr failure) {
        setOpening({});
        emit failed(QString::fromStdString(openingMessage(failure, m_workerEnd && m_workerEnd->isEnabled())));
    };
    m_scheduler.submit("capture", std::move(job));
    setOpening(source.live.text().empty() ? source.path : source.name());
}

std::shared_ptr<const live::LiveCapture> Workbench::live() const {
    return std::dynamic_pointer_cast<const live::LiveCapture>(capture());
}

/// Reports a lost worker before a job needs it. lost() waits for a call that is under way, so a worker thread calls it.
void Workbench::watchWorker() {
    m_workerEnd.reset();
    const auto open = live();
    if (!open || open->client().endNotice() < 0) return;
    m_workerEnd = std::make_unique<QSocketNotifier>(open->client().endNotice(), QSocketNotifier::Read);
    connect(m_workerEnd.get(), &QSocketNotifier::activated, this, [this, open] {
        m_workerEnd->setEnabled(false);
        const auto ask = [this, open](const Checkpoint&, const auto& post) {
            post([this, lost = QString::fromStdString(open->client().lost())] { emit workerLost(lost); });
        };
        m_scheduler.submit("worker", {ask, {}, {}, {}});
    });
}

void Workbench::setOpening(const std::string& name) {
    if (name == m_open.opening.name) return;
    m_open.opening = {name, {}, 0};
    emit openingChanged();
}

void Workbench::cancelOpening() {
    m_scheduler.cancel("capture");
    setOpening({});
}

void Workbench::closeCapture() {
    Session nothing;
    keepInterface(nothing, session());
    nothing.layout = session().layout;
    begin(nullptr, std::move(nothing), {}, "Close");
}

void Workbench::begin(std::shared_ptr<const CaptureReader> capture, Session next, const std::string& file,
                      const std::string& label) {
    next.look.reducedMotion = next.look.reducedMotion || session().look.reducedMotion;
    if (capture) fitToCapture(next, *capture);
    const bool isFirst = sourceOf(session()).isEmpty() && !history().canUndo();
    replaceCapture(std::move(capture), [&] {
        if (isFirst)
            m_open.history = SessionHistory(std::move(next), file);
        else
            m_open.history.open(std::move(next), file, label);
    });
}

void Workbench::replaceCapture(std::shared_ptr<const CaptureReader> capture, const std::function<void()>& moveHistory) {
    auto closed = live();
    m_scheduler.cancelAll();
    m_workerEnd.reset(); // before the worker, whose descriptor it waits for
    setOpening({});
    m_open.capture = std::move(capture);
    m_open.compared = nullptr; // it was checked against the capture before
    m_panes.clear();
    m_views.clear();
    m_drawn.clear();
    m_layerScan.clear();
    m_hovered = -1;
    m_opened = {};
    moveHistory();
    refresh();
    emit captureChanged();
    emit sessionChanged();
    watchWorker();
    if (!closed) return;
    // A worker process takes time to end, for a connection or to free its memory. Each one ends in a slot of its own,
    // which no other capture cancels.
    const std::string slot = fmt::format("close {}", static_cast<const void*>(closed.get()));
    m_writers.submit(slot, {[closed = std::move(closed)](const Checkpoint&, const auto&) {}, {}, {}, {}});
}

void Workbench::useEngine(std::function<std::unique_ptr<Engine>()> make) {
    Scheduler::Job job;
    const std::size_t cacheBytes = runner().cache().maxBytes();
    job.work = [this, make = std::move(make), cacheBytes](const Checkpoint&, const auto& post) {
        const auto runner = std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(make()), cacheBytes);
        post([this, runner] { installRunner(runner); });
    };
    job.failed = [this](std::exception_ptr failure) { emit engineFailed(QString::fromStdString(messageOf(failure))); };
    m_engineScheduler.submit("engine", std::move(job));
}

/// Keys do not name the engine, so results of the old engine are dropped.
void Workbench::installRunner(std::shared_ptr<const LayerRunner> runner) {
    m_open.runner = std::move(runner);
    m_panes.outdate();
    m_views.outdate();
    m_layerScan.outdate();
    emit engineChanged();
    refresh();
}

ViewInput Workbench::viewInput() const {
    ViewInput input = viewInputOf(session(), capture(), cut());
    for (std::size_t index = 0; index < session().panes.size(); ++index) {
        const PaneJobs::Pane& pane = m_panes.at(static_cast<int>(index));
        PaneData data = paneDataOf(session(), index, pane.value);
        if (data.error.empty()) data.measured = pane.measured;
        data.computing = pane.isAsked();
        data.outdated = pane.value && !pane.isCurrent;
        if (!data.result && data.error.empty()) data.error = pane.error;
        input.panes.push_back(std::move(data));
    }
    input.focus.hovered = m_hovered;
    input.focus.brushing = m_brushing;
    input.opened = m_opened;
    return input;
}

ViewInput Workbench::viewInput(const View& view) const {
    ViewInput input = viewInput();
    input.data = m_views.stateOf(view);
    return input;
}

DrawnView Workbench::drawn(const View& view, int pane) const {
    DrawnView drawn = drawnAlone(view, pane);
    if (!m_beside || !drawn.options.has(kValueRangeOption)) return drawn;
    const DrawnView other = m_beside->drawnAlone(view, pane);
    drawn.options = withCommonRange(view, {&drawn.input, &other.input}, std::move(drawn.options));
    return drawn;
}

DrawnView Workbench::drawnAlone(const View& view, int pane) const {
    ViewInput now = viewInput(view);
    if (pane >= 0) now.activePane = pane;
    return m_drawn.update(view, pane, std::move(now), viewOptions(session(), view));
}

const View& paneView() {
    static const View& shown =
        **std::ranges::find_if(allViews(), [](const View* view) { return view->card().perPane; });
    return shown;
}

DrawnView Workbench::drawnPane(int pane) const { return drawn(paneView(), pane); }

void Workbench::showView(const View& view) {
    if (m_views.show(view)) emit shownViewsChanged();
}

void Workbench::hideView(const View& view) {
    if (!m_views.hide(view)) return;
    m_drawn.forget(view);
    emit shownViewsChanged();
}

void Workbench::setHovered(TokenIndex token) {
    if (std::exchange(m_hovered, token) != token) emit focusChanged();
}

void Workbench::markOpened(bool perQueryHead, int layer, int head) {
    if (m_opened.of(perQueryHead).emplace(layer, head).second) emit focusChanged();
}

void Workbench::withhold(const std::vector<std::string>& views, bool pictures) {
    const std::vector<std::string> before = std::exchange(m_withheld, views);
    if (std::exchange(m_withholdsPictures, pictures) == pictures && before == views) return;
    for (const auto* changed : {&before, &views})
        for (const std::string& view : *changed) emit dataChanged(QString::fromStdString(view));
}

bool Workbench::isWithheld(const View& view, bool picture) const {
    return (!picture || m_withholdsPictures) && std::ranges::count(m_withheld, view.card().id) > 0;
}

void Workbench::setBrushing(bool brushing) {
    if (std::exchange(m_brushing, brushing) != brushing) emit focusChanged();
}

} // namespace kvscope
