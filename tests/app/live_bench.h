#pragma once

#include "app/live/live_context.h"
#include "app/workbench/live_answer_jobs.h"
#include "tests/app/manual_workbench.h"
#include "tests/live/fake_worker.h"
#include "tests/support/random_capture.h"

#include <QtTest>

#include <csignal>

namespace kvscope::testing {

/// A workbench with a live context of 83 tokens, an expected answer of 8, and two panes.
struct LiveBench {
    FakeWorker fake;
    ManualExecutor executor;
    std::unique_ptr<Workbench> bench = manualWorkbench(executor);
    LiveAnswerJobs& jobs = LiveAnswerJobs::of(*bench);

    explicit LiveBench(bool hasAnswer = true, const std::string& mode = "right") : fake(capture(hasAnswer).get()) {
        live::LiveDescription description;
        description.command = fake.command(mode);
        description.model.path = "tiny";
        description.parts = {{SegmentKind::Context, "ignored"}};
        bench->openLive(description);
        executor.settle();
        change([](Session& session) {
            session.panes = {{specOfVariant("keydiff", {}), {}, {}}, {specOfVariant("snapkv", {}), {}, {}}};
            setBudget(session, {Budget::Unit::Tokens, 20});
        });
        executor.settle();
    }
    static std::shared_ptr<MemoryCapture> capture(bool hasAnswer) {
        auto made = makeRandomCapture(7, 83, 2, 4, 2, 16);
        made->tokenTable.segments = {{0, 61, SegmentKind::Context}, {61, hasAnswer ? 75 : 83, SegmentKind::Question}};
        if (hasAnswer) made->tokenTable.segments.push_back({75, 83, SegmentKind::Answer});
        return made;
    }
    void change(const std::function<void(Session&)>& edit) { bench->change(edit, "Test"); }
    void setTokens(int tokens) {
        change([&](Session& session) { setBudget(session, {Budget::Unit::Tokens, static_cast<double>(tokens)}); });
    }
    void killWorker() const {
        QFile pid(fake.path() + "/pid");
        QVERIFY(pid.open(QIODevice::ReadOnly));
        ::kill(pid.readAll().toInt(), SIGKILL);
    }
    const LiveAnswerJobs::Row& row(std::size_t index) const { return jobs.rows().at(index); }
    double nll(std::size_t index) const { return row(index).live.expected ? row(index).live.expected->nll : -1; }
    bool areCurrent() const {
        return std::ranges::none_of(jobs.rows(), [](const auto& one) { return one.isOutdated || one.isTextOutdated; });
    }
    /// What a pane keeps, by itself: the same requests, one after the other.
    double lossOf(std::size_t pane) const {
        live::LiveAnswers answers(bench->live());
        LiveRow row{.pane = bench->request()->panes.at(pane)};
        sendRow(row, bench->runner(), answers, {});
        askRows(std::span(&row, 1), answers, {.mostTokens = 0}, {});
        return row.expected->nll;
    }
};

} // namespace kvscope::testing
