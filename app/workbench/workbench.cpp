// The session side of the workbench: every edit goes through `change`, every edit is a step that can be undone, and
// after each the requests are compared with what is shown.
#include "app/workbench/workbench.h"

#include "app/study/session_requests.h"
#include "core/base/error.h"
#include "core/capture/open_capture.h"

#include <algorithm>
#include <utility>

namespace kvscope {

Workbench::Workbench(std::shared_ptr<const LayerRunner> runner, Scheduler::Executor executor,
                     Scheduler::Deliver deliver, Clock& clock)
    : m_runner(std::move(runner)), m_clock(clock), m_layerScanDelay(clock.makeTimer([this] { scanNextLayer(); })),
      m_rest(clock.makeTimer([this] { submitWaitingData(); })), m_scheduler(std::move(executor), std::move(deliver)) {}

Workbench::~Workbench() { m_scheduler.cancelAll(); }

void Workbench::change(const std::function<void(Session&)>& edit, const QString& label, const QString& mergeKey) {
    Session next = session();
    edit(next);
    if (m_capture)
        fitToCapture(next, *m_capture);
    if (next == session())
        return;
    m_history.change(std::move(next), label.toStdString(), mergeKey.toStdString());
    refresh();
    emit sessionChanged();
}

void Workbench::setCursor(std::optional<TokenIndex> tokens) {
    if (tokens && m_capture)
        tokens = std::clamp<TokenIndex>(*tokens, 0, static_cast<TokenIndex>(m_capture->info().numTokens));
    if (tokens == session().look.cursor)
        return;
    Session next = session();
    next.look.cursor = tokens;
    m_history.change(std::move(next), {});
    emit cursorChanged();
}

void Workbench::setRange(const View& view, const std::optional<Viewport::Range>& range) {
    Session next = session();
    if (range)
        next.look.ranges[view.card().id] = *range;
    else
        next.look.ranges.erase(view.card().id);
    if (next == session())
        return;
    m_history.change(std::move(next), {});
    if (m_data[view.card().id].shown > 0)
        refreshData(view, true);
    emit rangeChanged(QString::fromStdString(view.card().id));
}

void Workbench::undo() {
    if (!m_history.canUndo())
        return;
    m_history.undo();
    refresh();
    emit sessionChanged();
}

void Workbench::redo() {
    if (!m_history.canRedo())
        return;
    m_history.redo();
    refresh();
    emit sessionChanged();
}

void Workbench::markSaved() {
    m_history.markSaved();
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
    if (path == m_opening)
        return;
    m_opening = path;
    emit openingChanged();
}

void Workbench::cancelOpening() {
    m_scheduler.cancel("capture");
    setOpening({});
}

void Workbench::closeCapture() { installCapture(nullptr, Session{}); }

void Workbench::installCapture(std::shared_ptr<const CaptureReader> capture, std::optional<Session> session) {
    const bool reload = !session && m_capture && capture->info().path == m_capture->info().path;
    m_scheduler.cancelAll();
    setOpening({});
    if (m_engineMaker) // has nothing to do with the capture
        useEngine(m_engineMaker);
    m_capture = std::move(capture);
    m_recent.clear();
    m_panes = {};
    for (auto& [id, run] : m_data) {
        run.wantedKey.clear();
        run.identity.clear();
        run.state = {};
    }
    m_hovered = -1;
    m_layerScans.clear();
    m_layerScanKey.clear();
    if (reload) {
        Session same = this->session();
        fitToCapture(same, *m_capture);
        m_history.change(std::move(same), "Reload");
    } else {
        Session first = session ? std::move(*session) : firstSession(*m_capture);
        first.look.theme = session ? first.look.theme : this->session().look.theme;
        first.look.scale = session ? first.look.scale : this->session().look.scale;
        if (!session) {
            first.arithmetic = this->session().arithmetic;
            first.look.headMeasure = this->session().look.headMeasure;
        }
        first.look.reducedMotion = first.look.reducedMotion || this->session().look.reducedMotion;
        if (m_capture)
            fitToCapture(first, *m_capture);
        m_history = SessionHistory(std::move(first));
    }
    refresh();
    emit captureChanged();
    emit sessionChanged();
}

ViewInput Workbench::viewInput() const {
    ViewInput input = viewInputOf(session(), m_capture, m_cut);
    for (std::size_t pane = 0; pane < session().panes.size(); ++pane)
        input.panes.push_back(paneData(static_cast<int>(pane)));
    input.focus.hovered = m_hovered;
    input.focus.brushing = m_brushing;
    return input;
}

ViewInput Workbench::viewInput(const View& view) const {
    ViewInput input = viewInput();
    if (const auto run = m_data.find(view.card().id); run != m_data.end())
        input.data = run->second.state;
    return input;
}

void Workbench::setHovered(TokenIndex token) {
    if (token == m_hovered)
        return;
    m_hovered = token;
    emit focusChanged();
}

void Workbench::setBrushing(bool brushing) {
    if (brushing == m_brushing)
        return;
    m_brushing = brushing;
    emit focusChanged();
}

std::string messageOf(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "Something failed that has no description.";
    }
}

} // namespace kvscope
