// The step player without its buttons: which steps are played, where each command leads, and that nothing moves by
// itself.
#include <QSignalSpy>
#include <QTest>

#include "app/workbench/step_driver.h"
#include "tests/app/manual_workbench.h"
#include "tests/support/test_program.h"
#include "views/view.h"

using namespace kvscope;
using kvscope::testing::ManualExecutor;

namespace {

/// A workbench that shows KeyDiff in blocks of 128, budget 249: seven blocks of 995 tokens evict.
struct BlockSteps {
    ManualExecutor executor;
    std::unique_ptr<Workbench> bench = kvscope::testing::manualWorkbench(executor);
    StepDriver driver{*bench};

    BlockSteps() {
        bench->openCapture(kvscope::testing::kSample);
        executor.runAll();
        bench->change([](Session& s) { s.panes = {{PolicySpec::parse("keydiff,prompt_block=128"), {}, {}}}; }, "Panes");
        bench->showView(viewById("key_projection"));
        bench->showView(viewById("block_timeline"));
        executor.runAll();
        QTRY_VERIFY(driver.steps() > 0);
    }
    void reduceMotion() {
        bench->change([](Session& s) { s.look.reducedMotion = true; }, "Reduced motion");
    }
    std::optional<TokenIndex> cursor() const { return bench->session().look.cursor; }
};

} // namespace

class StepDriverTest : public QObject {
    Q_OBJECT

private slots:
    void theStepsAreThoseOfTheShownViewThatHasSome() {
        BlockSteps stage;
        QCOMPARE(stage.driver.view(), &viewById("block_timeline"));
        const auto steps = stage.bench->viewInput().panes[0].result->steps;
        QCOMPARE(stage.driver.steps(), static_cast<int>(steps.size()));
        QCOMPARE(stage.driver.stepSequence().events[1], steps[1].end);
        QCOMPARE(stage.driver.step(), stage.driver.steps()); // without a cursor all has happened
        stage.bench->hideView(viewById("block_timeline"));
        QTRY_COMPARE(stage.driver.steps(), 0);
        QVERIFY(stage.driver.caption().isEmpty());
    }

    void stepsLeadFromEventToEvent() {
        BlockSteps stage;
        const std::vector<TokenIndex> events = stage.driver.stepSequence().events;
        stage.driver.goTo(0);
        QCOMPARE(stage.cursor(), std::optional<TokenIndex>(0));
        for (int step = 1; step < stage.driver.steps(); ++step) {
            stage.driver.goTo(step);
            QCOMPARE(stage.cursor(), std::optional(events[static_cast<std::size_t>(step - 1)]));
            QCOMPARE(stage.driver.step(), step);
        }
        stage.driver.goTo(stage.driver.steps());
        QVERIFY(!stage.cursor()); // the end is where sessions without a cursor are
        stage.driver.stepBy(1);
        QVERIFY(!stage.cursor());
        stage.driver.stepBy(-1);
        QCOMPARE(stage.cursor(), std::optional(events[events.size() - 2]));
        stage.driver.stepBy(-100);
        QCOMPARE(stage.cursor(), std::optional<TokenIndex>(0));
    }

    void aCursorBetweenEventsCountsWhatHasHappened() {
        BlockSteps stage;
        const std::vector<TokenIndex> events = stage.driver.stepSequence().events;
        stage.bench->setCursor(events[2] + 1);
        QCOMPARE(stage.driver.step(), 3);
        stage.bench->setCursor(events[2] - 1);
        QCOMPARE(stage.driver.step(), 2);
        stage.driver.stepBy(-1); // an instant step back
        QCOMPARE(stage.cursor(), std::optional(events[0]));
    }

    void aStepGlidesThroughTheTokensUnlessMotionIsReduced() {
        BlockSteps stage;
        const std::vector<TokenIndex> events = stage.driver.stepSequence().events;
        stage.driver.goTo(1);
        QSignalSpy moves(stage.bench.get(), &Workbench::cursorChanged);
        stage.driver.stepBy(1);
        QVERIFY(*stage.cursor() > events[0] && *stage.cursor() < events[1]);
        QCOMPARE(stage.driver.step(), 2); // the player is there already
        stage.executor.clock.advance(std::chrono::milliseconds(100));
        QVERIFY(stage.driver.isGliding() && *stage.cursor() < events[1]);
        QVERIFY(moves.size() > 3);
        stage.executor.clock.advance(std::chrono::milliseconds(140));
        QCOMPARE(stage.cursor(), std::optional(events[1]));
        QVERIFY(!stage.driver.isGliding());
        stage.reduceMotion();
        stage.driver.stepBy(1);
        QCOMPARE(stage.cursor(), std::optional(events[2]));
        stage.bench->change([](Session& s) { s.look.reducedMotion = false; }, "Motion");
        stage.driver.setMotionReduced(true); // the desktop says it
        stage.driver.stepBy(1);
        QVERIFY(!stage.driver.isGliding());
        QCOMPARE(stage.cursor(), std::optional(events[3]));
    }

    void playingEndsAtTheEndAndThenNothingMoves() {
        BlockSteps stage;
        stage.reduceMotion();
        stage.driver.setSpeed(20);
        stage.driver.play(); // from the end: again from the first event
        QVERIFY(stage.driver.isPlaying());
        QCOMPARE(stage.driver.step(), 1);
        stage.executor.settle();
        QCoreApplication::processEvents();
        QVERIFY(!stage.driver.isPlaying());
        QVERIFY(!stage.cursor());
        QSignalSpy moves(stage.bench.get(), &Workbench::cursorChanged);
        QSignalSpy changes(&stage.driver, &StepDriver::changed);
        QVERIFY(!stage.executor.clock.expireNext());
        QCoreApplication::processEvents();
        QCOMPARE(moves.size() + changes.size(), 0);
    }

    void pauseAndStepsByHandStopPlaying() {
        BlockSteps stage;
        stage.reduceMotion();
        stage.driver.play();
        stage.driver.toggle();
        QVERIFY(!stage.driver.isPlaying());
        stage.driver.play();
        stage.driver.stepBy(1);
        QVERIFY(!stage.driver.isPlaying());
        stage.driver.play();
        stage.bench->change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.1}); }, "Budget");
        stage.executor.runAll();
        QTRY_VERIFY(!stage.driver.isPlaying()); // other steps
    }

    void longStoriesArePlayedFaster() {
        QCOMPARE(StepDriver::stepMilliseconds(4), 1600);
        QCOMPARE(StepDriver::stepMilliseconds(100), 400);
        QVERIFY(StepDriver::stepMilliseconds(100'000) >= 50);
    }

    void steppingIsNoStepOfUndoAndComputesNothing() {
        BlockSteps stage;
        const std::string label = stage.bench->history().undoLabel();
        stage.driver.goTo(2);
        QCOMPARE(stage.bench->history().undoLabel(), label);
        QVERIFY(stage.executor.tasks.empty());
        stage.bench->change([](Session& s) { s.selected = {5}; }, "Selection");
        stage.bench->undo();
        QCOMPARE(stage.driver.step(), 2); // undoing something else leaves the cursor where it is
    }

    void captionsSayWhatTheStepDid() {
        BlockSteps stage;
        stage.driver.goTo(1);
        const BlockStep& first = stage.bench->viewInput().panes[0].result->steps[0];
        const int head = stage.bench->session().kvHead.value;
        const QString caption = stage.driver.caption();
        QVERIFY2(caption.contains(QString("the cache holds %1").arg(first.cached)), qPrintable(caption));
        QVERIFY2(caption.contains(QString("%1 leave").arg(first.evicted[static_cast<std::size_t>(head)].size())),
                 qPrintable(caption));
        stage.driver.goTo(0);
        QVERIFY(stage.driver.caption().contains("the cache holds all"));
    }

    void milestonesAreBlocksThatLoseSelectedTokens() {
        BlockSteps stage;
        const auto steps = stage.bench->viewInput().panes[0].result->steps;
        const TokenIndex lost = steps[2].evicted[static_cast<std::size_t>(stage.bench->session().kvHead.value)].front();
        stage.bench->change([&](Session& s) { s.selected = {lost}; }, "Selection");
        QTRY_VERIFY(stage.driver.isMilestone(3));
        QVERIFY(!stage.driver.isMilestone(1) && !stage.driver.isMilestone(2));
    }
};

KVSCOPE_CORE_TEST(StepDriverTest)
#include "step_driver_test.moc"
