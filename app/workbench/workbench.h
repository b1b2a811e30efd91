#pragma once

#include "app/study/makers/view_data_maker.h"
#include "app/study/session_history.h"
#include "app/workbench/clock.h"
#include "app/workbench/data_run.h"
#include "app/workbench/layer_scan_result.h"
#include "app/workbench/recent_results.h"
#include "core/engine/arithmetic.h"
#include "core/engine/engine_state.h"
#include "core/jobs/scheduler.h"
#include "views/view.h"

#include <QObject>
#include <QString>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

class Engine;

/// Ties the session to its pictures: a changed session becomes requests, one slot per pane and per visible view;
/// results come back as signals on the owner's thread. Knows no widgets, never computes and never waits. Executor,
/// delivery and clock are arguments, so that tests step through races and pauses.
class Workbench : public QObject {
    Q_OBJECT

public:
    Workbench(std::shared_ptr<const LayerRunner> runner, Scheduler::Executor executor, Scheduler::Deliver deliver,
              Clock& clock = machineClock());
    ~Workbench() override;

    const Session& session() const { return m_history.current(); }
    const SessionHistory& history() const { return m_history; }
    const std::shared_ptr<const CaptureReader>& capture() const { return m_capture; }
    const LayerRunner& runner() const { return *m_runner; }
    Clock& clock() const { return m_clock; }
    /// The session's cut in the open capture; nothing without one.
    const std::optional<Cut>& cut() const { return m_cut; }

    /// Edits a copy of the session and makes it current. `mergeKey` as in SessionHistory::change.
    void change(const std::function<void(Session&)>& edit, const QString& label, const QString& mergeKey = {});
    void endMerge() { m_history.endMerge(); }
    /// How far stories are told, in tokens read; empty: to their end. Nothing is computed for it and no step of undo is
    /// made: `cursorChanged` follows instead of `sessionChanged`.
    void setCursor(std::optional<TokenIndex> tokens);
    /// The part of a view that is shown; empty: all of it. No other view is asked again and no step of undo is made:
    /// `rangeChanged` follows instead of `sessionChanged`. Data that take long wait until no other part is wanted for a
    /// moment.
    void setRange(const View& view, const std::optional<Viewport::Range>& range);
    void undo();
    void redo();
    void markSaved();

    /// Opens on a worker; captureChanged or failed follows. With a session the window returns to it, else the capture
    /// opens with its first session, or, when it is the one already open, with the current one (reload).
    void openCapture(const std::string& path, std::optional<Session> session = {});
    void closeCapture();
    const std::string& opening() const { return m_opening; } ///< path of the capture that is being opened, or empty
    void cancelOpening();                                    ///< what is open stays
    /// `make` runs on a worker, the latest one wins. Then engineChanged, and what is shown is computed again on the new
    /// engine; or engineFailed, and the old one stays.
    void useEngine(std::function<std::unique_ptr<Engine>()> make);

    ViewInput viewInput() const;
    /// With the data of a view that is shown.
    ViewInput viewInput(const View& view) const;
    /// A view is computed for as long as somebody shows it; calls are counted. `setFrame` says how many device pixels
    /// it has, for views whose data follow the screen.
    void showView(const View& view);
    void hideView(const View& view);
    std::vector<const View*> shownViews() const; ///< in the order of allViews()
    void setFrame(const View& view, std::int64_t width, std::int64_t height);
    double progress(int pane) const { return m_panes[static_cast<std::size_t>(pane)].progress; }
    void cancelPane(int pane); ///< leaves the old result

    /// What the panes ask for now, for work beside panes and views; nothing without a capture and a cut.
    std::optional<ViewDataRequest> request() const;
    /// Such work in a slot of its own: the latest of a slot wins. A new capture ends it.
    void submit(const std::string& slot, Scheduler::Job job) { m_scheduler.submit(slot, std::move(job)); }
    void cancel(const std::string& slot) { m_scheduler.cancel(slot); }
    std::shared_ptr<const LayerRunner> sharedRunner() const { return m_runner; }

    /// Hover and brushing are shared by all views and belong to no session.
    void setHovered(TokenIndex token);
    void setBrushing(bool brushing);
    TokenIndex hovered() const { return m_hovered; }
    bool brushing() const { return m_brushing; }

    /// What is known of a layer in the measure that the head picker shows; null until it was asked. Small captures are
    /// scanned layer by layer while nothing else is to be computed, large ones only where the user has been.
    const LayerScanResult* layerScan(LayerIndex layer) const;

signals:
    void openingChanged();
    void captureChanged();                   ///< another capture, a reloaded one, or none
    void sessionChanged();                   ///< any member of the session
    void paneChanged(int pane);              ///< its result, error or computing flag
    void dataChanged(const QString& viewId); ///< its data, their progress or error
    void progressChanged(int pane, double fraction);
    void focusChanged();                      ///< hover or brushing
    void cursorChanged();                     ///< another point of the story
    void rangeChanged(const QString& viewId); ///< it shows another part
    void shownViewsChanged();
    void layerScanChanged();             ///< another layer is known, or another measure shown
    void failed(const QString& message); ///< what the window shows as a strip
    void engineChanged();                ///< runner() is another one; a reference to the old one is not valid any more
    void engineFailed(const QString& message);

private:
    struct PaneRun {
        std::string wantedKey;
        std::shared_ptr<const RunResult> result;
        std::string error;
        bool computing = false;
        double progress = 0;
    };

    void setOpening(const std::string& path);
    void installCapture(std::shared_ptr<const CaptureReader> capture, std::optional<Session> session);
    void installRunner(std::shared_ptr<const LayerRunner> runner);
    void refresh();
    void resolveCut();
    void refreshPane(int pane);
    void refreshAllData();
    void refreshData(const View& view, bool moving = false);
    void submitData(const View& view);
    void submitWaitingData();
    void deliverData(const std::string& id, ViewDataMaker::Value value, bool finished);
    ViewDataRequest dataRequest(const View& view, const DataRun& run) const;
    void submitPane(int pane, const PaneRequest& request, const std::string& key);
    void deliver(int pane, const std::string& key, std::shared_ptr<const RunResult> result, bool finished);
    void failPane(int pane, const std::string& message);
    std::optional<PaneRequest> requestFor(int pane) const;
    PaneData paneData(int pane) const;
    std::optional<PaneRequest> layerScanRequest() const;
    std::optional<LayerIndex> nextLayerToScan() const;
    void refreshLayerScan();
    void scanNextLayer();
    void noteResult(const RunResult& result);
    void storeLayerScan(LayerIndex layer, LayerScanResult row);

    std::shared_ptr<const LayerRunner> m_runner;
    std::function<std::unique_ptr<Engine>()> m_engineMaker; ///< of the one that is being made; empty: none
    SessionHistory m_history;
    std::shared_ptr<const CaptureReader> m_capture;
    std::optional<Cut> m_cut;
    std::string m_cutError, m_opening;
    std::array<PaneRun, kMaxPanes> m_panes;
    RecentResults m_recent;
    std::map<std::string, DataRun> m_data; ///< by view id
    TokenIndex m_hovered = -1;
    bool m_brushing = false;
    std::map<std::string, std::map<std::int32_t, LayerScanResult>> m_layerScans; ///< by measure, then by layer
    std::string m_layerScanKey;
    Clock& m_clock;
    std::unique_ptr<Clock::Timer> m_layerScanDelay; ///< a drag must not compete with the layer scan
    std::unique_ptr<Clock::Timer> m_rest;           ///< expires when no range was moved for a moment
    Scheduler m_scheduler;                          ///< last: its jobs refer to the members above
};

/// The sentence of whatever was thrown: Error as it stands, anything else named as unexpected.
std::string messageOf(const std::exception_ptr& failure);

} // namespace kvscope
