// When a drag is measured: at once, at its rest, and on the way.
#include "tests/app/manual_workbench.h"
#include "tests/support/test_program.h"

#include <QTest>

using namespace kvscope;
using namespace std::chrono_literals;
using kvscope::testing::kSample;
using kvscope::testing::ManualExecutor;

namespace {

/// With the sample open and everything computed.
std::unique_ptr<Workbench> openedWorkbench(ManualExecutor& executor) {
    auto bench = kvscope::testing::manualWorkbench(executor);
    bench->openCapture(kSample);
    executor.runAll();
    return bench;
}

void setFraction(Workbench& bench, double fraction) {
    bench.change([&](Session& s) { setBudget(s, {Budget::Unit::Fraction, fraction}); }, "Budget");
}

double shownFraction(const Workbench& bench) { return bench.viewInput().panes.at(0).result->request.budget.value; }

} // namespace

class WorkbenchDragTest : public QObject {
    Q_OBJECT

private slots:
    /// A measure that is not done when the next step comes would slow its picture down.
    void aDragFasterThanItsMeasuresIsMeasuredWhenItRests() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        const auto pane = [&] { return bench->viewInput().panes.at(0); };
        const auto first = pane().result;
        setFraction(*bench, 0.5); // is measured at once, as nothing says that more steps follow
        QVERIFY(!executor.tasks.empty());
        setFraction(*bench, 0.45);
        setFraction(*bench, 0.4);
        executor.runAll(); // what had begun for 0.5 is cancelled
        QVERIFY(pane().computing && !pane().outdated && pane().measured == first);
        QCOMPARE(shownFraction(*bench), 0.4);
        executor.clock.advance(79ms);
        QVERIFY(executor.tasks.empty());
        setFraction(*bench, 0.38);
        executor.clock.advance(79ms);
        QVERIFY(executor.tasks.empty());
        executor.clock.advance(1ms);
        executor.runAll();
        QVERIFY(!pane().computing && pane().measured == pane().result && pane().result->fidelity);
        QCOMPARE(shownFraction(*bench), 0.38);
        setFraction(*bench, 0.36); // the hand rested
        executor.runAll();
        QVERIFY(!pane().computing && pane().result->fidelity);
    }

    void theNumbersOfALongDragFollowAtALowerRate() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        const auto measured = [&] { return bench->viewInput().panes.at(0).measured->request.budget.value; };
        int step = 0;
        const auto drag = [&](int steps) {
            while (steps-- > 0) {
                executor.clock.advance(20ms);
                setFraction(*bench, 0.5 - 0.003 * ++step);
            }
        };
        drag(24);
        executor.runAll();
        QCOMPARE(measured(), 0.25); // none was made
        drag(6);
        QVERIFY(!executor.tasks.empty());
        executor.runAll(); // between two steps
        const double onTheWay = measured();
        QVERIFY2(onTheWay < 0.43 && onTheWay > 0.4, qPrintable(QString::number(onTheWay)));
        const PaneData pane = bench->viewInput().panes.at(0);
        QVERIFY(pane.computing && pane.measured != pane.result && pane.measured->fidelity);
        QCOMPARE(pane.result->request.budget.value, bench->session().budget.value);
        drag(15);
        executor.runAll();
        QCOMPARE(measured(), onTheWay);
        drag(10);
        executor.runAll();
        QVERIFY(measured() < onTheWay);
        executor.settle();
        QCOMPARE(measured(), bench->session().budget.value);
    }

    /// It compares numbers of two panes, so both must be of one step of the drag.
    void aPictureOfNumbersFollowsOnTheWay() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        const View& view = viewById("error_difference");
        const auto drawnFraction = [&] {
            const DrawnView drawn = bench->drawn(view);
            const auto of = [&](std::size_t pane) { return drawn.input.panes.at(pane).result->request.budget.value; };
            return of(0) == of(1) && view.whyNoPicture(drawn.input, drawn.options).empty() ? of(0) : -1;
        };
        QCOMPARE(drawnFraction(), 0.25);
        const double onTheWay = 0.5 - 0.003 * 24; // after half a second
        for (int step = 0; step < 30; ++step) {
            executor.clock.advance(20ms);
            setFraction(*bench, 0.5 - 0.003 * step);
            QCOMPARE(drawnFraction(), 0.25);
        }
        while (executor.runTask() || executor.deliver()) {
            const ViewInput now = bench->viewInput();
            const auto isMeasured = [&](const PaneData& pane) {
                return pane.measured->request.budget.value == onTheWay;
            };
            QCOMPARE(drawnFraction(), std::ranges::all_of(now.panes, isMeasured) ? onTheWay : 0.25);
        }
        QCOMPARE(drawnFraction(), onTheWay);
        QVERIFY(bench->drawn(view).isOutdated);
        executor.settle();
        QCOMPARE(drawnFraction(), bench->session().budget.value);
        QVERIFY(!bench->drawn(view).isOutdated);
    }

    void numbersOnTheWayDoNotReplaceNewerOnes() {
        ManualExecutor executor;
        const auto bench = openedWorkbench(executor);
        executor.clock.advance(1s);
        for (const double fraction : {0.5, 0.45}) setFraction(*bench, fraction);
        QVERIFY(!executor.tasks.empty());
        bench->undo(); // leads to numbers that are known
        bench->undo();
        executor.runAll();
        QCOMPARE(bench->viewInput().panes.at(0).measured->request.budget.value, 0.25);
    }
};

KVSCOPE_CORE_TEST(WorkbenchDragTest)
#include "workbench_drag_test.moc"
