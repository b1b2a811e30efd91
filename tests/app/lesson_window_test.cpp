// The panel of an open lesson, with real events sent to the whole window.
#include "app/window/actions/window_actions.h"
#include "app/window/dialogs/export_dialog.h"
#include "app/window/panels/lesson_panel.h"
#include "app/window/panels/parameter_panel.h"
#include "core/engine/engine.h"
#include "tests/app/classroom.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "views/view.h"

#include <QAction>
#include <QLineEdit>
#include <QRadioButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSettings>
#include <QTableView>
#include <QToolButton>

#include <algorithm>
#include <cmath>

using namespace kvscope;
using kvscope::testing::Classroom;

namespace {

constexpr int kKeydiff = 5, kPremise = 6, kBlocks = 7, kSubgen = 11;

struct Lectern : Classroom {
    using Classroom::Classroom;

    void click(const QString& button) {
        auto* found = find<QPushButton>(qPrintable(button));
        QVERIFY2(found && found->isEnabled(), qPrintable(button));
        QTest::mouseClick(found, Qt::LeftButton);
    }
    /// Makes a prediction and asks for the answer.
    void predict(int which) {
        QTest::mouseClick(choice(which), Qt::LeftButton, {}, QPoint(8, 12));
        click("lessonAnswerButton");
    }
    void show(const char* lesson) {
        bench.change(
            [&](Session& s) {
                s.layout = WindowLayout::Teach;
                s.lesson = lesson;
            },
            "Lesson");
        settle();
    }
    static void enter(QLineEdit* field, const char* text) {
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, text);
        QTest::keyClick(field, Qt::Key_Return);
    }
    QString text(const char* label) const { return find<QLabel>(label)->text(); }
    QRadioButton* choice(int i) const { return find<QRadioButton>(qPrintable(QString("lessonChoice%1").arg(i))); }
    ViewCanvas* canvasOf(const char* view) const {
        const auto docks = window.canvases()->docks();
        const auto dock = std::ranges::find(docks, view, [](ViewDock* one) { return one->canvas()->view().card().id; });
        return dock == docks.end() ? nullptr : (*dock)->canvas();
    }
    QString findingOf(const char* view) const { return canvasOf(view)->finding(); }
    int number() const { return lessonOf(bench.session())->number; }
    QScrollBar* scrollBar() const {
        return dock("lesson")->findChild<QScrollArea*>("panelScroll")->verticalScrollBar();
    }
};

} // namespace

class LessonWindowTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    void aCaptionFitsALowPlace() {
        Lectern open({1280, 800});
        QTest::keyClick(&open.window, Qt::Key_3, Qt::ControlModifier);
        auto* caption = open.find<QLabel>("stepCaption");
        QTRY_VERIFY_WITH_TIMEOUT(caption->text().contains("nothing merges further"), 60'000); // four lines
        open.settle();
        const QImage image = caption->grab().toImage();
        for (int x = 0; x < image.width(); ++x) // no line is cut
            QCOMPARE(image.pixelColor(x, image.height() - 1), image.pixelColor(0, image.height() - 1));
    }

    /// A narrow row cuts it.
    void aRowNamesItsWholeTitle() {
        Lectern open({1280, 800});
        QTest::keyClick(&open.window, Qt::Key_3, Qt::ControlModifier);
        const QString tip = open.find<QPushButton>("lesson9")->toolTip();
        QVERIFY2(tip.startsWith("Two scores, and a budget by error\n"), qPrintable(tip));
    }

    void aLessonWithoutViewsIsShown() {
        Lectern open;
        open.show(R"({"title": "Words alone", "text": "It names no view."})");
        QVERIFY(open.dock("lesson")->isVisible());
        QCOMPARE(open.text("lessonText"), QString("It names no view."));
        open.window.actions()->byName("presenter")->trigger();
        open.settle();
        QVERIFY(open.find<QWidget>("presenter"));
    }

    /// Each paragraph has a label of its own, but a list that is broken in two counts from 1 again.
    void theItemsOfAListStayTogether() {
        Lectern open;
        open.show(R"({"title": "A list", "text": "Look:\n\n1. here\n\n   and\n \n2. there\n\nBut\n\n\nno."})");
        QStringList texts;
        for (const QLabel* label : open.dock("lesson")->findChildren<QLabel*>("lessonText")) texts += label->text();
        QCOMPARE(texts, QStringList({"Look:\n\n1. here\n\n   and\n \n2. there", "But", "no."}));
    }

    void aLessonWithAWrongViewSaysSo() {
        Lectern open;
        open.show(R"({"title": "A wrong name", "text": "It names one.", "views": ["token_strp"]})");
        QCOMPARE(open.visibleTexts().filter("token_strp").size(), 1);
        open.window.actions()->byName("presenter")->trigger();
        open.settle();
        QVERIFY(open.find<QWidget>("presenter"));
        for (const char* command : {"presenter", "handout", "makeLesson"}) {
            open.window.actions()->byName(command)->trigger();
            open.settle();
        }
        QVERIFY(!open.window.notices().messages().filter("token_strp").isEmpty());
    }

    void aQualityIsShownAsTheShareThatItKeeps() {
        Lectern open;
        open.bench.change(
            [](Session& s) {
                s.layout = WindowLayout::Teach;
                s.lesson = R"({"title": "By quality", "text": "As much as it needs.", "parameters": ["budget"]})";
                setBudget(s, Budget::parse("tau=0.95"));
            },
            "Lesson");
        open.arrange(); // what it keeps is not known yet, and no number says so
        QVERIFY(open.find<QWidget>("lessonParameters")->findChild<ParameterRow*>()->isHidden());
        open.finish();
        const PaneData pane = open.bench.viewInput().panes[0];
        QVERIFY2(pane.result && pane.result->calibrated, pane.error.c_str());
        const double kept = std::round(1000 * pane.result->calibrated->retention) / 10;
        auto* row = open.find<QWidget>("lessonParameters")->findChild<ParameterRow*>();
        auto* field = row->findChild<QLineEdit*>();
        QVERIFY(!row->isHidden() && !row->differs());
        QCOMPARE(field->text().toDouble(), kept);
        // Another one, and back to the quality itself, which is no number of percent.
        open.enter(field, "50");
        QCOMPARE(open.bench.session().budget.value, 0.5);
        QVERIFY(row->differs());
        row->findChild<QToolButton*>()->click();
        QVERIFY(open.bench.session().budget == Budget::parse("tau=0.95"));
        QCOMPARE(field->text().toDouble(), kept); // as it was, while it is computed again
        open.finish();
        QCOMPARE(field->text().toDouble(), kept);
    }

    void withoutALessonThePanelLeadsToTheFirst() {
        Lectern open({1280, 800}); // the list of lessons is folded
        QTest::keyClick(&open.window, Qt::Key_3, Qt::ControlModifier);
        open.arrange();
        QVERIFY(open.find<QPushButton>("firstLesson")->text().contains("What a KV cache holds"));
        open.click("firstLesson");
        QTRY_VERIFY(lessonOf(open.bench.session()));
        QCOMPARE(open.number(), 1);
        QTRY_VERIFY(open.find<QLabel>("lessonText") && open.find<QLabel>("lessonText")->isVisible());
    }

    void theOpenLessonOpensAfresh() {
        Lectern open;
        open.openLesson(kBlocks);
        open.predict(0);
        QTRY_VERIFY_WITH_TIMEOUT(open.text("lessonVerdict").contains('%'), 60'000);
        open.click("lessonStop3");
        open.scrollBar()->setValue(open.scrollBar()->maximum());
        open.openLesson(kBlocks);
        QTRY_VERIFY(open.text("lessonVerdict").isEmpty());
        QVERIFY(!open.choice(0)->isChecked() && !open.find<QPushButton>("lessonAnswerButton")->isEnabled());
        QCOMPARE(open.cursor(), std::optional<TokenIndex>(128)); // its first step
        QCOMPARE(open.bench.session().panes.front().policy.text(), std::string("keydiff,prompt_block=128"));
        QTRY_COMPARE(open.scrollBar()->value(), 0);
    }

    // The finding says what the lesson asks: it comes with the answer.
    void findingsWaitForThePrediction() {
        Lectern open;
        open.openLesson(kBlocks);
        QTRY_COMPARE(open.findingOf("block_timeline"), QString("Predict first: this is what the lesson asks"));
        QVERIFY(!open.visibleTexts().join('\n').contains("left with the block"));
        QVERIFY(open.findingOf("token_profile").contains("kept"));
        QTest::mouseClick(open.choice(2), Qt::LeftButton, {}, QPoint(8, 12));
        QVERIFY(open.findingOf("block_timeline").startsWith("Predict first"));
        open.click("lessonAnswerButton");
        QTRY_VERIFY_WITH_TIMEOUT(open.text("lessonVerdict").startsWith("As you predicted"), 60'000);
        QVERIFY(open.findingOf("block_timeline").contains("left with the block")); // of what the step has read
        QString atChange;
        connect(&open.bench, &Workbench::engineChanged, this, [&] { atChange = open.text("lessonVerdict"); });
        open.bench.useEngine([] { return makeCpuEngine(1); });
        QTRY_COMPARE(atChange, QString("Computing…")); // the other engine is asked, too
        QTRY_VERIFY_WITH_TIMEOUT(open.text("lessonVerdict").startsWith("As you predicted"), 60'000);
        open.openLesson(kKeydiff);
        QVERIFY(!open.findingOf("attention_map").startsWith("Predict first"));
    }

    // A reader plays with the pictures of a lesson from its first step on.
    void picturesDoNotWaitForThePrediction() {
        Lectern open;
        open.openLesson(14);
        const auto isDrawn = [&] {
            return scene_checks::hasTextFrom(open.canvasOf("error_difference")->canvas()->scene(), "mean ");
        };
        QTRY_VERIFY(isDrawn());
        open.click("lessonStop0");
        QTRY_VERIFY(open.settled());
        QVERIFY(isDrawn());
    }

    void tabLeadsFromTheChoicesToTheAnswer() {
        Lectern open;
        open.openLesson(kKeydiff);
        QTest::mouseClick(open.choice(1), Qt::LeftButton, {}, QPoint(8, 12));
        open.choice(1)->setFocus(Qt::TabFocusReason);
        QTest::keyClick(open.choice(1), Qt::Key_Tab);
        QVERIFY(open.find<QPushButton>("lessonAnswerButton")->hasFocus());
        QTest::keyClick(open.window.focusWidget(), Qt::Key_Space);
        QTRY_VERIFY_WITH_TIMEOUT(open.text("lessonVerdict").contains('%'), 60'000);
    }

    // At a stop that shows another case the answer leads back to the question's own; nobody is told to have changed it.
    void theAnswerIsAboutTheQuestionsOwnCase() {
        Lectern open;
        open.openLesson(kKeydiff);
        open.click("lessonStop3"); // half the budget
        open.predict(1);
        QTRY_VERIFY_WITH_TIMEOUT(open.text("lessonVerdict").startsWith("As you predicted"), 60'000);
        QCOMPARE(open.bench.session().budget.value, 0.1);
        const QString answer = open.text("lessonAnswer");
        QVERIFY(answer.contains("SnapKV"));
        for (int stop = 0; stop < 5; ++stop) {
            open.click(QString("lessonStop%1").arg(stop));
            QTRY_VERIFY_WITH_TIMEOUT(open.settled() && !open.text("lessonVerdict").startsWith("Computing"), 60'000);
            QVERIFY2(stop == 3 ? open.text("lessonAnswer") == "This is the number at this stop."
                               : open.text("lessonAnswer") == answer,
                     qPrintable(open.text("lessonAnswer")));
        }
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.5}); }, "Budget");
        QTRY_COMPARE_WITH_TIMEOUT(open.text("lessonAnswer"),
                                  QString("This is the number of what you have set yourself."), 60'000);
        open.click("lessonAnswerButton"); // back to the question's own setting
        QTRY_COMPARE_WITH_TIMEOUT(open.text("lessonAnswer"), answer, 60'000);
    }

    void aClaimThatDoesNotHoldIsNoSettingOfTheReaders() {
        Lectern open;
        open.openLesson(kKeydiff);
        open.bench.change(
            [](Session& s) {
                const auto at = s.lesson.find("\"claim\":1");
                QVERIFY(at != std::string::npos);
                s.lesson.replace(at, 9, "\"claim\":2");
            },
            "Lesson");
        open.settle();
        open.predict(1);
        QTRY_COMPARE_WITH_TIMEOUT(open.text("lessonAnswer"),
                                  QString("The lesson explains another choice than the number falls into."), 60'000);
    }

    // Some numbers are of one query head, and not of all that read the KV head.
    void anotherQueryHeadHasAnotherAnswer() {
        Lectern open;
        open.openLesson(kPremise);
        open.predict(0);
        QTRY_VERIFY_WITH_TIMEOUT(open.text("lessonVerdict").contains("0.932"), 60'000);
        open.bench.change([](Session& s) { s.queryHead = QueryHeadIndex(6); }, "Query head");
        QTRY_VERIFY_WITH_TIMEOUT(open.text("lessonVerdict").contains("0.953"), 60'000);
    }

    // The parameters that the lesson names, and no others; they change what is shown and nothing is lost by a stop.
    void aLessonGivesParametersToPlayWith() {
        Lectern open;
        open.openLesson(9); // Compactor
        const auto rows = open.find<QWidget>("lessonParameters")->findChildren<ParameterRow*>();
        QCOMPARE(rows.size(), 2);
        QCOMPARE(rows[0]->id(), std::string("lambda"));
        QCOMPARE(rows[1]->id(), std::string("budget"));
        auto* budget = rows[1]->findChild<QLineEdit*>();
        QCOMPARE(budget->text(), QString("30"));
        open.enter(budget, "50");
        QCOMPARE(open.bench.session().budget.value, 0.5);
        auto* lambda = rows[0]->findChild<QLineEdit*>();
        open.enter(lambda, "1");
        QCOMPARE(open.bench.session().panes[0].policy.values.real("lambda"), 1.0);
        open.click("lessonStop0");
        QCOMPARE(open.bench.session().panes[0].policy.values.real("lambda"), 0.3);
        QCOMPARE(budget->text(), QString("30"));
    }

    void arrowKeysChoose() {
        Lectern open;
        open.openLesson(kBlocks);
        open.choice(0)->setFocus(Qt::TabFocusReason);
        QTest::keyClick(open.choice(0), Qt::Key_Down);
        QVERIFY(open.choice(0)->isChecked() && open.find<QPushButton>("lessonAnswerButton")->isEnabled());
        QTest::keyClick(open.choice(0), Qt::Key_Down);
        QTest::keyClick(open.choice(1), Qt::Key_Down);
        QTest::keyClick(open.choice(2), Qt::Key_Down);
        QVERIFY(open.choice(2)->isChecked() && open.choice(2)->hasFocus());
        QTest::keyClick(open.choice(2), Qt::Key_Up);
        QVERIFY(open.choice(1)->isChecked());
        QCOMPARE(open.cursor(), std::optional<TokenIndex>(128)); // no step was taken
    }

    void homeAndEndGoToTheEndsOfTheSteps() {
        Lectern open;
        open.openLesson(kBlocks);
        QWidget* timeline = nullptr; // a canvas, which Home resets where no steps are taught
        for (ViewDock* dock : open.window.canvases()->docks())
            if (dock->canvas()->view().card().id == "block_timeline") timeline = dock->canvas()->canvas();
        for (QWidget* focused : {static_cast<QWidget*>(&open.window), timeline}) {
            focused->setFocus();
            QTest::keyClick(focused, Qt::Key_End);
            QTRY_COMPARE(open.steps().step(), 7);
            QTest::keyClick(focused, Qt::Key_Home);
            QCOMPARE(open.steps().step(), 0);
        }
    }

    void lessonsLeadToTheirNeighbours() {
        Lectern open;
        open.openLesson(1);
        QVERIFY(!open.find<QPushButton>("previousLesson"));
        open.click("nextLesson");
        QTRY_COMPARE(open.number(), 2);
        QTRY_VERIFY(open.find<QPushButton>("previousLesson"));
        open.click("previousLesson");
        QTRY_COMPARE(open.number(), 1);
    }

    // Page Down opens the next lesson from the list, too, and the ring goes with it.
    void theFocusInTheListFollowsTheOpenLesson() {
        Lectern open;
        open.openLesson(1);
        open.find<QPushButton>("lesson1")->setFocus(Qt::TabFocusReason);
        open.click("nextLesson");
        QTRY_COMPARE(open.number(), 2);
        QTRY_VERIFY(open.find<QPushButton>("lesson2")->hasFocus());
    }

    // Views that only a lesson shows leave with it, and so does the player of steps that a lesson has not.
    void noTabsAreLeftBehind() {
        Lectern open;
        const auto shown = [&] {
            QStringList ids;
            for (PanelDock* dock : open.window.docks()->all())
                if (!dock->isHidden()) ids += dock->id();
            return ids;
        };
        QTest::keyClick(&open.window, Qt::Key_3, Qt::ControlModifier);
        open.arrange();
        const QStringList before = shown();
        QVERIFY(before.contains("steps") && !before.contains("error_difference"));
        for (int lesson = 1; lesson <= kvscope::testing::kLessons; ++lesson) {
            open.openLesson(lesson);
            open.arrange();
            const auto views = lessonOf(open.bench.session())->views;
            for (const QString& id : shown())
                QVERIFY2(before.contains(id) || std::ranges::find(views, id.toStdString()) != views.end(),
                         qPrintable(QString("lesson %1: %2").arg(lesson).arg(id)));
        }
        open.click("leaveLesson");
        QTRY_COMPARE(shown(), before);
    }

    void aTableFollowsTheSteps() {
        Lectern open;
        open.openLesson(kSubgen);
        open.click("lessonStop1"); // 512 tokens
        ViewCanvas* canvas = nullptr;
        for (ViewDock* dock : open.window.canvases()->docks())
            if (dock->canvas()->view().card().id == "clustering") canvas = dock->canvas();
        QVERIFY(canvas);
        QTRY_VERIFY_WITH_TIMEOUT(canvas->table().rowCount > 0, 60'000);
        open.finish();
        auto* dialog = new DataDialog(open.bench, *canvas, &open.window);
        const auto rows = [&] { return dialog->findChild<QTableView*>()->model()->rowCount(); };
        const int before = rows();
        QCOMPARE(before, static_cast<int>(canvas->table().rowCount));
        open.bench.setCursor(100);
        QVERIFY2(rows() < before, qPrintable(QString("%1 of %2").arg(rows()).arg(before)));
        QCOMPARE(rows(), static_cast<int>(canvas->table().rowCount));
    }

    // The number of clusters to come is what the lesson asks: neither line nor axis shows it ahead.
    void theFutureOfTheClustersIsNotDrawn() {
        Lectern open;
        open.openLesson(kSubgen);
        open.click("lessonStop1"); // 512 tokens
        const auto labels = [&] {
            QStringList texts;
            for (ViewDock* dock : open.window.canvases()->docks())
                if (dock->canvas()->view().card().id == "clustering")
                    for (const Drawable& item : dock->canvas()->canvas()->scene().items)
                        if (const auto* text = std::get_if<TextItem>(&item))
                            texts += QString::fromStdString(text->text);
            return texts;
        };
        QTRY_VERIFY_WITH_TIMEOUT(labels().contains("m = 58"), 60'000);
        QVERIFY2(!labels().contains("100"), qPrintable(labels().join('|')));
    }
};

KVSCOPE_WINDOW_TEST(LessonWindowTest)
#include "lesson_window_test.moc"
