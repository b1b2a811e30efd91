#pragma once

#include "app/study/session_source.h"
#include "app/workbench/clock.h"
#include "app/workbench/drawn_views.h"
#include "app/workbench/layer_scan.h"
#include "app/workbench/open_session.h"
#include "app/workbench/pane_jobs.h"
#include "app/workbench/view_data_jobs.h"
#include "core/jobs/scheduler.h"
#include "views/view.h"

#include <QObject>
#include <QSocketNotifier>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

class Engine;
class SecondWorkbench;

/// Computes what a session shows, on workers. Every edit goes through here; afterwards panes, views and the layer scan
/// request what the session needs, and signals on the owner's thread report the results. Never waits, has no widgets.
class Workbench : public QObject {
    Q_OBJECT

public:
    Workbench(std::shared_ptr<const LayerRunner> runner, Scheduler::Executor executor, Scheduler::Deliver deliver,
              Clock& clock = machineClock());
    ~Workbench() override;

    const Session& session() const { return m_open.session(); }
    const SessionHistory& history() const { return m_open.history; }
    const std::shared_ptr<const CaptureReader>& capture() const { return m_open.capture; }
    const LayerRunner& runner() const { return *m_open.runner; }
    std::shared_ptr<const LayerRunner> sharedRunner() const { return m_open.runner; }
    const std::optional<Cut>& cut() const { return m_open.cut; } ///< resolved in the open capture
    Clock& clock() const { return m_clock; }

    /// Edits a copy of the session and makes it current. `mergeKey` as in SessionHistory::change.
    virtual void change(const std::function<void(Session&)>& edit, const QString& label, const QString& mergeKey = {});
    /// Connects several of its signals with one slot.
    void tell(auto* receiver, auto slot, auto... reported) { (connect(this, reported, receiver, slot), ...); }
    virtual void endMerge() { m_open.history.endMerge(); }
    /// Sets the step cursor, in tokens read; empty: all. Computes nothing, is no step: emits only `cursorChanged`.
    virtual void setCursor(std::optional<TokenIndex> tokens);
    /// Sets the shown part of a view; empty: all of it. Affects no other view and is no undo step: emits `rangeChanged`
    /// instead of `sessionChanged`. Slow data wait until the range has not changed for a moment.
    virtual void setRange(const View& view, const std::optional<Viewport::Range>& range);
    void startWith(Session session); ///< before anything is opened: the first capture gets its layout and interface
    /// Undo and redo lead back to other captures, sessions and lessons, too; their capture is opened on a worker.
    virtual void undo();
    virtual void redo();
    void leaveLesson();                      ///< back to the session before it; nothing without one
    void markSaved(const std::string& file); ///< it was written to this file, which is its file from now on

    /// Opens a capture on a worker; emits captureChanged or failed. Shows the current session on the new capture (emits
    /// carriedOver), and on a capture that is open already (reload) the current session as it is. All are steps that
    /// undo takes back.
    void openCapture(const std::string& path);
    void openLive(const live::LiveDescription& description); ///< the same for a text that a worker reads
    /// Shows a session, which came from `file`, with the capture or the text that it names.
    void openSession(Session session, const std::string& file = {});
    void reload();     ///< the file anew, or the live context by another worker at the cut shown; the session stays
    void openAfresh(); ///< the open capture with its first session
    void closeCapture();
    const Opening& opening() const { return m_open.opening; }
    void cancelOpening();                                  ///< the open capture stays
    std::shared_ptr<const live::LiveCapture> live() const; ///< the open live context; null: a file, or nothing
    /// Runs `make` on a worker; the latest call wins. Emits engineChanged and recomputes what is shown, or engineFailed
    /// and keeps the old engine. Independent of the capture.
    void useEngine(std::function<std::unique_ptr<Engine>()> make);

    ViewInput viewInput() const;
    ViewInput viewInput(const View& view) const; ///< with the data of a shown view
    /// What the window draws and says of a view, or of its `pane`: while it is computed, what was there before.
    DrawnView drawn(const View& view, int pane = -1) const;
    DrawnView drawnPane(int pane) const; ///< of the view that panes show
    /// A view's data are computed while it is shown (calls are counted), for its frame's size in device pixels.
    void showView(const View& view);
    void hideView(const View& view);
    std::vector<const View*> shownViews() const { return m_views.shown(); } ///< in the order of allViews()
    void setFrame(const View& view, std::int64_t width, std::int64_t height) { m_views.setFrame(view, width, height); }
    double progress(int pane) const { return m_panes.at(pane).progress; }
    void cancelPane(int pane) { m_panes.cancel(pane); } ///< keeps the old result

    /// The current request of the panes, for jobs beside panes and views; nothing without a capture and a cut.
    std::optional<ViewDataRequest> request() const { return m_open.dataRequest(); }
    /// Runs such a job in its own slot: the newest of a slot wins. A new capture cancels it.
    void submit(const std::string& slot, Scheduler::Job job) { m_scheduler.submit(slot, std::move(job)); }
    void cancel(const std::string& slot) { m_scheduler.cancel(slot); }
    Scheduler& writers() { return m_writers; } ///< of files; they go on with the capture they have when another is open
    SecondWorkbench& second(); ///< of the capture that the session is compared with; lives as long as this one

    void setHovered(TokenIndex token); ///< hover and brushing are shared by all views and not part of the session
    void setBrushing(bool brushing);
    bool brushing() const { return m_brushing; }
    const OpenedHeads& opened() const { return m_opened; } ///< ViewInput::opened, of the open capture
    void markOpened(bool perQueryHead, int layer, int head);
    /// These views' findings, and their `pictures`, give a lesson's answer away and are not shown.
    void withhold(const std::vector<std::string>& views, bool pictures = false);
    bool isWithheld(const View& view, bool picture = false) const;
    const LayerScanResult* layerScan(LayerIndex layer) const { return m_layerScan.at(layer); } ///< null: not yet

signals:
    void openingChanged();
    void openingProgressed();                                  ///< its stage or progress
    void captureChanged();                                     ///< also reloaded or closed
    void carriedOver(const std::vector<std::string>& adapted); ///< a sentence for each thing that could not be kept
    void sessionChanged();                                     ///< any member of the session
    void paneChanged(int pane);                                ///< its result, error or computing flag
    void panesChanged();                                       ///< after all `paneChanged` of one change
    void dataChanged(const QString& viewId);                   ///< its data, their progress or error
    void progressChanged(int pane, double fraction);
    void focusChanged();                       ///< hover, brushing or opened heads
    void cursorChanged();                      ///< another step cursor
    void rangeChanged(const QString& viewId);  ///< another shown part
    void besideChanged(const QString& viewId); ///< its data of the other capture; empty: the result of a pane there
    void shownViewsChanged();
    void layerScanChanged();                 ///< a layer was computed, or the measure changed
    void failed(const QString& message);     ///< shown as a notice
    void workerLost(const QString& message); ///< of the live context; what is shown stays, reload() starts another one
    void engineChanged();                    ///< runner() has changed; old references to it are invalid
    void engineFailed(const QString& message);

private:
    friend class SecondWorkbench;
    DrawnView drawnAlone(const View& view, int pane) const;
    void setCompared(std::shared_ptr<const CaptureReader> other); ///< that is open; null: none any more
    void keepLook(const std::function<void(Session&)>& edit);     ///< no step, computes nothing, emits nothing
    void setOpening(const std::string& name);
    /// Opens a capture on a worker and gives it to `install` on the owner's thread.
    void withSource(const SessionSource& source, std::function<void(std::shared_ptr<const CaptureReader>)> install);
    void open(SessionSource source); ///< with the current session, carried to it
    void watchWorker();
    void replaceCapture(std::shared_ptr<const CaptureReader> capture, const std::function<void()>& moveHistory);
    /// Shows a session of its own, as a step of the history; null: no capture.
    void begin(std::shared_ptr<const CaptureReader> capture, Session next, const std::string& file,
               const std::string& label);
    void moveTo(const Session* (SessionHistory::*target)() const, void (SessionHistory::*move)());
    void installRunner(std::shared_ptr<const LayerRunner> runner);
    void refresh();

    Clock& m_clock;
    OpenSession m_open;
    std::unique_ptr<QSocketNotifier> m_workerEnd; ///< of a live context's worker
    TokenIndex m_hovered = -1;
    bool m_brushing = false, m_withholdsPictures = false;
    OpenedHeads m_opened;
    std::vector<std::string> m_withheld;
    Scheduler m_scheduler, m_writers, m_engineScheduler; ///< for the open capture; for any; to open an engine
    PaneJobs m_panes;
    ViewDataJobs m_views;
    mutable DrawnViews m_drawn;
    LayerScan m_layerScan;
    std::function<std::shared_ptr<SecondWorkbench>()> m_makeSecond;
    std::shared_ptr<SecondWorkbench> m_second;
    const Workbench* m_beside = nullptr; ///< of the other capture, while two are open
};

/// The workbench of a second capture. Defined beside SecondWorkbench, which this file does not know.
std::shared_ptr<SecondWorkbench> makeSecondWorkbench(Workbench& first, Scheduler::Executor, Scheduler::Deliver);

} // namespace kvscope
