// The dock with the answers of a live context, with real events; the worker has no model and answers "forty two".
#include <QtTest>

#include "app/window/docks/dock_layout.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/segmented_switch.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/token_bars.h"
#include "app/window/widgets/value_slider.h"
#include "app/workbench/live_answer_jobs.h"
#include "tests/app/answers_window.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QClipboard>
#include <QLineEdit>
#include <QRegularExpression>
#include <QToolButton>

#include <map>
#include <set>

using namespace kvscope;
using kvscope::testing::FakeWorker;
using kvscope::testing::LiveWindow;

namespace {

/// What each painting of the rows' numbers shows.
class PaintLog : public QObject {
public:
    struct Number {
        int row;
        QString column, text;
        bool isDimmed, isTextOutdated;
        double budget; ///< of the session
    };
    std::vector<Number> numbers;

    explicit PaintLog(const LiveWindow& open) : m_open(open) {
        for (LiveNumber* number : open.dock->findChildren<LiveNumber*>()) number->installEventFilter(this);
    }
    bool eventFilter(QObject* watched, QEvent* event) override {
        if (event->type() != QEvent::Paint) return false;
        const auto& number = *static_cast<LiveNumber*>(watched);
        const int row = number.objectName().section(' ', -1).toInt();
        numbers.push_back({row, number.objectName().section(' ', 0, -2), number.text(), number.isDimmed(),
                           m_open.jobs.rows()[static_cast<std::size_t>(row)].isTextOutdated,
                           effectiveBudget(m_open.bench.session(), 0).value});
        return false;
    }

private:
    const LiveWindow& m_open;
};

/// 19 tokens, of which the answer has the last five.
std::shared_ptr<MemoryCapture> shorterContext() {
    auto made = makeRandomCapture(7, 19, 2, 4, 2, 16);
    made->tokenTable.segments = {
        {0, 11, SegmentKind::Context}, {11, 14, SegmentKind::Question}, {14, 19, SegmentKind::Answer}};
    return made;
}

} // namespace

class WindowAnswersTest : public QObject {
    Q_OBJECT

private slots:
    void aFileHasNoModelToAsk() {
        LiveWindow open;
        QVERIFY(!open.dock->isVisible());
        open.window.docks()->open(open.dock);
        open.settle();
        QVERIFY(open.part("answerMessage")->isVisible());
        QVERIFY2(open.part("answerMessage")->text().contains("answers need the model"),
                 qPrintable(open.part("answerMessage")->text()));
        QVERIFY(!open.part<SegmentedSwitch>("answersOrCurves")->isVisible());
        for (const auto* button : open.dock->findChildren<QToolButton*>()) // of the header: at its right end
            if (button->isVisible())
                QVERIFY(button->mapTo(open.dock, QPoint()).x() > open.dock->width() - 6 * button->width());
    }

    void aLiveContextShowsTheAnswers() {
        LiveWindow open;
        open.openLive();
        QVERIFY2(open.dock->isVisible() && !open.dock->visibleRegion().isEmpty(), "the dock opens by itself");
        QCOMPARE(open.jobs.rows().size(), open.bench.session().panes.size() + 1);
        QVERIFY(open.isEveryRowCurrent());
        for (int row = 0; row < static_cast<int>(open.jobs.rows().size()); ++row) {
            QVERIFY(open.part(QString("answer%1").arg(row))->isVisible());
            QCOMPARE(open.answer(row), QString("forty two"));
        }
        QVERIFY(open.part("expectedAnswer")->text().startsWith("expected: "));
        QVERIFY2(open.visibleTexts().contains("0.500"), "the loss of the full cache");
    }

    void aBudgetStepDimsTheRowsAndMovesNothing() {
        LiveWindow open;
        open.openLive();
        QLabel* text = open.part("answer1");
        const QRect before = text->geometry();
        open.bench.change([](Session& session) { setBudget(session, {Budget::Unit::Tokens, 7}); }, "Budget");
        const auto numbers = open.dock->findChildren<LiveNumber*>();
        QVERIFY(std::ranges::any_of(numbers, &LiveNumber::isDimmed));
        QCOMPARE(open.answer(1), QString("forty two"));
        QCOMPARE(text->geometry(), before);
        open.settle();
        QVERIFY(open.isEveryRowCurrent() && std::ranges::none_of(numbers, &LiveNumber::isDimmed));
        QCOMPARE(open.jobs.rows()[1].live.kept, 7.0);
    }

    /// Every painting of a drag with the mouse: what is not dimmed is what the shown budget gives, however fast the
    /// rounds come.
    void everyFrameOfADragDimsWhatIsOlder() {
        LiveWindow open;
        open.openLive();
        PaintLog log(open);
        ValueSlider* slider = open.window.budgetBar()->slider();
        const auto at = [&](int step) { return QPoint(slider->width() * (30 + step) / 60, slider->height() / 2); };
        QTest::mousePress(slider, Qt::LeftButton, {}, at(0));
        for (int step = 1; step <= 18; ++step) {
            QTest::mouseMove(slider, at(step));
            open.arrange(); // frames while the model is asked
            if (step % 3 == 0) open.settle();
        }
        QTest::mouseRelease(slider, Qt::LeftButton, {}, at(18));
        open.settle();
        std::map<double, std::map<QString, QString>> truth; // texts of a budget when everything has come to its end
        for (const PaintLog::Number& number : log.numbers) truth[number.budget];
        QVERIFY2(truth.size() > 5, qPrintable(QString::number(truth.size())));
        const std::vector<PaintLog::Number> painted = log.numbers;
        for (auto& [budget, texts] : truth) {
            open.bench.change([&](Session& s) { setBudget(s, {Budget::Unit::Fraction, budget}); }, "Budget");
            open.settle();
            for (const LiveNumber* number : open.dock->findChildren<LiveNumber*>())
                texts[number->objectName()] = number->text();
        }
        int dimmed = 0;
        for (const PaintLog::Number& number : painted) {
            if (number.row == 0 || number.column == "select" || number.text == "–") continue;
            dimmed += number.isDimmed;
            if (number.column == "differs") QVERIFY(number.isDimmed || !number.isTextOutdated);
            if (!number.isDimmed)
                QCOMPARE(number.text, truth[number.budget][QString("%1 %2").arg(number.column).arg(number.row)]);
        }
        QVERIFY2(dimmed > 20, qPrintable(QString::number(dimmed)));
    }

    void theDockStaysInOtherLayouts() {
        LiveWindow open;
        open.openLive();
        for (const WindowLayout layout : {WindowLayout::ComparePolicies, WindowLayout::Teach, WindowLayout::WholeModel,
                                          WindowLayout::ExploreHead}) {
            open.bench.change([&](Session& session) { session.layout = layout; }, "Layout");
            open.settle();
            QVERIFY2(open.dock->isVisible() && open.isEveryRowCurrent(), qPrintable(QString::number(int(layout))));
        }
        open.dock->close();
        open.bench.change([](Session& session) { session.layout = WindowLayout::ComparePolicies; }, "Layout");
        open.settle();
        open.bench.change([](Session& session) { session.layout = WindowLayout::WholeModel; }, "Layout");
        open.settle();
        QVERIFY(!open.dock->isHidden()); // that layout's own arrangement
    }

    void theKeyboardReachesTokensAndCopiesAnswers() {
        LiveWindow open;
        open.openLive();
        auto* bars = open.part<TokenBars>("answerBars1");
        bars->setFocus(Qt::TabFocusReason);
        QGuiApplication::clipboard()->clear();
        for (const auto type : {QEvent::ShortcutOverride, QEvent::KeyPress}) { // as from the display
            QKeyEvent copy(type, Qt::Key_C, Qt::ControlModifier);
            QCoreApplication::sendEvent(bars, &copy);
            QVERIFY(copy.isAccepted());
        }
        QCOMPARE(QGuiApplication::clipboard()->text(), QString("forty two"));
        QTest::keyClick(bars, Qt::Key_Return);
        open.settle();
        QVERIFY(open.part("answerAttention")->isVisible());
        const QString first = open.part("answerAttention")->text();
        QTest::keyClick(bars, Qt::Key_Right);
        open.settle();
        QVERIFY(open.part("answerAttention")->text() != first);
        auto* heads = open.part<QWidget>("answerHeads");
        heads->setFocus(Qt::TabFocusReason);
        QTest::keyClick(heads, Qt::Key_Right);
        QTest::keyClick(heads, Qt::Key_Down);
        QVERIFY2(open.part("answerAttention")->text().contains("layer 1, query head 0"),
                 qPrintable(open.part("answerAttention")->text()));
        QCOMPARE(open.bench.session().layer, LayerIndex(1));
        bars->setFocus(Qt::TabFocusReason);
        QTest::keyClick(bars, Qt::Key_Escape);
        QVERIFY(!open.part("answerAttention")->isVisible());
        QTest::mouseClick(bars, Qt::RightButton, {}, QPoint(4, bars->height() / 2)); // asks for the menu only
        QVERIFY(!open.part("answerAttention")->isVisible());
        bars->actions().at(1)->trigger(); // of its menu
        const QStringList lines = QGuiApplication::clipboard()->text().trimmed().split('\n');
        QCOMPARE(lines.size(), static_cast<qsizetype>(open.jobs.rows().size()) + 1);
        QVERIFY2(lines[1].contains("full cache") && lines[1].contains("0.5"), qPrintable(lines[1]));
    }

    /// As the tables of the command line have them.
    void whatIsStoredIsCopiedBesideWhatIsKept() {
        LiveWindow open;
        open.openLive();
        open.bench.change([](Session& session) { session.panes[0].policy = specOfVariant("subgen", {}); }, "Policy");
        open.settle();
        const LiveRow& row = open.jobs.rows()[1].live;
        QVERIFY2(row.stored != row.kept, qPrintable(QString("both %1").arg(row.kept)));
        open.part<TokenBars>("answerBars1")->actions().at(1)->trigger();
        const QStringList lines = QGuiApplication::clipboard()->text().trimmed().split('\n');
        const qsizetype stored = lines[0].split('\t').indexOf("stored_tokens");
        QCOMPARE(lines[1].split('\t').at(stored), QString("61"));
        QCOMPARE(lines[2].split('\t').at(stored).toDouble(), row.stored);
    }

    /// It keeps no number of tokens, not even none.
    void aRefusedRowIsCopiedWithoutNumbers() {
        LiveWindow open;
        open.openLive();
        open.bench.change([](Session& session) { session.panes[0].policy = specOfVariant("subgen", "searched"); },
                          "Policy"); // its value slots do not fit the budget
        open.settle();
        open.part<TokenBars>("answerBars1")->actions().at(1)->trigger();
        const QStringList lines = QGuiApplication::clipboard()->text().trimmed().split('\n');
        for (const char* column : {"kept", "stored_tokens"}) {
            const qsizetype at = lines[0].split('\t').indexOf(column);
            QCOMPARE(lines[1].split('\t').at(at), QString("61"));
            QCOMPARE(lines[2].split('\t').at(at), QString());
        }
    }

    void aContextIsReadWithTheCutThatIsShownFromTheDock() {
        LiveWindow open;
        open.openLive();
        QLabel* error = open.part("answerError");
        open.bench.change([](Session& session) { session.cut = "none"; }, "Cut");
        open.settle();
        QVERIFY2(error->isVisible() && error->text().startsWith("The model read the context with its cut at 61"),
                 qPrintable(error->text()));
        QVERIFY2(!error->text().contains("Or read"), qPrintable(error->text())); // a context is read with a cut
        open.bench.change([](Session& session) { session.cut = "50"; }, "Cut");
        open.settle();
        QVERIFY2(error->text().contains("Set the cut to 61. <a") && error->text().contains("Or read the context"),
                 qPrintable(error->text()));
        for (int row = 0; row < 4; ++row) QVERIFY2(!open.answer(row).contains("cut"), qPrintable(open.answer(row)));
        error->setFocus(Qt::TabFocusReason);
        QTest::keyClick(error, Qt::Key_Tab); // to its link
        QTest::keyClick(error, Qt::Key_Return);
        QVERIFY(open.until([&] { return open.bench.live()->cut() == 50 && open.idle() && open.isEveryRowCurrent(); }));
        QVERIFY(!error->isVisible() && open.bench.session().cut == "50");
    }

    void aRowThatTheModelCannotAnswerSaysWhy() {
        LiveWindow open;
        open.openLive(open.fake, "overflows");
        open.bench.change([](Session& session) { session.panes[0].policy = specOfVariant("snapkv", {}); }, "Policy");
        open.settle();
        QCOMPARE(open.answer(1), QString("the loss is NaN or infinite. Load it in bf16"));
        QCOMPARE(open.answer(0), QString("forty two"));
        QVERIFY(open.part<LiveNumber>("loss, nat 1")->text() == "–" && !open.part("answerError")->isVisible());
    }

    /// A bar, then a token of the list below: it is selected everywhere.
    void aTokenLeadsToWhatItAttendedTo() {
        LiveWindow open;
        open.openLive();
        auto* bars = open.part<TokenBars>("answerBars1");
        QVERIFY(bars->isVisible());
        QTest::mouseClick(bars, Qt::LeftButton, {}, QPoint(bars->width() / 2 + 2, bars->height() / 2)); // the second
        open.settle();
        QVERIFY(open.part("answerAttention")->isVisible());
        const QString title = open.part("answerAttention")->text();
        QVERIFY2(title.startsWith("A ") && title.contains("of its attention is on evicted tokens"), qPrintable(title));
        QLabel* attended = open.part("answerAttended");
        attended->setFocus(Qt::TabFocusReason);
        QTest::keyClick(attended, Qt::Key_Tab); // to its first link
        QTest::keyClick(attended, Qt::Key_Return);
        QCOMPARE(open.bench.session().selected.size(), std::size_t{1});
        QVERIFY(open.bench.session().selected.front() < 61);
        QTest::mouseClick(open.dock->findChild<QToolButton*>("closeAttention"), Qt::LeftButton);
        QVERIFY(!open.part("answerAttention")->isVisible());
    }

    void theCurvesGrowAndAClosedDockAsksForNothing() {
        LiveWindow open;
        open.openLive();
        auto* shown = open.part<SegmentedSwitch>("answersOrCurves");
        QTest::mouseClick(shown, Qt::LeftButton, {}, QPoint(shown->width() - 8, shown->height() / 2));
        open.settle();
        QVERIFY(open.part<QWidget>("lossPlot")->isVisible());
        QCOMPARE(open.jobs.curves().size(), open.bench.session().panes.size());
        for (const auto& curve : open.jobs.curves()) QCOMPARE(curve.rows.size(), std::size_t{11});
        open.dock->close();
        open.bench.change([](Session& session) { setBudget(session, {Budget::Unit::Tokens, 7}); }, "Budget");
        QVERIFY(!open.jobs.isRunning() && open.jobs.curves().empty());
        open.settle();
        QVERIFY(!open.isEveryRowCurrent());
    }

    /// Another density builds the panel anew: the new one is shown before the old one goes.
    void aRebuiltPanelGoesOnAsking() {
        LiveWindow open;
        open.openLive();
        open.bench.change([](Session& session) { session.look.compact = true; }, "Density");
        open.settle();
        QVERIFY(open.dock->isVisible());
        open.bench.change([](Session& session) { setBudget(session, {Budget::Unit::Tokens, 9}); }, "Budget");
        open.settle();
        QVERIFY(open.isEveryRowCurrent());
        QCOMPARE(open.answer(1), QString("forty two"));
    }

    void aLostWorkerIsStartedAgainFromTheDock() {
        LiveWindow open;
        open.openLive();
        open.fake.kill();
        auto* tokens = open.part<QLineEdit>("answerTokens");
        tokens->setFocus();
        tokens->selectAll();
        QTest::keyClicks(tokens, "3");
        QTest::keyClick(tokens, Qt::Key_Return);
        QLabel* error = open.part("answerError");
        QVERIFY(open.until([&] { return error->isVisible() && error->text().contains("Start again"); }));
        QVERIFY2(error->text().startsWith("The worker was killed by signal 9"), qPrintable(error->text()));
        error->setFocus(Qt::TabFocusReason);
        QTest::keyClick(error, Qt::Key_Tab); // to its link
        QTest::keyClick(error, Qt::Key_Return);
        QVERIFY(open.until([&] { return open.fake.isAlive() && open.idle() && open.isEveryRowCurrent(); }));
        QVERIFY(!error->isVisible());
    }

    /// The token that was looked at is one of the old context's, as its numbers are.
    void whatATokenAttendsToGoesWithItsContext() {
        LiveWindow open;
        open.openLive();
        const auto look = [&] { // at the full cache's row, which no budget and no policy tells from another context's
            auto* bars = open.part<TokenBars>("answerBars0");
            QTest::mouseClick(bars, Qt::LeftButton, {}, QPoint(bars->width() / 2 + 2, bars->height() / 2));
        };
        look();
        open.settle();
        QVERIFY(open.part("answerAttention")->isVisible());
        const FakeWorker other(shorterContext().get());
        open.openLive(other);
        QVERIFY(!open.part("answerAttention")->isVisible());
        look();
        open.settle();
        QVERIFY(open.part("answerAttention")->isVisible());
        QVERIFY(!open.attended().empty() && *open.attended().rbegin() < 11);
        open.bench.undo();
        open.settle();
        QVERIFY(!open.part("answerAttention")->isVisible());
        look();
        open.settle();
        QVERIFY(!open.attended().empty() && *open.attended().rbegin() > 11);
    }

    /// The panes of another context are told before its answers: those on show are of tokens that it does not have.
    void aShorterContextTakesItsPlaceAndGivesItBack() {
        LiveWindow open;
        open.openLive();
        const FakeWorker other(shorterContext().get());
        bool isMixed = false;
        connect(&open.bench, &Workbench::paneChanged, this, [&] {
            const auto live = open.bench.live();
            isMixed = isMixed || open.jobs.live() != live;
        });
        open.openLive(other);
        QVERIFY(isMixed && open.isEveryRowCurrent());
        QCOMPARE(open.jobs.answerTokens().front(), 14);
        open.bench.undo();
        open.settle();
        QVERIFY(open.isEveryRowCurrent());
        QCOMPARE(open.jobs.answerTokens().front(), 75);
    }

    /// The axes of a low plot have no titles.
    void theCurvesSayWhatTheyShow() {
        LiveWindow open;
        open.openLive();
        auto* shown = open.part<SegmentedSwitch>("answersOrCurves");
        QTest::mouseClick(shown, Qt::LeftButton, {}, QPoint(shown->width() - 8, shown->height() / 2));
        open.settle();
        const auto* status = open.part<ElidedLabel>("answerStatus");
        QVERIFY2(status->isVisible() && status->text() == "loss, nat, against % kept", qPrintable(status->text()));
    }

    void aTypedNumberOfTokensIsAskedFor() {
        LiveWindow open;
        open.openLive();
        auto* tokens = open.part<QLineEdit>("answerTokens");
        tokens->setFocus();
        tokens->selectAll();
        QTest::keyClicks(tokens, "nine");
        QTest::keyClick(tokens, Qt::Key_Return);
        QVERIFY(tokens->property("wrong").toBool());
        QCOMPARE(open.jobs.writing().mostTokens, 16);
        tokens->selectAll();
        QTest::keyClicks(tokens, "0");
        QTest::keyClick(tokens, Qt::Key_Return);
        QVERIFY(!tokens->property("wrong").toBool());
        open.settle();
        QVERIFY(open.isEveryRowCurrent() && !open.jobs.rows()[1].live.greedy);
    }
};

KVSCOPE_WINDOW_TEST(WindowAnswersTest)
#include "window_answers_test.moc"
