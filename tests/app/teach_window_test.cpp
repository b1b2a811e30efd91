// Lessons, step player and the two layouts that need them, with real events sent to the whole window.
#include <QTest>

#include "app/study/session_file.h"
#include "app/window/actions/window_actions.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/panels/worst_heads.h"
#include "app/window/widgets/segmented_switch.h"
#include "app/window/widgets/step_scrubber.h"
#include "app/workbench/step_driver.h"
#include "core/policies/policy.h"
#include "tests/app/classroom.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"
#include "views/view.h"

#include <QAbstractItemModelTester>
#include <QAction>
#include <QDir>
#include <QPushButton>
#include <QRadioButton>
#include <QSettings>
#include <QTableView>
#include <QToolButton>

#include <memory>
#include <utility>

using namespace kvscope;
using kvscope::testing::Classroom;

namespace {

constexpr int kKeydiff = 5, kBlocks = 7; // numbers of lessons

} // namespace

class TeachWindowTest : public QObject {
    Q_OBJECT

    QByteArray m_of; ///< the test whose rows share the room
    std::unique_ptr<Classroom> m_room;

    /// One window for the rows of a test as long as they want the same size: a reader opens lesson after lesson.
    Classroom& sharedRoom(QSize size) {
        if (m_room && m_room->window.size() != size) m_room.reset();
        if (!m_room) m_room = std::make_unique<Classroom>(size);
        return *m_room;
    }

private slots:
    void init() {
        QSettings().clear();
        if (std::exchange(m_of, QTest::currentTestFunction()) != QTest::currentTestFunction()) m_room.reset();
    }
    void cleanupTestCase() { m_room.reset(); }

    void teachShowsLessonsStepsAndThePlayer() {
        Classroom open;
        open.openLesson(kBlocks);
        for (const char* shown : {"lessons", "lesson", "steps", "block_timeline"})
            QTRY_VERIFY2(open.dock(shown)->isVisible() && !open.dock(shown)->visibleRegion().isEmpty(), shown);
        QVERIFY(!open.window.canvases()->isVisible()); // no panes in this layout
        QTRY_VERIFY(open.steps().view() && open.steps().view()->card().id == "block_timeline");
        QVERIFY(open.window.windowTitle().contains("needle-1k.h5")); // no session's file was taken over
        QVERIFY(open.bench.session().look.cursor.has_value());
    }

    void theAnswerIsComputedAfterAPrediction() {
        Classroom open;
        open.openLesson(kBlocks);
        auto* show = open.find<QPushButton>("lessonAnswerButton");
        QVERIFY(!show->isEnabled()); // predict first
        QTest::mouseClick(open.find<QRadioButton>("lessonChoice0"), Qt::LeftButton, {}, QPoint(8, 12));
        QVERIFY(show->isEnabled());
        QTest::mouseClick(show, Qt::LeftButton);
        auto* verdict = open.find<QLabel>("lessonVerdict");
        QTRY_VERIFY_WITH_TIMEOUT(verdict->text().startsWith("Computed: ") && verdict->text().contains("More than half"),
                                 60'000);
        const QString before = verdict->text();
        QVERIFY(open.find<QLabel>("lessonAnswer")->text().contains("(K10 in the manual"));
        QVERIFY(open.find<QPushButton>("lesson7")->accessibleName().contains("answered"));
        // Another setting, another number, without asking again.
        QTest::mouseClick(open.find<QPushButton>("lessonStop3"), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(open.settled() && verdict->text() != before && verdict->text().contains('%'), 60'000);
        QTest::keyClick(&open.window, Qt::Key_Z, Qt::ControlModifier); // one step takes it back
        QTRY_COMPARE_WITH_TIMEOUT(verdict->text(), before, 60'000);
    }

    void aStopLeadsThere() {
        Classroom open;
        open.openLesson(kBlocks);
        auto* stop = open.find<QPushButton>("lessonStop1");
        QTest::mouseClick(stop, Qt::LeftButton);
        QCOMPARE(open.cursor(), std::optional<TokenIndex>(384));
        QVERIFY(stop->isChecked() && !open.find<QPushButton>("lessonStop0")->isChecked());
        QTest::mouseClick(stop, Qt::LeftButton);
        QVERIFY(stop->isChecked()); // where one is stays marked
        QTRY_VERIFY(open.find<QLabel>("stepCaption")->text().contains("128 leave"));
    }

    // "Back to blocks of 128" asks for what the first stops ask for: only the chosen one is marked.
    void oneStopIsMarked() {
        Classroom open;
        open.openLesson(kBlocks);
        const auto marked = [&] {
            std::vector<int> stops;
            for (int i = 0; auto* stop = open.find<QPushButton>(qPrintable(QString("lessonStop%1").arg(i))); ++i)
                if (stop->isChecked()) stops.push_back(i);
            return stops;
        };
        for (const int stop : {0, 4, 3, 2, 4, 1}) {
            QTest::mouseClick(open.find<QPushButton>(qPrintable(QString("lessonStop%1").arg(stop))), Qt::LeftButton);
            QCOMPARE(marked(), std::vector<int>{stop});
        }
        open.bench.change([](Session& s) { s.look.cursor = 7; }, "Step");
        QVERIFY(marked().empty());
    }

    void everyButtonOfThePlayerDoesWhatItSays() {
        Classroom open;
        open.openLesson(kBlocks);
        open.bench.change([](Session& s) { s.look.reducedMotion = true; }, "Reduced motion");
        QTRY_COMPARE(open.steps().steps(), 7);
        open.steps().goTo(4);
        const auto click = [&](const char* name) { QTest::mouseClick(open.find<QToolButton>(name), Qt::LeftButton); };
        click("stepBack");
        QCOMPARE(open.steps().step(), 3);
        click("stepForward");
        QCOMPARE(open.steps().step(), 4);
        click("stepLast");
        QCOMPARE(open.steps().step(), 7);
        QVERIFY(!open.find<QToolButton>("stepForward")->isEnabled() &&
                !open.find<QToolButton>("stepLast")->isEnabled());
        click("stepFirst");
        QCOMPARE(open.steps().step(), 0);
        QVERIFY(!open.find<QToolButton>("stepBack")->isEnabled() && !open.find<QToolButton>("stepFirst")->isEnabled());
        click("stepPlay");
        QVERIFY(open.steps().isPlaying());
        QCOMPARE(open.steps().step(), 1);
        click("stepPlay");
        QVERIFY(!open.steps().isPlaying());
    }

    void keysPlayAndStep() {
        Classroom open;
        open.openLesson(kBlocks);
        open.bench.change([](Session& s) { s.look.reducedMotion = true; }, "Reduced motion");
        QTRY_COMPARE(open.steps().steps(), 7);
        open.steps().goTo(1);
        QTest::keyClick(&open.window, Qt::Key_Right);
        QCOMPARE(open.steps().step(), 2);
        QTest::keyClick(&open.window, Qt::Key_Left);
        QCOMPARE(open.steps().step(), 1);
        QTest::keyClick(&open.window, Qt::Key_Space);
        QVERIFY(open.steps().isPlaying());
        QCOMPARE(open.steps().step(), 2); // at once, not after the first pause
        QTest::keyClick(&open.window, Qt::Key_Space);
        QVERIFY(!open.steps().isPlaying());
    }

    void aWidgetWithTheFocusKeepsItsKeys() {
        Classroom open;
        open.openLesson(kBlocks);
        QTRY_COMPARE(open.steps().steps(), 7);
        open.steps().goTo(3);
        auto* last = open.find<QToolButton>("stepLast");
        last->setFocus();
        QTest::keyClick(last, Qt::Key_Space); // presses the button
        QCOMPARE(open.steps().step(), 7);
        QVERIFY(!open.steps().isPlaying());
        auto* find = open.find<QWidget>("find");
        find->setFocus();
        QTest::keyClick(find, Qt::Key_Left);
        QTest::keyClick(find, Qt::Key_Space);
        QCOMPARE(open.steps().step(), 7);
        QVERIFY(!open.steps().isPlaying());
        auto* scrubber = open.find<StepScrubber>("stepScrubber");
        scrubber->setFocus();
        QTest::keyClick(scrubber, Qt::Key_Left); // the slider's own step
        QCOMPARE(open.steps().step(), 6);
    }

    void arrowsMoveAPinnedReadOutAndNotTheSteps() {
        Classroom open;
        open.bench.change([](Session& s) { s.panes[0].policy = PolicySpec::parse("keydiff,prompt_block=128"); },
                          "Policy");
        open.waitForResults();
        open.dock("block_timeline")->present();
        QTRY_COMPARE(open.steps().steps(), 7);
        open.steps().goTo(3);
        const QPoint at = open.widgetPointOf(0, 620);
        CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
        QTest::mouseClick(canvas, Qt::LeftButton, {}, at);
        QTRY_VERIFY(open.pane(0)->canvas()->readOut()->isPinned());
        const TokenIndex pinned = open.pane(0)->canvas()->readOut()->token();
        canvas->setFocus();
        QTest::keyClick(canvas, Qt::Key_Right);
        QCOMPARE(open.pane(0)->canvas()->readOut()->token(), pinned + 1);
        QTest::keyClick(&open.window, Qt::Key_Right); // wherever the focus is
        QCOMPARE(open.steps().step(), 3);
        QTest::keyClick(&open.window, Qt::Key_Escape);
        QTest::keyClick(&open.window, Qt::Key_Right);
        QCOMPARE(open.steps().step(), 4);
    }

    // The tree plays BalanceKV although no pane runs it: the text beside it is of that, until another sequence is
    // played.
    void theExplanationFollowsTheSteps() {
        Classroom open;
        const auto name = [&] { return open.find<QLabel>("explanationName")->text(); };
        const QString own = QString::fromStdString(policyById(open.bench.session().panes[0].policy.policy).card().name);
        QCOMPARE(name(), own);
        QTest::keyClick(&open.window, Qt::Key_3, Qt::ControlModifier);
        open.dock("merge_tree")->present();
        QTRY_VERIFY(open.steps().view() && open.steps().view()->card().id == "merge_tree");
        QTRY_COMPARE(name(), QString::fromStdString(policyById("balancekv_stream").card().name));
        QVERIFY(open.find<QLabel>("explanationPaper")->text().endsWith("Steps: Merge-and-reduce tree"));
        QVERIFY(open.find<QLabel>("explanation")->text().contains("Merge", Qt::CaseInsensitive));
        open.bench.change([](Session& s) { s.panes[0].policy = PolicySpec::parse("keydiff,prompt_block=128"); },
                          "Policy");
        open.dock("block_timeline")->present();          // tells the active pane's
        open.steps().prefer(viewById("block_timeline")); // as a click into it does; the walk beside it has steps too
        QTRY_VERIFY(open.steps().view() && open.steps().view()->card().id == "block_timeline");
        QTRY_COMPARE(name(), QString("KeyDiff"));
        open.dock("merge_tree")->present();
        open.steps().prefer(viewById("merge_tree"));
        QTRY_VERIFY(name() != "KeyDiff");
        QTest::keyClick(&open.window, Qt::Key_2, Qt::ControlModifier); // compare: the pane is what one looks at
        QTRY_COMPARE(name(), QString("KeyDiff"));
    }

    void theScrubberGoesToTheEventUnderThePointer() {
        Classroom open;
        open.openLesson(kBlocks);
        QTRY_COMPARE(open.steps().steps(), 7);
        auto* scrubber = open.find<StepScrubber>("stepScrubber");
        QCOMPARE(scrubber->tickCount(), 7);
        QTest::mousePress(scrubber, Qt::LeftButton, {}, QPoint(scrubber->width() / 2, scrubber->height() / 2));
        QVERIFY(open.steps().step() == 3 || open.steps().step() == 4);
        QTest::mouseMove(scrubber, QPoint(scrubber->width() - 4, scrubber->height() / 2));
        QTest::mouseRelease(scrubber, Qt::LeftButton, {}, QPoint(scrubber->width() - 4, scrubber->height() / 2));
        QCOMPARE(open.steps().step(), 7);
        QVERIFY(!open.cursor());
        QCOMPARE(open.find<QLabel>("stepCount")->text(), QString("step 7 of 7"));
    }

    void noFramesAreDrawnWhileNothingPlays() {
        Classroom open;
        open.openLesson(kBlocks);
        QTRY_COMPARE(open.steps().steps(), 7);
        open.steps().goTo(2);
        QVERIFY(!open.framesWhenStill().empty());
        std::vector<int> before;
        for (ViewDock* dock : open.window.canvases()->docks())
            before.push_back(dock->canvas()->canvas()->framesDrawn());
        // A step redraws the views with a step sequence, and no others.
        open.steps().goTo(3);
        QVERIFY(!open.framesWhenStill().empty());
        std::size_t i = 0;
        for (ViewDock* dock : open.window.canvases()->docks()) {
            const View& view = dock->canvas()->view();
            const bool drawn = dock->canvas()->canvas()->framesDrawn() > before[i++];
            const bool told =
                !view.stepSequence(open.bench.viewInput(view), viewOptions(open.bench.session(), view)).events.empty();
            QVERIFY2(told || !drawn, view.card().id.c_str()); // all step sequences share the cursor
            QVERIFY(drawn || view.card().id != "block_timeline");
        }
    }

    void everyLessonOpensWithPicturesAtEverySize_data() {
        QTest::addColumn<int>("lesson");
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(1280, 800), QSize(1440, 900)})
            for (int lesson = 1; lesson <= kvscope::testing::kLessons; ++lesson)
                QTest::newRow(qPrintable(QString("%1 at %2x%3").arg(lesson).arg(size.width()).arg(size.height())))
                    << lesson << size;
    }
    void everyLessonOpensWithPicturesAtEverySize() {
        QFETCH(int, lesson);
        QFETCH(QSize, size);
        Classroom& open = sharedRoom(size);
        QTest::keyClick(&open.window, Qt::Key_3, Qt::ControlModifier);
        open.arrange();
        QVERIFY(size.width() >= 1360 || !open.dock("lessons")->isVisible()); // a narrow window folds the list
        open.openLesson(lesson);
        open.arrange();
        // Text, stops and question are in sight without scrolling.
        auto parts = open.dock("lesson")->findChildren<QWidget*>("lessonText");
        parts << open.find<QWidget>("lessonAnswerButton");
        for (const auto* widget : parts) QTRY_COMPARE(widget->visibleRegion().boundingRect().size(), widget->size());
        const bool hasSteps = open.cursor().has_value(); // else its pictures have the player's room
        QCOMPARE(open.dock("steps")->isVisible(), hasSteps);
        QVERIFY(!hasSteps || open.dock("steps")->visibleRegion().boundingRect().height() >= px(130));
        int drawn = 0;
        for (ViewDock* dock : open.window.canvases()->docks()) {
            CanvasWidget* canvas = dock->canvas()->canvas();
            if (canvas->visibleRegion().isEmpty()) continue;
            QTRY_VERIFY2(!canvas->scene().items.empty(), dock->canvas()->view().card().id.c_str());
            ++drawn;
        }
        QVERIFY(drawn >= 2);
        QVERIFY(open.window.notices().messages().isEmpty());
    }

    // However the window came to its first lesson, and whatever size it is given then.
    void thePlayerIsHiddenInALessonWithoutSteps() {
        Classroom open;
        open.window.openPath(QString::fromStdString(open.window.lessons().at(kKeydiff - 1).path));
        QTRY_VERIFY(lessonOf(open.bench.session()).has_value());
        open.settle();
        QVERIFY(!open.dock("steps")->isVisible());
        open.window.resize(1280, 800); // narrow: arranged anew
        open.settle();
        QVERIFY(!open.dock("steps")->isVisible());
        open.window.openPath(QString::fromStdString(open.window.lessons().at(kBlocks - 1).path));
        QTRY_VERIFY(open.dock("steps")->isVisible());
    }

    void aLessonOpenedFromAnotherLayoutShowsItsOwnViews_data() {
        QTest::addColumn<QString>("file");
        const QDir folder(QString::fromStdString(kvscope::testing::sourceDir() + "/resources/lessons"));
        for (const QString& file : folder.entryList({"*.kvscope"}))
            QTest::newRow(qPrintable(file)) << folder.filePath(file);
    }
    void aLessonOpenedFromAnotherLayoutShowsItsOwnViews() {
        QFETCH(QString, file);
        Classroom open;
        QTest::keyClick(&open.window, Qt::Key_1, Qt::ControlModifier); // Explore head
        open.arrange();
        const auto titleOf = [](const Session& session) {
            const auto lesson = lessonOf(session);
            return lesson ? lesson->title : std::string();
        };
        open.window.openPath(file);
        QTRY_COMPARE(titleOf(open.bench.session()), titleOf(readSession(file.toStdString())));
        const std::vector<std::string> views = lessonOf(open.bench.session())->views;
        QVERIFY(!views.empty());
        QTRY_VERIFY2(!open.dock(views.front().c_str())->visibleRegion().isEmpty(), views.front().c_str());
        open.settle(); // and stays there
        QVERIFY2(!open.dock(views.front().c_str())->visibleRegion().isEmpty(), views.front().c_str());
    }

    void layoutsKeepWhatWasMadeOfThem() {
        Classroom open;
        open.openLesson(kBlocks);
        QTest::mouseClick(open.dock("steps")->titleBarWidget()->findChild<QToolButton*>("hideDock"), Qt::LeftButton);
        QVERIFY(!open.dock("steps")->isVisible());
        QTest::keyClick(&open.window, Qt::Key_2, Qt::ControlModifier);
        QTRY_VERIFY(open.window.canvases()->isVisible() && open.dock("overlap")->isVisible());
        QVERIFY(!open.dock("lessons")->isVisible());
        QTest::keyClick(&open.window, Qt::Key_3, Qt::ControlModifier);
        QTRY_VERIFY(open.dock("lessons")->isVisible());
        QVERIFY(!open.dock("steps")->isVisible());
        open.window.actions()->byName("resetPanels")->trigger();
        QVERIFY(open.dock("steps")->isVisible());
    }

    void theSwitchHasAllFourLayouts() {
        Classroom open;
        auto* layouts = open.find<SegmentedSwitch>("layoutSwitch");
        layouts->setFocus();
        const WindowLayout order[] = {WindowLayout::ExploreHead, WindowLayout::ComparePolicies, WindowLayout::Teach,
                                      WindowLayout::WholeModel};
        QTest::keyClick(layouts, Qt::Key_Left);
        for (int i = 0; i < 4; ++i) {
            QCOMPARE(open.bench.session().layout, order[i]);
            QCOMPARE(layouts->current(), i);
            QTest::keyClick(layouts, Qt::Key_Right);
        }
    }

    void theWholeModelListsTheHeadsThatLoseMost() {
        Classroom open;
        QTest::keyClick(&open.window, Qt::Key_4, Qt::ControlModifier);
        for (const char* shown : {"head_grid", "curves", "worst_heads"})
            QTRY_VERIFY2(open.dock(shown)->isVisible(), shown);
        QVERIFY(!open.dock("capture")->isVisible() && open.find<QToolButton>("unfold")->isVisible());
        const auto data = [&] { return dataAs<HeadGridData>(open.bench.viewInput(viewById("head_grid"))); };
        QTRY_VERIFY_WITH_TIMEOUT(data() && !open.bench.viewInput(viewById("head_grid")).data.computing, 20000);
        auto* table = open.find<QTableView>("worstHeads");
        const QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(table->model()->rowCount(), 48); // six layers of eight query heads
        double worst = -1;
        int layer = 0, head = 0;
        for (const HeadGridData::Row& row : data()->rows)
            for (int column = 0; column < data()->columns; ++column)
                if (row.values[static_cast<std::size_t>(column)] > worst) {
                    worst = row.values[static_cast<std::size_t>(column)];
                    layer = row.layer;
                    head = column;
                }
        QCOMPARE(table->model()->index(0, 0).data().toInt(), layer);
        QCOMPARE(table->model()->index(0, 1).data().toInt(), head);
        QTest::mouseClick(table->viewport(), Qt::LeftButton, {},
                          table->visualRect(table->model()->index(0, 0)).center());
        QCOMPARE(open.bench.session().layer.value, layer);
        QCOMPARE(open.bench.session().queryHead.value, head);
    }

    void worstHeadsSortEveryKindOfQuantity() {
        HeadGridData data;
        data.columns = 2;
        data.rows = {{0, true, {0.2, NAN}}, {1, true, {0.9, 0.2}}, {2, false, {5, 5}}};
        QCOMPARE(worstHeads(data), (std::vector<RankedHead>{{1, 0, 0.9}, {0, 0, 0.2}, {1, 1, 0.2}}));
        data.higherIsBetter = true;
        QCOMPARE(worstHeads(data).front(), (RankedHead{0, 0, 0.2}));
        data.neverIsNan = true;
        QVERIFY(std::isnan(worstHeads(data).front().value) && worstHeads(data).size() == 4);
    }
};

KVSCOPE_WINDOW_TEST(TeachWindowTest)
#include "teach_window_test.moc"
