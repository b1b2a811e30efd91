// What stands on the screen in every single frame while the budget is dragged: numbers that are there, whole and in
// their place, dimmed while they are older than the budget, and headlines of the picture that is drawn.
#include "app/text/qt_text_service.h"
#include "app/window/canvas/canvas_widget.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/value_slider.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QContextMenuEvent>
#include <QFontMetrics>
#include <QLineEdit>
#include <QMouseEvent>
#include <QSettings>
#include <QSignalSpy>
#include <QWheelEvent>

#include <map>

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

/// Everything about a number that a reader sees.
struct SeenNumber {
    QString text;
    QRect place; ///< in the window
    bool isDimmed, isWhole;
};

struct SeenPane {
    SeenNumber error, kept;
    double wanted = 0, drawn = 0; ///< budgets, as fractions
    qint64 drawnTokens = 0;
};

struct Frame {
    std::vector<SeenPane> panes;
    std::vector<SeenNumber> others;                           ///< of the Fidelity panel and the budget bar
    std::map<QString, std::pair<QString, QString>> headlines; ///< by view: as shown, as of the drawn picture
};

SeenNumber seen(const OpenWindow& open, const LiveNumber& number) {
    const QRect place(number.mapTo(&open.window, QPoint(0, 0)), number.size());
    const QRect parent(number.parentWidget()->mapTo(&open.window, QPoint(0, 0)), number.parentWidget()->size());
    return {number.text(), place, number.isDimmed(),
            number.isVisible() && number.width() >= number.sizeHint().width() && parent.contains(place)};
}

/// Looks at the window after every frame of a canvas, and whenever it is told to.
class FrameLog : public QObject {
public:
    explicit FrameLog(OpenWindow& open) : m_open(open) {
        for (CanvasWidget* canvas : open.window.findChildren<CanvasWidget*>())
            connect(canvas, &CanvasWidget::painted, this, [this] { look(); });
    }
    std::vector<Frame> frames;

    void look() {
        Frame frame;
        const ViewInput input = m_open.bench.viewInput();
        for (std::size_t i = 0; i < input.panes.size(); ++i) {
            const auto* header = m_open.pane(i)->header();
            const auto& result = input.panes[i].result;
            const auto number = [&](const char* name) { return seen(m_open, *header->findChild<LiveNumber*>(name)); };
            frame.panes.push_back({number("paneError"), number("paneKept"),
                                   effectiveBudget(m_open.bench.session(), i).value,
                                   result ? result->request.budget.value : -1,
                                   result ? std::llround(result->selection.heads[1].attendedTokens()) : -1});
        }
        for (const LiveNumber* number : m_open.window.budgetBar()->findChildren<LiveNumber*>())
            if (number->isVisible()) frame.others.push_back(seen(m_open, *number));
        frame.others.push_back(seen(m_open, *m_open.window.findChild<LiveNumber*>("leadError")));
        for (const ViewDock* dock : m_open.window.canvases()->docks())
            if (dock->isVisible())
                frame.headlines[QString::fromStdString(dock->canvas()->view().card().id)] = {
                    dock->header()->findChild<ElidedLabel*>("viewFinding")->accessibleName(),
                    dock->canvas()->finding()};
        frames.push_back(std::move(frame));
    }

private:
    OpenWindow& m_open;
};

} // namespace

class WindowDragTest : public QObject {
    Q_OBJECT

    static constexpr int kSteps = 18;

    /// Drags with the mouse and looks after every step; in every third one its results arrive then.
    static std::vector<Frame> framesOfADrag(OpenWindow& open) {
        FrameLog log(open);
        ValueSlider* slider = open.window.budgetBar()->slider();
        const auto at = [&](int step) { return QPoint(slider->width() * (30 + step) / 60, slider->height() / 2); };
        QTest::mousePress(slider, Qt::LeftButton, {}, at(0));
        for (int step = 1; step <= kSteps; ++step) {
            QTest::mouseMove(slider, at(step));
            open.arrange(); // frames while results are awaited
            log.look();
            if (step % 3 == 0) open.waitForResults();
        }
        QTest::mouseRelease(slider, Qt::LeftButton, {}, at(kSteps));
        open.finish();
        return log.frames;
    }

    /// Then no budget is shown at once: there are no scores that it only ranks.
    static void processInBlocks(OpenWindow& open) {
        open.bench.change(
            [](Session& s) {
                for (SessionPane& pane : s.panes) pane.policy.values.setText("prompt_block", "512");
            },
            "Blocks");
        open.waitForResults();
        open.settle();
    }

private slots:
    void init() { QSettings().clear(); }

    void everyFrameOfADragShowsItsBudgetWhereScoresAreKnown() {
        OpenWindow open;
        open.settle();
        const std::vector<Frame> frames = framesOfADrag(open);
        QVERIFY2(frames.size() > 20, qPrintable(QString::number(frames.size())));
        for (const Frame& frame : frames)
            for (const SeenPane& pane : frame.panes) {
                QCOMPARE(pane.drawn, pane.wanted);
                QVERIFY(!pane.kept.isDimmed);
                QCOMPARE(QString(pane.kept.text).remove(','), QString::number(pane.drawnTokens));
            }
    }

    void everyFrameOfADragIsWholeAndTrue() {
        OpenWindow open;
        processInBlocks(open);
        const std::vector<Frame> frames = framesOfADrag(open);
        QVERIFY2(frames.size() > 20, qPrintable(QString::number(frames.size())));
        int outdated = 0;
        for (const Frame& frame : frames) {
            QCOMPARE(frame.panes.size(), std::size_t{3});
            for (std::size_t i = 0; i < frame.panes.size(); ++i) {
                const SeenPane &pane = frame.panes[i], &first = frames.front().panes[i];
                for (const SeenNumber& number : {pane.error, pane.kept})
                    QVERIFY2(number.isWhole && number.text != "–" && !number.text.isEmpty(), qPrintable(number.text));
                QCOMPARE(pane.error.place, first.error.place);
                QCOMPARE(pane.kept.place, first.kept.place);
                // The tokens of the drawn selection say which budget is drawn; both numbers say that it is not the
                // bar's.
                QCOMPARE(QString(pane.kept.text).remove(','), QString::number(pane.drawnTokens));
                if (pane.drawn == pane.wanted) continue;
                ++outdated;
                QVERIFY(pane.error.isDimmed && pane.kept.isDimmed);
            }
            for (std::size_t i = 0; i < frame.others.size(); ++i) {
                QVERIFY2(frame.others[i].isWhole && frame.others[i].text != "–", qPrintable(frame.others[i].text));
                QCOMPARE(frame.others[i].place, frames.front().others[i].place);
            }
            for (const auto& [view, headline] : frame.headlines) QCOMPARE(headline.first, headline.second);
        }
        QVERIFY2(outdated >= 3 * kSteps, qPrintable(QString::number(outdated))); // no results before the look at a step
        open.settle();
        for (std::size_t i = 0; i < 3; ++i)
            QVERIFY(!open.pane(i)->header()->findChild<LiveNumber*>("paneError")->isDimmed());
    }

    void aDragEndsWithItsButton() {
        QtTextService text;
        CanvasWidget canvas(text, [](double width, double height) {
            Scene scene;
            scene.width = width;
            scene.height = height;
            return scene;
        });
        canvas.resize(300, 200);
        canvas.show();
        QVERIFY(QTest::qWaitForWindowExposed(&canvas));
        QSignalSpy scrolled(&canvas, &CanvasWidget::scrollWanted), menus(&canvas, &CanvasWidget::menuWanted);
        const auto send = [&](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons held) {
            QMouseEvent event(type, at, canvas.mapToGlobal(at), button, held, {});
            QApplication::sendEvent(&canvas, &event);
        };
        const auto askForMenu = [&] {
            QContextMenuEvent event(QContextMenuEvent::Mouse, {50, 50}, canvas.mapToGlobal(QPoint(50, 50)));
            QApplication::sendEvent(&canvas, &event);
        };
        send(QEvent::MouseButtonPress, {50, 50}, Qt::LeftButton, Qt::LeftButton);
        send(QEvent::MouseMove, {50, 70}, Qt::NoButton, Qt::LeftButton);
        QCOMPARE(scrolled.count(), 1);
        send(QEvent::MouseButtonPress, {50, 70}, Qt::RightButton, Qt::LeftButton | Qt::RightButton);
        askForMenu();
        send(QEvent::MouseMove, {50, 90}, Qt::NoButton, {}); // the buttons were released over another window
        QCOMPARE(scrolled.count(), 1);
        QCOMPARE(menus.count(), 0);
        askForMenu();
        QCOMPARE(menus.count(), 1);
    }

    void aDoubleClickIsOneStep() {
        OpenWindow open;
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.5}); }, "Budget");
        ValueSlider* slider = open.window.budgetBar()->slider();
        const QPoint at(slider->width() / 3, slider->height() / 2);
        QTest::mouseClick(slider, Qt::LeftButton, {}, at);
        QTest::mouseDClick(slider, Qt::LeftButton, {}, at);
        QCOMPARE(open.bench.session().budget.value, 0.25);
        open.bench.undo();
        QCOMPARE(open.bench.session().budget.value, 0.5);
    }

    void aDragBackIsNoStep() {
        OpenWindow open;
        ValueSlider* slider = open.window.budgetBar()->slider();
        const QPoint middle(slider->width() / 2, slider->height() / 2);
        QTest::mousePress(slider, Qt::LeftButton, {}, middle);
        const double pressed = open.bench.session().budget.value;
        QTest::mouseRelease(slider, Qt::LeftButton, {}, middle);
        QVERIFY(pressed != 0.25);
        open.bench.change([](Session& s) { s.activePane = 1; }, "Active pane");
        QTest::mousePress(slider, Qt::LeftButton, {}, middle);
        QTest::mouseMove(slider, middle + QPoint(30, 0));
        QTest::mouseMove(slider, middle);
        QTest::mouseRelease(slider, Qt::LeftButton, {}, middle);
        QCOMPARE(open.bench.session().budget.value, pressed);
        QCOMPARE(open.bench.history().undoLabel(), std::string("Active pane"));
    }

    void turnsOfTheWheelAndHeldKeysAreSteps() {
        OpenWindow open;
        ValueSlider* slider = open.window.budgetBar()->slider();
        slider->setFocus();
        const auto budget = [&] { return open.bench.session().budget.value; };
        const auto turn = [&] {
            const QPoint middle = slider->rect().center();
            QWheelEvent event(middle, slider->mapToGlobal(middle), {}, {0, 120}, {}, {}, Qt::NoScrollPhase, false);
            QApplication::sendEvent(slider, &event);
        };
        turn();
        const double once = budget();
        QTest::keyClick(slider, Qt::Key_Right); // its release ends what the wheel began, too
        open.bench.undo();
        QCOMPARE(budget(), once);
        open.bench.undo();
        QCOMPARE(budget(), 0.25);
    }

    void anOldPictureIsFadedAndSaysWhatItShows() {
        OpenWindow open;
        open.settle();
        open.bench.change([](Session& s) { s.cut = "last:100"; }, "Cut");
        open.arrange(); // no result arrives
        const auto* note = open.pane(0)->canvas()->findChild<QLabel*>("pictureNote");
        QVERIFY(!note->isVisible()); // not at once
        open.clock.advance(std::chrono::milliseconds(200));
        QVERIFY2(note->isVisible() && note->text().startsWith("drawn: 248 tokens"), qPrintable(note->text()));
        open.waitForResults();
        QVERIFY(!note->isVisible());
    }

    void aPaneSaysThatItIsMeasuredWhenItIs() {
        using namespace std::chrono_literals;
        OpenWindow open;
        open.settle();
        const auto* note = open.pane(0)->canvas()->findChild<QLabel*>("pictureNote");
        for (const double budget : {0.3, 0.32, 0.34, 0.36, 0.38}) { // longer than the note waits
            open.bench.change([&](Session& s) { setBudget(s, {Budget::Unit::Fraction, budget}); }, "Budget");
            open.arrange(); // no result arrives
            open.clock.advance(60ms);
            QVERIFY(open.bench.viewInput().panes[0].computing && !note->isVisible());
        }
        open.clock.advance(20ms); // the drag rests: the measure begins
        emit open.bench.progressChanged(0, open.bench.progress(0));
        QVERIFY(!note->isVisible());
        open.clock.advance(150ms);
        QVERIFY2(note->isVisible() && note->text().startsWith("measuring"), qPrintable(note->text()));
        open.waitForResults();
        QVERIFY(!note->isVisible());
    }

    void aPictureIsDrawnAgainWhenItsTokensAreThereAndNotBefore() {
        OpenWindow open;
        processInBlocks(open);
        const auto frames = [&] {
            std::vector<int> drawn;
            for (std::size_t i = 0; i < 3; ++i) drawn.push_back(open.pane(i)->canvas()->canvas()->framesDrawn());
            return drawn;
        };
        const std::vector<int> before = frames();
        for (const double budget : {0.3, 0.32, 0.34, 0.36, 0.38, 0.4}) {
            open.bench.change([&](Session& s) { setBudget(s, {Budget::Unit::Fraction, budget}); }, "Budget");
            open.arrange(); // no result arrives
        }
        for (std::size_t i = 0; i < 3; ++i) QVERIFY(frames()[i] <= before[i] + 2); // the desktop may ask for one
        open.settle();
        for (std::size_t i = 0; i < 3; ++i) QVERIFY(frames()[i] > before[i]);
        // What the last picture was drawn from, no earlier one, decides: there and back draws twice.
        const std::vector<int> there = frames();
        open.bench.undo();
        open.settle();
        for (std::size_t i = 0; i < 3; ++i) QVERIFY(frames()[i] > there[i]);
    }

    void aHeadlineFollowsTheStepCursor() {
        OpenWindow open;
        open.bench.change([](Session& s) { s.layout = WindowLayout::Teach; }, "Layout");
        open.settle();
        int stepped = 0;
        for (const TokenIndex cursor : {200, 500, 900}) {
            open.bench.setCursor(cursor);
            open.arrange();
            for (const ViewDock* dock : open.window.canvases()->docks()) {
                if (!dock->isVisible()) continue;
                stepped += dock->canvas()->view().card().id == "merge_tree";
                QCOMPARE(dock->header()->findChild<ElidedLabel*>("viewFinding")->accessibleName(),
                         dock->canvas()->finding());
            }
        }
        QCOMPARE(stepped, 3);
    }

    void noticesCoverThePanelsAndLeaveByThemselves() {
        OpenWindow open;
        open.settle();
        const QRect before = open.window.canvases()->geometry();
        NoticeStrip& notices = open.window.notices();
        notices.show("written", NoticeStrip::Tone::Success, "Written: a.svg");
        open.arrange();
        QVERIFY(notices.passing()->isVisible());
        QCOMPARE(open.window.canvases()->geometry(), before);
        notices.show("broken", NoticeStrip::Tone::Error, "It cannot be read.");
        open.arrange();
        const auto rowOf = [&](const char* id) { return open.window.findChild<QFrame*>(id); };
        for (const QFrame* row : {rowOf("written"), rowOf("broken")}) {
            QVERIFY(row->parentWidget()->rect().contains(row->geometry()));
            QVERIFY2(row->height() >= row->sizeHint().height(), qPrintable(QString::number(row->height())));
        }
        const auto tone = [&](const char* id) { return rowOf(id)->property("tone").toString(); };
        QCOMPARE(tone("written"), QString("success"));
        QCOMPARE(tone("broken"), QString("error"));
        open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Dark; }, "Theme");
        open.arrange();
        QCOMPARE(notices.messages().size(), 2);
        open.clock.advance(std::chrono::seconds(30));
        QCOMPARE(notices.messages(), QStringList{"It cannot be read."});
    }
};

KVSCOPE_WINDOW_TEST(WindowDragTest)
#include "window_drag_test.moc"
