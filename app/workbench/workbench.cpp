// Every edit goes through `change`, every edit is a step that can be undone, and after each the requests are compared
// with what is shown.
#include "app/workbench/workbench.h"

#include "app/study/session_requests.h"
#include "core/capture/open_capture.h"
#include "core/engine/engine.h"

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

/// The capture's session, with the user's settings of the previous session.
Session sessionFor(const CaptureReader& capture, const Session& before) {
    Session session = firstSession(capture);
    session.arithmetic = before.arithmetic;
    session.look.theme = before.look.theme;
    session.look.scale = before.look.scale;
    session.look.headMeasure = before.look.headMeasure;
    return session;
}

} // namespace

Workbench::Workbench(std::shared_ptr<const LayerRunner> runner, Scheduler::Executor executor,
                     Scheduler::Deliver deliver, Clock& clock)
    : m_clock(clock), m_scheduler(executor, deliver), m_engineScheduler(executor, deliver),
      m_panes(m_open, m_scheduler,
              {[this](int pane) {
                   if (pane == session().activePane) m_layerScan.note(m_panes.at(pane));
                   emit paneChanged(pane);
               },
               [this](int pane) { emit progressChanged(pane, progress(pane)); }}),
      m_views(m_open, m_scheduler, clock,
              [this](const std::string& viewId) { emit dataChanged(QString::fromStdString(viewId)); }),
      m_layerScan(m_open, m_scheduler, clock, [this] { emit layerScanChanged(); }) {
    m_open.runner = std::move(runner);
}

Workbench::~Workbench() {
    m_scheduler.cancelAll();
    m_engineScheduler.cancelAll();
}

void Workbench::refresh() {
    m_open.resolveCut();
    m_panes.refresh();
    m_views.refresh();
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
    Session next = session();
    next.look.cursor = tokens;
    m_open.history.change(std::move(next), {});
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

void Workbench::undo() {
    if (!history().canUndo()) return;
    m_open.history.undo();
    refresh();
    emit sessionChanged();
}

void Workbench::redo() {
    if (!history().canRedo()) return;
    m_open.history.redo();
    refresh();
    emit sessionChanged();
}

void Workbench::markSaved() {
    m_open.history.markSaved();
    emit sessionChanged();
}

void Workbench::openCapture(const std::string& path, std::optional<Session> session) {
    Scheduler::Job job;
    job.work = [this, path, session = std::move(session)](const Checkpoint&, const auto& post) {
        std::shared_ptr<const CaptureReader> capture = kvscope::openCapture(path);
        post([this, capture, session] { installCapture(capture, session); });
    };
    job.failed = [this](std::exception_ptr failure) {
        setOpening({});
        emit failed(QString::fromStdString(messageOf(failure)));
    };
    m_scheduler.submit("capture", std::move(job));
    setOpening(path);
}

void Workbench::setOpening(const std::string& path) {
    if (path == m_opening) return;
    m_opening = path;
    emit openingChanged();
}

void Workbench::cancelOpening() {
    m_scheduler.cancel("capture");
    setOpening({});
}

void Workbench::closeCapture() { installCapture(nullptr, Session{}); }

void Workbench::installCapture(std::shared_ptr<const CaptureReader> capture, std::optional<Session> wanted) {
    const bool isReload = !wanted && m_open.capture && capture->info().path == m_open.capture->info().path;
    m_scheduler.cancelAll();
    setOpening({});
    m_open.capture = std::move(capture);
    m_panes.clear();
    m_views.clear();
    m_layerScan.clear();
    m_hovered = -1;
    Session next = wanted ? std::move(*wanted) : isReload ? session() : sessionFor(*m_open.capture, session());
    next.look.reducedMotion = next.look.reducedMotion || session().look.reducedMotion;
    if (m_open.capture) fitToCapture(next, *m_open.capture);
    if (isReload)
        m_open.history.change(std::move(next), "Reload");
    else
        m_open.history = SessionHistory(std::move(next));
    refresh();
    emit captureChanged();
    emit sessionChanged();
}

void Workbench::useEngine(std::function<std::unique_ptr<Engine>()> make) {
    Scheduler::Job job;
    job.work = [this, make = std::move(make)](const Checkpoint&, const auto& post) {
        const auto runner = std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(make()));
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
        data.computing = pane.isAsked();
        data.error = pane.error;
        input.panes.push_back(std::move(data));
    }
    input.focus.hovered = m_hovered;
    input.focus.brushing = m_brushing;
    return input;
}

ViewInput Workbench::viewInput(const View& view) const {
    ViewInput input = viewInput();
    input.data = m_views.stateOf(view);
    return input;
}

void Workbench::showView(const View& view) {
    if (m_views.show(view)) emit shownViewsChanged();
}

void Workbench::hideView(const View& view) {
    if (m_views.hide(view)) emit shownViewsChanged();
}

void Workbench::setHovered(TokenIndex token) {
    if (token == m_hovered) return;
    m_hovered = token;
    emit focusChanged();
}

void Workbench::setBrushing(bool brushing) {
    if (brushing == m_brushing) return;
    m_brushing = brushing;
    emit focusChanged();
}

} // namespace kvscope
