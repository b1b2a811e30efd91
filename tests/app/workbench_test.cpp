// Races, stepped through by hand: tasks wait in a list until the test runs them, deliveries in another.
#include "core/capture/synthetic_capture.h"
#include "core/metrics/fidelity.h"
#include "tests/app/manual_workbench.h"
#include "tests/support/test_program.h"
#include "views/view.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

using namespace kvscope;
using namespace std::chrono_literals;
using kvscope::testing::kSample;
using kvscope::testing::ManualExecutor;

namespace {

std::unique_ptr<Workbench> makeWorkbench(ManualExecutor& executor) {
    auto bench = kvscope::testing::manualWorkbench(executor);
    bench->showView(viewById("key_projection"));
    return bench;
}

/// With the sample open and everything computed.
std::unique_ptr<Workbench> openedWorkbench(ManualExecutor& executor) {
    auto bench = makeWorkbench(executor);
    bench->openCapture(kSample);
    executor.runAll();
    return bench;
}

void setFraction(Workbench& bench, double fraction) {
    bench.change([&](Session& s) { setBudget(s, {Budget::Unit::Fraction, fraction}); }, "Budget");
}

/// With other scores, so that no choice is made at once.
void setFractionAndCut(Workbench& bench, double fraction, const std::string& cut) {
    bench.change(
        [&](Session& s) {
            setBudget(s, {Budget::Unit::Fraction, fraction});
            s.cut = cut;
        },
        "Budget and cut");
}

double shownFraction(const Workbench& bench, std::size_t pane) {
    const auto result = bench.viewInput().panes.at(pane).result;
    return result ? result->request.budget.value : -1;
}

} // namespace

class WorkbenchTest : public QObject {
    Q_OBJECT

private slots:
    void theFirstMinuteHasThreePanesAndTheNeedle() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        const ViewInput input = bench->viewInput();
        QCOMPARE(input.panes.size(), std::size_t{3});
        for (const PaneData& pane : input.panes) {
            QVERIFY2(pane.result && pane.result->fidelity && !pane.computing, pane.error.c_str());
            QVERIFY(pane.error.empty());
        }
        QVERIFY(bench->viewInput(viewById("key_projection")).data.value);
        QCOMPARE(input.focus.selectionName, std::string("needle"));
        QCOMPARE(input.focus.selected.size(), std::size_t{16});
    }

    void nothingIsComputedOnTheOwnersThread() {
        ManualExecutor executor;
        const auto bench = makeWorkbench(executor);
        bench->openCapture(kSample);
        QVERIFY(!bench->capture());
        executor.runTask();
        QVERIFY(!bench->capture());
        while (executor.deliver()) {
        }
        QVERIFY(bench->capture());
        QVERIFY(!bench->viewInput().panes[0].result);
        QVERIFY(bench->viewInput().panes[0].computing);
    }

    void theLatestBudgetWins() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        setFractionAndCut(*bench, 0.5, "last:100");
        setFractionAndCut(*bench, 0.1, "last:50");
        QVERIFY(bench->viewInput().panes[0].computing);
        QCOMPARE(shownFraction(*bench, 0), 0.25); // the old picture stays
        executor.runAll();
        for (std::size_t pane = 0; pane < 3; ++pane) QCOMPARE(shownFraction(*bench, pane), 0.1);
    }

    void aBudgetOfKnownScoresIsShownAtOnceAndMeasuredOnAWorker() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        setFraction(*bench, 0.5);
        std::vector<Selection> kept;
        for (const PaneData& pane : bench->viewInput().panes) {
            QCOMPARE(pane.result->request.budget.value, 0.5);
            QVERIFY(!pane.result->fidelity && pane.computing && !pane.outdated && pane.measured->fidelity);
            kept.push_back(pane.result->selection);
        }
        executor.runAll();
        for (std::size_t i = 0; i < kept.size(); ++i) {
            const PaneData pane = bench->viewInput().panes[i];
            QVERIFY(pane.result->fidelity && !pane.computing && pane.result->selection.sameLists(kept[i]));
            const LayerRunner alone(kvscope::testing::cpuRunner(1));
            const auto again = alone.run(pane.result->request, {});
            QVERIFY(again->selection.sameLists(kept[i]));
            QCOMPARE(again->fidelity->meanOutputError, pane.result->fidelity->meanOutputError);
            QCOMPARE(again->notes, pane.result->notes);
        }
    }

    void aChoiceThatIsNoRankingWaitsForAWorker() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        bench->change(
            [](Session& s) {
                s.panes = {{PolicySpec::parse("subgen_kcenter"), {}, {}},
                           {PolicySpec::parse("keydiff,prompt_block=512"), {}, {}}};
            },
            "Panes");
        executor.runAll();
        setFraction(*bench, 0.5);
        for (std::size_t pane = 0; pane < 2; ++pane) QCOMPARE(shownFraction(*bench, pane), 0.25);
        executor.runAll();
        for (std::size_t pane = 0; pane < 2; ++pane) QCOMPARE(shownFraction(*bench, pane), 0.5);
    }

    void whatAllPanesKeepComesBeforeAnyIsMeasured() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        setFractionAndCut(*bench, 0.5, "last:100");
        const auto isShown = [&] {
            return shownFraction(*bench, 0) == 0.5 && shownFraction(*bench, 1) == 0.5 &&
                   shownFraction(*bench, 2) == 0.5;
        };
        while (!isShown()) {
            QVERIFY(executor.runTask());
            while (executor.deliver()) {
            }
            for (const PaneData& pane : bench->viewInput().panes)
                QVERIFY(pane.result->request.budget.value != 0.5 || !pane.result->fidelity);
        }
        for (const PaneData& pane : bench->viewInput().panes)
            QVERIFY(pane.computing && pane.measured->fidelity); // the older numbers stay
        executor.runAll();
        for (const PaneData& pane : bench->viewInput().panes)
            QVERIFY(!pane.computing && pane.result->fidelity && pane.measured == pane.result);
    }

    void aResultThatCameTooLateIsNotShown() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        setFractionAndCut(*bench, 0.5, "last:100");
        while (executor.runTask()) { // all three have computed 0.5 and posted it
        }
        setFraction(*bench, 0.1);
        std::vector<double> shown;
        connect(bench.get(), &Workbench::paneChanged, this,
                [&](int pane) { shown.push_back(shownFraction(*bench, static_cast<std::size_t>(pane))); });
        executor.runAll();
        QVERIFY(!shown.empty());
        for (const double fraction : shown) QVERIFY2(fraction != 0.5, "a dropped result was shown");
        QCOMPARE(shownFraction(*bench, 0), 0.1);
    }

    void undoShowsAKnownResultAtOnce() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        setFraction(*bench, 0.5);
        executor.runAll();
        bench->undo();
        QCOMPARE(shownFraction(*bench, 0), 0.25);
        QVERIFY(!bench->viewInput().panes[0].computing);
    }

    void anotherHeadOfTheLayerComputesNoPolicy() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        const auto before = bench->viewInput().panes[0].result;
        bench->change([&](Session& s) { chooseKvHead(s, KvHeadIndex(0), *bench->capture()); }, "Head");
        QVERIFY(bench->viewInput().panes[0].result == before);
        QVERIFY(!bench->viewInput(viewById("key_projection")).data.value); // that one is of a head
        executor.runAll();
        QVERIFY(bench->viewInput(viewById("key_projection")).data.value);
    }

    void aViewThatNobodySeesAsksForNothing() {
        ManualExecutor executor;
        const auto bench = makeWorkbench(executor);
        bench->hideView(viewById("key_projection"));
        bench->openCapture(kSample);
        executor.runAll();
        QVERIFY(!bench->viewInput(viewById("key_projection")).data.value);
        bench->showView(viewById("key_projection"));
        QVERIFY(bench->viewInput(viewById("key_projection")).data.computing);
        executor.runAll();
        QVERIFY(bench->viewInput(viewById("key_projection")).data.value &&
                !bench->viewInput(viewById("key_projection")).data.computing);
    }

    void finishedDataOutliveHidingAndUnfinishedOnesAreAskedForAgain() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        const auto data = bench->viewInput(viewById("key_projection")).data.value;
        bench->hideView(viewById("key_projection"));
        bench->showView(viewById("key_projection"));
        QVERIFY(data && bench->viewInput(viewById("key_projection")).data.value == data);
        QVERIFY(!bench->viewInput(viewById("key_projection")).data.computing);

        bench->change([&](Session& s) { chooseKvHead(s, KvHeadIndex(0), *bench->capture()); }, "Head");
        bench->hideView(viewById("key_projection"));
        executor.runAll();
        QVERIFY(!bench->viewInput(viewById("key_projection")).data.value);
        bench->showView(viewById("key_projection"));
        executor.runAll();
        QVERIFY(bench->viewInput(viewById("key_projection")).data.value);
    }

    // An option of the drawing alone computes nothing; one of the data does.
    void onlyOptionsOfTheDataComputeAgain() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        const auto data = bench->viewInput(viewById("key_projection")).data.value;
        bench->change([](Session& s) { setViewOption(s, "key_projection", "x_component", "3"); }, "Option");
        QVERIFY(bench->viewInput(viewById("key_projection")).data.value == data);
        bench->change([](Session& s) { setViewOption(s, "key_projection", "source", "keys_pre_rope"); }, "Option");
        QVERIFY(bench->viewInput(viewById("key_projection")).data.computing);
        QVERIFY(
            !bench->viewInput(viewById("key_projection")).data.value); // rotated keys under another name would be wrong
    }

    void aResultOfAnotherLayerIsNotMixedIn() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        bench->change([](Session& s) { s.layer = LayerIndex(0); }, "Layer");
        QVERIFY(!bench->viewInput().panes[0].result);
        executor.runAll();
        QCOMPARE(bench->viewInput().panes[0].result->request.layer.value, 0);
    }

    void whatCannotBeOpenedIsReported() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        QSignalSpy failed(bench.get(), &Workbench::failed);
        bench->openCapture("/nowhere/at-all.h5");
        executor.runAll();
        QCOMPARE(failed.count(), 1);
        QVERIFY(failed[0][0].toString().contains("at-all.h5"));
        QVERIFY(bench->capture()); // nothing is lost
    }

    void aPaneThatFailsSaysWhyAndLeavesTheOthers() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        SessionPane recorded;
        recorded.recordedPath = "/nowhere/list.json";
        bench->change([&](Session& s) { addPane(s, recorded); }, "Add");
        executor.runAll();
        const ViewInput input = bench->viewInput();
        QVERIFY2(input.panes[3].error.find("list.json") != std::string::npos, input.panes[3].error.c_str());
        QVERIFY(!input.panes[3].computing);
        QVERIFY(input.panes[0].result);
    }

    void aCancelledPaneKeepsItsOlderResultOrSaysWhatToDo() {
        ManualExecutor executor;
        const auto bench = makeWorkbench(executor);
        bench->openCapture(kSample);
        executor.runTask();
        while (executor.deliver()) {
        }
        bench->cancelPane(0);
        executor.runAll();
        QVERIFY(!bench->viewInput().panes[0].result && !bench->viewInput().panes[0].computing);
        QVERIFY(bench->viewInput().panes[0].error.starts_with("Cancelled"));
        QCOMPARE(shownFraction(*bench, 1), 0.25);
        setFractionAndCut(*bench, 0.5, "last:100");
        bench->cancelPane(1);
        QVERIFY(bench->viewInput().panes[1].error.empty() && !bench->viewInput().panes[1].computing);
        executor.runAll();
        QCOMPARE(shownFraction(*bench, 0), 0.5);
        QCOMPARE(shownFraction(*bench, 1), 0.25);
    }

    void aBadCutIsAnErrorOfThePanes() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        bench->change([](Session& s) { s.cut = "5000"; }, "Cut");
        QVERIFY(!bench->viewInput().panes[0].error.empty());
        bench->undo();
        executor.runAll();
        QVERIFY(bench->viewInput().panes[0].error.empty());
        QVERIFY(bench->viewInput().panes[0].result);
    }

    void tasksThatOutliveTheWorkbenchAreHarmless() {
        ManualExecutor executor;
        {
            const auto bench = makeWorkbench(executor);
            bench->openCapture(kSample);
            QVERIFY(executor.runTask());
            QVERIFY(!executor.deliveries.empty()); // the capture, on its way to a workbench that goes
        }
        executor.runAll();
        QVERIFY(executor.tasks.empty() && executor.deliveries.empty());
    }

    void reloadKeepsTheSession() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        setFraction(*bench, 0.05);
        executor.runAll();
        bench->openCapture(kSample);
        executor.runAll();
        QCOMPARE(bench->session().budget.value, 0.05);
        QVERIFY(bench->history().canUndo());
    }

    void anotherTextInTheFileHasNoOldNeedle() {
        const QTemporaryDir folder;
        const std::string path = folder.filePath("changes.h5").toStdString();
        const auto write = [&](std::int64_t needle) {
            writeSyntheticCapture({.tokens = 200, .headDim = 8, .needleLength = needle}, path, 0, false, {});
        };
        write(14);
        ManualExecutor executor;
        const auto bench = makeWorkbench(executor);
        bench->openCapture(path);
        executor.runAll();
        QCOMPARE(bench->session().selectionName, std::string("needle"));
        write(0);
        bench->reload();
        executor.runAll();
        QCOMPARE(bench->session().selectionName, std::string());
    }

    /// Undo leads to what was shown of the file before it changed: as much of that as it still has.
    void undoAfterTheFileChanged() {
        const QTemporaryDir folder;
        const std::string path = folder.filePath("changes.h5").toStdString();
        const auto write = [&](int layers, int kvHeads, std::int64_t tokens) {
            writeSyntheticCapture({.tokens = tokens,
                                   .layers = layers,
                                   .queryHeads = 2 * kvHeads,
                                   .kvHeads = kvHeads,
                                   .headDim = 8,
                                   .needleLength = 0},
                                  path, 0, false, {});
        };
        for (const bool another : {false, true}) { // a second capture is opened in between
            write(4, 4, 400);
            ManualExecutor executor;
            const auto bench = makeWorkbench(executor);
            bench->openCapture(path);
            executor.runAll();
            bench->change(
                [](Session& s) {
                    s.layer = LayerIndex(3);
                    s.kvHead = KvHeadIndex(3);
                    s.queryHead = QueryHeadIndex(7);
                    s.selected = {10, 399};
                },
                "Head");
            executor.runAll();
            if (another) bench->openCapture(kSample);
            write(1, 1, 100);
            if (!another) bench->reload();
            executor.runAll();
            bench->undo();
            executor.runAll();
            QCOMPARE(bench->capture()->info().numTokens, std::int64_t{100});
            QCOMPARE(bench->session().layer, LayerIndex(0));
            QCOMPARE(bench->session().queryHead, QueryHeadIndex(0));
            QVERIFY(bench->session().selected.empty() || bench->session().selected.back() < 100);
            QVERIFY(bench->viewInput().panes.at(0).result);
            QVERIFY(bench->history().canRedo()); // the step is still one of many
        }
    }
};

KVSCOPE_CORE_TEST(WorkbenchTest)
#include "workbench_test.moc"
