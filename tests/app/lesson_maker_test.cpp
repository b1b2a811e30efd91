// A lesson made of a session by clicks opens as any other, with every stop as it was taken.
#include <QtTest> // first: moc cannot read the concepts of the standard library

#include "app/lessons/lesson.h"
#include "app/lessons/lesson_quantities.h"
#include "app/study/session_file.h"
#include "app/window/actions/window_actions.h"
#include "app/window/dialogs/lesson_maker.h"
#include "app/window/dialogs/question_maker.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/classroom.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QListWidget>
#include <QMenu>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QRadioButton>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>

#include <set>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::Classroom;

class LessonMakerTest : public QObject {
    Q_OBJECT

    /// Esc belongs to the active window.
    static bool isActivated(QWidget* window) {
        window->activateWindow();
        return QTest::qWaitFor([&] { return QApplication::activeWindow() == window; });
    }

private slots:
    void initTestCase() { QStandardPaths::setTestModeEnabled(true); }
    void init() {
        QSettings().clear();
        QDir(LessonMaker::folder()).removeRecursively();
    }
    void cleanupTestCase() { QDir(LessonMaker::folder()).removeRecursively(); }

    void anotherStartIsNotLostUnasked() {
        Classroom open;
        open.window.actions()->byName("makeLesson")->trigger();
        auto* maker = open.find<LessonMaker>("lessonMaker");
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.1}); }, "Budget");
        QTest::mouseClick(maker->findChild<QPushButton*>("makerStart"), Qt::LeftButton);
        bool asked = false;
        QTimer::singleShot(0, maker, [&] {
            auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
            asked = question != nullptr;
            if (asked) QTest::keyClick(question, Qt::Key_Escape); // no
        });
        maker->reject();
        QVERIFY(asked && maker->isVisible());
    }

    /// The words of the old choices are about another quantity.
    void anotherQuantityHasItsOwnChoices() {
        Classroom open;
        QuestionMaker maker(open.bench, nullptr);
        Lesson lesson;
        lesson.question = "How much?";
        lesson.answer = "So much.";
        lesson.quantity = lessonQuantities().front().id;
        lesson.choices = {{"Few of them", 20}, {"Many of them"}};
        maker.show(lesson);
        Lesson written = lesson;
        maker.writeTo(written);
        QCOMPARE(written.choices.front().text, std::string("Few of them"));
        auto* quantities = maker.findChild<QComboBox*>("makerQuantity");
        emit quantities->activated(quantities->currentIndex()); // the same one, of what is shown now
        maker.writeTo(written);
        QCOMPARE(written.choices.front().text, std::string("Few of them"));
        quantities->setCurrentIndex(quantities->currentIndex() + 1);
        emit quantities->activated(quantities->currentIndex());
        maker.writeTo(written);
        QVERIFY2(written.choices.front().text.starts_with("Below"), written.choices.front().text.c_str());
        quantities->setCurrentIndex(quantities->currentIndex() - 1);
        emit quantities->activated(quantities->currentIndex());
        maker.writeTo(written);
        QCOMPARE(written.choices.front().text, std::string("Few of them")); // nothing of the author's is lost
        open.finish();
    }

    void boundsAreFiniteNumbersThatRise() {
        Classroom open;
        QuestionMaker maker(open.bench, nullptr);
        Lesson lesson;
        lesson.question = "How much?";
        lesson.quantity = "kept_share";
        lesson.choices = {{"Few of them", 20}, {"Many of them"}};
        maker.show(lesson);
        const auto missing = [&](const char* bounds) {
            maker.findChild<QLineEdit*>("makerBounds")->setText(bounds);
            return maker.missing();
        };
        for (const char* wrong : {"nan", "inf", "20, inf", "nan, 20", "-inf, 20", "1e999", "20, 20"})
            QVERIFY2(missing(wrong).contains("ascending numbers"), wrong);
        QVERIFY(!missing("20, 60").contains("ascending numbers"));
    }

    void theFindingsOfTheStopsAreHiddenToo() {
        Classroom open;
        QuestionMaker maker(open.bench, nullptr);
        Lesson lesson;
        lesson.question = "How much?";
        lesson.quantity = "kept_share";
        lesson.choices = {{"Few of them", 20}, {"Many of them"}};
        lesson.views = {"token_profile", "attention_map"};
        lesson.stops.resize(1);
        lesson.stops[0].views = {"token_strip"};
        const auto written = [&] {
            Lesson of = lesson;
            maker.findChild<QCheckBox*>("makerWithhold")->setChecked(true);
            maker.writeTo(of);
            return std::set<std::string>(of.withheld.begin(), of.withheld.end());
        };
        maker.show(lesson);
        QCOMPARE(written(), (std::set<std::string>{"token_profile", "attention_map", "token_strip"}));
        lesson.withheld = {"attention_map"}; // its author shows the others
        maker.show(lesson);
        QCOMPARE(written(), (std::set<std::string>{"attention_map"}));
        lesson.stops[0].views.push_back("score_chart"); // a new one
        QCOMPARE(written(), (std::set<std::string>{"attention_map", "score_chart"}));
    }

    void aNewQuestionHasNoNumbersOfTheOldOne() {
        Classroom open;
        QuestionMaker maker(open.bench, nullptr);
        Lesson lesson;
        lesson.question = "How much?";
        lesson.quantity = "kept_share";
        lesson.choices = {{"Few of them", 20}, {"Many of them"}};
        lesson.recorded = {{"kept_share@0", 0.7}};
        maker.show(lesson);
        maker.writeTo(lesson);
        QCOMPARE(lesson.recorded.size(), std::size_t{1});
        maker.findChild<QPushButton*>("makerAsk")->click();
        maker.writeTo(lesson);
        QVERIFY(lesson.recorded.empty());
        open.finish();
    }

    /// The number that was being computed is of no quantity any more when it arrives.
    void theQuantityIsTakenBackWhileItIsComputed() {
        Classroom open;
        QuestionMaker maker(open.bench, nullptr);
        auto* quantities = maker.findChild<QComboBox*>("makerQuantity");
        const auto choose = [&](int index) {
            quantities->setCurrentIndex(index);
            emit quantities->activated(index);
        };
        choose(quantities->findData(QString("needed_retention"))); // twenty runs
        QVERIFY(maker.findChild<QLabel*>("makerNow")->text().startsWith("Computing"));
        choose(0);
        open.finish();
        QCOMPARE(maker.findChild<QLabel*>("makerNow")->text(), QString());
    }

    /// The file names the start's capture alone: what was taken on another one would be shown on this one.
    void aLessonIsOfOneCapture() {
        Classroom open;
        open.window.actions()->byName("makeLesson")->trigger();
        auto* maker = open.find<LessonMaker>("lessonMaker");
        const auto click = [&](const char* name) {
            QTest::mouseClick(maker->findChild<QPushButton*>(name), Qt::LeftButton);
        };
        const auto why = [&] { return maker->findChild<QLabel*>("makerWhy")->text(); };
        QTest::keyClicks(maker->findChild<QWidget*>("makerTitle"), "Two captures");
        click("makerAdd");
        open.bench.openCapture(kvscope::testing::sourceDir() + "/sample_data/story-2k.h5");
        QTRY_VERIFY_WITH_TIMEOUT(open.bench.session().capturePath.ends_with("story-2k.h5"), 60'000);
        click("makerAdd");
        click("makerSave");
        QVERIFY2(why().contains("taken on another capture than the start"), qPrintable(why()));
        click("makerStart"); // now the first stop is the other one
        click("makerSave");
        QVERIFY2(why().contains("taken on another capture than the start"), qPrintable(why()));
        maker->findChild<QListWidget*>("makerStops")->setCurrentRow(0);
        click("makerRetake");
        const QString path = QDir(LessonMaker::folder()).filePath("two-captures.kvscope");
        answerFileDialog(path);
        click("makerSave");
        QTRY_VERIFY(QFile::exists(path));
        QVERIFY(why().isEmpty());
    }

    void aSessionBecomesALessonByClicks() {
        Classroom open;
        open.window.actions()->byName("makeLesson")->trigger();
        auto* maker = open.find<LessonMaker>("lessonMaker");
        QVERIFY(maker && maker->isVisible());
        const auto click = [&](const char* name) {
            QTest::mouseClick(maker->findChild<QPushButton*>(name), Qt::LeftButton);
        };
        const auto write = [&](const char* field, const char* text) {
            QTest::keyClicks(maker->findChild<QWidget*>(field), text);
        };
        click("makerSave"); // without a title nothing is asked
        QVERIFY(maker->findChild<QLabel*>("makerWhy")->text().contains("title"));
        write("makerTitle", "Budgets and heads");
        write("makerText", "Less cache, more error.");
        QVERIFY(isActivated(maker));
        bool asked = false;
        QTimer::singleShot(0, maker, [&] {
            auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
            asked = question != nullptr;
            if (asked) QTest::keyClick(question, Qt::Key_Escape); // no
        });
        QTest::keyClick(maker, Qt::Key_Escape);
        QTRY_VERIFY(asked);
        QVERIFY(maker->isVisible());
        const Session start = open.bench.session();
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.1}); }, "Budget");
        click("makerAdd");
        write("makerStopTitle", "A tenth");
        write("makerStopText", "Look at the error.");
        open.bench.change(
            [](Session& s) {
                s.layer = LayerIndex(5);
                s.activePane = 1;
                setViewOption(s, "token_profile", "scale", "rank");
            },
            "Layer");
        click("makerAdd");
        write("makerStopText", "Another head.");
        const Session second = open.bench.session();
        QCOMPARE(maker->findChild<QListWidget*>("makerStops")->count(), 2);
        const QString path = QDir(LessonMaker::folder()).filePath("budgets-and-heads.kvscope");
        answerFileDialog(path);
        click("makerSave");
        QTRY_VERIFY(QFile::exists(path));
        QVERIFY(isActivated(maker));
        QTest::keyClick(maker, Qt::Key_Escape); // all is saved: nothing is asked
        QTRY_VERIFY(!open.find<LessonMaker>("lessonMaker"));
        open.activate();
        const auto lesson = lessonOf(readSession(path.toStdString()));
        QVERIFY(lesson);
        QCOMPARE(lesson->title, std::string("Budgets and heads"));
        QCOMPARE(lesson->stops.size(), std::size_t{2});
        QVERIFY(isAt(start, lesson->start));
        QVERIFY(isAt(second, lesson->stops[1].setting));
        QCOMPARE(lesson->stops[0].setting.budget.value, 0.1);
        QCOMPARE(lesson->stops[0].setting.layer, start.layer);
        QCOMPARE(open.window.lessons().size(), static_cast<std::size_t>(kvscope::testing::kLessons) + 1);
        // Teach lists it, and it is led through as the others are.
        QTest::keyClick(&open.window, Qt::Key_3, Qt::ControlModifier);
        const auto row = [&] { return open.find<QPushButton>("lesson17"); };
        QTRY_VERIFY_WITH_TIMEOUT(row() && row()->isVisible(), 20'000); // when the docks are arranged
        QTest::mouseClick(row(), Qt::LeftButton);
        QTRY_VERIFY2(lessonOf(open.bench.session()), qPrintable(open.window.notices().messages().join(" | ")));
        QCOMPARE(lessonOf(open.bench.session())->title, std::string("Budgets and heads"));
        QTRY_VERIFY_WITH_TIMEOUT(open.settled(), 60'000);
        QVERIFY(open.visibleTexts().contains("Less cache, more error."));
        QTest::keyClick(&open.window, Qt::Key_PageDown);
        QCOMPARE(open.bench.session().budget.value, 0.1);
        QTest::keyClick(&open.window, Qt::Key_PageDown);
        QCOMPARE(open.bench.session().layer, LayerIndex(5));
    }

    // The question is asked of what is shown, its number computed at once; the reader meets it as in the program's own.
    void aQuestionByClicks() {
        Classroom open;
        open.window.actions()->byName("makeLesson")->trigger();
        auto* maker = open.find<LessonMaker>("lessonMaker");
        const auto write = [&](const char* field, const char* text) {
            QTest::keyClicks(maker->findChild<QWidget*>(field), text);
        };
        const auto save = [&] { QTest::mouseClick(maker->findChild<QPushButton*>("makerSave"), Qt::LeftButton); };
        const auto why = [&] { return maker->findChild<QLabel*>("makerWhy")->text(); };
        const auto now = [&] { return maker->findChild<QLabel*>("makerNow")->text(); };
        write("makerTitle", "What is lost");
        write("makerText", "Less cache, more error.");
        auto* pages = maker->findChild<QWidget*>("makerPages");
        pages->setFocus();
        QTest::keyClick(pages, Qt::Key_Right);
        QTRY_VERIFY(maker->findChild<QWidget*>("makerQuestion")->isVisible());
        write("makerQuestion", "Which share is kept?");
        save();
        QVERIFY2(why().contains("needs the number"), qPrintable(why()));
        auto* quantity = maker->findChild<QComboBox*>("makerQuantity");
        quantity->setFocus();
        while (quantity->currentData().toString() != "kept_share") {
            const int before = quantity->currentIndex();
            QTest::keyClick(quantity, Qt::Key_Down);
            QVERIFY(quantity->currentIndex() != before);
        }
        QTRY_COMPARE_WITH_TIMEOUT(now(), QString("Computed: 24.9 %"), 60'000); // 248 of 995 tokens
        write("makerBounds", "60, 20");
        save();
        QVERIFY2(why().contains("ascending"), qPrintable(why()));
        auto* bounds = maker->findChild<QLineEdit*>("makerBounds");
        bounds->selectAll();
        write("makerBounds", "20, 60");
        QVERIFY2(now().endsWith("That is: 20 to 60 %"), qPrintable(now()));
        write("makerAnswer", "It is {vlue}.");
        save();
        QVERIFY2(why().contains("vlue"), qPrintable(why()));
        auto* answer = maker->findChild<QPlainTextEdit*>("makerAnswer");
        answer->selectAll();
        write("makerAnswer", "It is {value}, error {output_error}.");
        const QString path = QDir(LessonMaker::folder()).filePath("what-is-lost.kvscope");
        answerFileDialog(path);
        save();
        QTRY_VERIFY(QFile::exists(path));
        QVERIFY(isActivated(maker));
        QTest::keyClick(maker, Qt::Key_Escape);
        QTRY_VERIFY(!open.find<LessonMaker>("lessonMaker"));
        // The menu has it at once.
        QMenu* lessons = nullptr;
        for (QMenu* menu : open.window.findChildren<QMenu*>())
            if (menu->title() == "&Lessons") lessons = menu;
        QVERIFY(lessons);
        lessons->popup({0, 0});
        QTRY_COMPARE(lessons->actions().size(), kvscope::testing::kLessons + 1);
        QVERIFY(lessons->actions().back()->text().contains("What is lost"));
        for (int i = 0; i < lessons->actions().size(); ++i) QTest::keyClick(lessons, Qt::Key_Down);
        QTest::keyClick(lessons, Qt::Key_Return);
        QTRY_VERIFY(lessonOf(open.bench.session()) && lessonOf(open.bench.session())->title == "What is lost");
        QTRY_VERIFY(open.find<QRadioButton>("lessonChoice1") && open.find<QRadioButton>("lessonChoice1")->isVisible());
        QCOMPARE(open.find<QRadioButton>("lessonChoice0")->text(), QString("Below 20 %"));
        QTRY_VERIFY_WITH_TIMEOUT(open.settled(), 60'000);
        QTest::mouseClick(open.find<QRadioButton>("lessonChoice1"), Qt::LeftButton, {}, QPoint(8, 12));
        QTest::mouseClick(open.find<QPushButton>("lessonAnswerButton"), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(open.find<QLabel>("lessonVerdict")->text().startsWith("As you predicted: 20 to 60 %"),
                                 60'000);
        QVERIFY(open.find<QLabel>("lessonAnswer")->text().startsWith("It is 24.9 %, error 0."));
    }

    // Whatever a lesson holds, written and read again it is the same; its question stays.
    void aLessonIsWrittenAsItIsRead_data() {
        QTest::addColumn<QString>("path");
        const auto folder = kvscope::testing::sourceDir() + "/resources/lessons";
        for (const LessonFile& file : lessonsIn(folder))
            QTest::newRow(file.lesson.title.c_str()) << QString::fromStdString(file.path);
    }
    void aLessonIsWrittenAsItIsRead() {
        QFETCH(QString, path);
        Session session = readSession(path.toStdString());
        noteStart(session);
        const Lesson before = *lessonOf(session);
        Session moved = session;
        if (!before.stops.empty()) applySetting(moved, before.stops.back().setting);
        QTemporaryDir folder;
        const std::string copy = folder.filePath("copy.kvscope").toStdString();
        writeSession(copy, sessionWith(before, moved));
        const Lesson after = *lessonOf(readSession(copy));
        QCOMPARE(after.title, before.title);
        QCOMPARE(after.text, before.text);
        QCOMPARE(after.views, before.views);
        QCOMPARE(after.question, before.question);
        QCOMPARE(after.answer, before.answer);
        QCOMPARE(after.quantity, before.quantity);
        QVERIFY(after.pane == before.pane && after.claim == before.claim && after.withheld == before.withheld &&
                after.answeredViews == before.answeredViews);
        QCOMPARE(after.choices.size(), before.choices.size());
        for (std::size_t i = 0; i < before.choices.size(); ++i)
            QVERIFY(after.choices[i].text == before.choices[i].text &&
                    after.choices[i].below == before.choices[i].below);
        QVERIFY(isAt(after.asked, before.asked) && hasCaseOf(after.asked, before.asked));
        QVERIFY(isAt(after.start, before.start));
        QCOMPARE(after.stops.size(), before.stops.size());
        for (std::size_t i = 0; i < before.stops.size(); ++i) {
            QCOMPARE(after.stops[i].text, before.stops[i].text);
            QCOMPARE(after.stops[i].views, before.stops[i].views);
            Session there = after.start;
            applySetting(there, after.stops[i].setting);
            Session wanted = after.start;
            applySetting(wanted, before.stops[i].setting);
            QVERIFY2(there == wanted, before.stops[i].text.c_str());
        }
    }

    void optionsOfANewerVersionAreKept() {
        Session session = readSession(kvscope::testing::sourceDir() + "/resources/lessons/cut.kvscope");
        session.viewOptions["hologram"]["depth"] = "3";
        session.viewOptions["walk"]["hologram"] = "on";
        noteStart(session);
        const Lesson lesson = *lessonOf(session);
        QVERIFY(!lesson.stops.empty());
        const Session written = sessionWith(lesson, session);
        QVERIFY(lessonOf(written)->start.viewOptions == lesson.start.viewOptions);
    }
};

KVSCOPE_WINDOW_TEST(LessonMakerTest)
#include "lesson_maker_test.moc"
