#pragma once

#include "app/workbench/workbench.h"

#include "app/study/live_rows.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// The answers of a live context's model after what the panes keep, computed while a panel wants them. A change of
/// the session computes the rows that it concerns, all in one round. A round goes on while the session keeps changing,
/// so that a drag shows what it passes; it is stopped when the session rests. Curves are computed between the rounds.
class LiveAnswerJobs : public QObject {
    Q_OBJECT

public:
    struct Row {
        std::string key;        ///< of the request that `live` or `error` came from; empty: nothing yet
        LiveRow live = {};      ///< of an older request while `isOutdated`
        std::string error = {}; ///< of the policy, or of the model's answer
        bool isOutdated = true, isTextOutdated = true;
    };
    /// The loss of the expected answer after what a pane keeps, at some budgets.
    struct LossCurve {
        std::string key = {}; ///< of everything but the budget
        std::map<double, LiveRow> rows =
            {};                 ///< by requested retention; without `expected` where the model has no answer
        std::string error = {}; ///< why the policy refuses
    };

    /// The answer jobs of a workbench: its child object, made at the first call.
    static LiveAnswerJobs& of(Workbench& workbench);

    /// The context whose model can be asked; null: what is open is a file.
    const std::shared_ptr<const live::LiveCapture>& live() const { return m_live; }
    std::vector<TokenIndex> answerTokens() const; ///< of the expected answer, in the context; empty: none is expected
    const std::vector<Row>& rows() const { return m_rows; }           ///< the full cache's, then the panes'
    const std::vector<LossCurve>& curves() const { return m_curves; } ///< of the panes
    /// Why no pane can be asked, or what went wrong in the last round; empty: it went well.
    const std::string& error() const { return m_otherCut.empty() ? m_error : m_otherCut; }
    /// Whether panes choose tokens at another cut than the model read the context with. They are not asked then.
    bool isCutOther() const { return !m_otherCut.empty(); }
    bool isRunning() const { return !m_running.empty(); } ///< a round, not a point of the curves
    double roundMs() const { return m_roundMs; } ///< of the last whole round, from its start to the texts; 0: none yet
    const live::Writing& writing() const { return m_writing; }

    /// What `who` wants; curves only beside rows. Wishes are kept per `who`, because a panel that replaces another one
    /// is shown before the other is hidden.
    void setWanted(bool rows, bool curves, const void* who = nullptr);
    void setWriting(const live::Writing& writing);
    void repeat(); ///< after an error

signals:
    void changed();
    void opened(); ///< a live context

private:
    explicit LiveAnswerJobs(Workbench& workbench);

    using Keys = std::vector<std::string>;
    using Part = std::vector<std::pair<std::size_t, Row>>; ///< rows with their places

    Keys wantedKeys() const; ///< of the rows
    void refresh();
    void compareCuts();
    std::vector<std::size_t> missing() const; ///< places of the rows to ask for
    void refreshCurves();
    void startRound(const Keys& wanted);
    void submitRound(Part part);
    void deliver(const Part& part, bool isWhole);
    void deliverToken(std::size_t row, std::size_t index, const std::string& text);
    void finishRound();
    void startPoint();
    void submitPoint(double budget, std::map<std::size_t, LiveRow> rows);
    void stop();

    Workbench& m_workbench;
    std::shared_ptr<const live::LiveCapture> m_live;
    std::shared_ptr<live::LiveAnswers> m_answers; ///< used by one job at a time
    live::Writing m_writing;
    std::map<const void*, bool> m_wanted; ///< who wants rows, and whether also curves
    bool m_isPointRunning = false;
    std::vector<Row> m_rows;
    std::vector<LossCurve> m_curves;
    std::string m_error, m_otherCut;
    std::map<std::size_t, std::string> m_written; ///< the texts that are being written, by place
    Keys m_running, m_failed;                     ///< of the round that runs, of the one that failed
    Clock::TimePoint m_start;
    double m_roundMs = 0;
    std::unique_ptr<Clock::Timer> m_rest;
};

} // namespace kvscope
