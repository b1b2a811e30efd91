#pragma once

#include "app/workbench/live_answer_jobs.h"
#include "tests/app/answer_context.h"
#include "tests/app/manual_workbench.h"

#include <QtTest>

namespace kvscope::testing {

/// A workbench with a live context of 83 tokens, an expected answer of 8, and two panes.
struct LiveBench {
    FakeWorker fake;
    ManualExecutor executor;
    std::unique_ptr<Workbench> bench = manualWorkbench(executor);
    LiveAnswerJobs& jobs = LiveAnswerJobs::of(*bench);

    explicit LiveBench(bool hasAnswer = true, const std::string& mode = "right") : fake(contextWith(hasAnswer).get()) {
        bench->openLive(contextOf(fake, mode));
        executor.settle();
        change([](Session& session) {
            session.panes = {{specOfVariant("keydiff", {}), {}, {}}, {specOfVariant("snapkv", {}), {}, {}}};
            setBudget(session, {Budget::Unit::Tokens, 20});
        });
        executor.settle();
    }
    void change(const std::function<void(Session&)>& edit) { bench->change(edit, "Test"); }
    void setTokens(int tokens) {
        change([&](Session& session) { setBudget(session, {Budget::Unit::Tokens, static_cast<double>(tokens)}); });
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
