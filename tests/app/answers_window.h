#pragma once

#include "app/live/live_context.h"
#include "app/window/docks/dock_layout.h"
#include "app/workbench/live_answer_jobs.h"
#include "tests/app/window_fixture.h"
#include "tests/live/fake_worker.h"
#include "tests/support/random_capture.h"

#include <QLabel>
#include <QRegularExpression>
#include <QTextDocument>

#include <memory>
#include <set>

namespace kvscope::testing {

inline std::shared_ptr<MemoryCapture> answersCapture() {
    auto made = makeRandomCapture(7, 83, 2, 4, 2, 16);
    made->tokenTable.segments = {
        {0, 61, SegmentKind::Context}, {61, 75, SegmentKind::Question}, {75, 83, SegmentKind::Answer}};
    return made;
}

struct LiveWindow : OpenWindow {
    FakeWorker fake{answersCapture().get()};
    PanelDock* dock = window.docks()->dock("answers");
    LiveAnswerJobs& jobs = LiveAnswerJobs::of(bench);

    explicit LiveWindow(QSize size = {1440, 900}) : OpenWindow(size) {}
    void openLive() { openLive(fake); }
    void openLive(const FakeWorker& worker, const std::string& mode = "right") {
        live::LiveDescription description;
        description.command = worker.command(mode);
        description.model.path = "tiny";
        description.parts = {{SegmentKind::Context, "ignored"}};
        bench.openLive(description);
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
