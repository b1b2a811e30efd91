#pragma once

#include "app/window/docks/dock_layout.h"
#include "app/workbench/live_answer_jobs.h"
#include "tests/app/answer_context.h"
#include "tests/app/window_fixture.h"

#include <QLabel>
#include <QRegularExpression>
#include <QTextDocument>

#include <set>

namespace kvscope::testing {

struct LiveWindow : OpenWindow {
    FakeWorker fake{contextWith().get()};
    PanelDock* dock = window.docks()->dock("answers");
    LiveAnswerJobs& jobs = LiveAnswerJobs::of(bench);

    explicit LiveWindow(QSize size = {1440, 900}) : OpenWindow(size) {}
    void openLive() { openLive(fake); }
    void openLive(const FakeWorker& worker, const std::string& mode = "right") {
        bench.openLive(contextOf(worker, mode));
        settle();
    }
    template <class Widget = QLabel> Widget* part(const QString& name) const { return dock->findChild<Widget*>(name); }
    /// The text of a row, without markup.
    QString answer(int row) const {
        QTextDocument text;
        text.setHtml(part(QString("answer%1").arg(row))->text());
        return text.toPlainText().trimmed();
    }
    /// Those that a token of the answer attends to most.
    std::set<TokenIndex> attended() const {
        std::set<TokenIndex> tokens;
        auto links = QRegularExpression("href='(\\d+)'").globalMatch(part("answerAttended")->text());
        while (links.hasNext()) tokens.insert(links.next().captured(1).toInt());
        return tokens;
    }
    bool isEveryRowCurrent() const {
        return std::ranges::none_of(jobs.rows(), [](const auto& row) { return row.isOutdated || row.isTextOutdated; });
    }
};

} // namespace kvscope::testing
