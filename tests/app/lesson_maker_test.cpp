// A lesson made of a session by clicks opens as any other, with every stop as it was taken.
#include <QtTest>

#include "app/lessons/lesson.h"
#include "app/lessons/lesson_quantities.h"
#include "app/study/resources.h"
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

namespace {

/// A window with the dialog in which a lesson is made.
struct Author : Classroom {
    LessonMaker* maker = nullptr;

    Author() {
        window.actions()->byName("makeLesson")->trigger();
        maker = find<LessonMaker>("lessonMaker");
    }
    void click(const char* button) { QTest::mouseClick(maker->findChild<QPushButton*>(button), Qt::LeftButton); }
    void write(const char* field, const char* text) { QTest::keyClicks(maker->findChild<QWidget*>(field), text); }
    /// Saves under a name of the folder of one's own lessons.
    QString saveAs(const char* name) {
        const QString path = QDir(LessonMaker::folder()).filePath(name);
        answerFileDialog(path);
        click("makerSave");
        return path;
    }
    QString why() const { return maker->findChild<QLabel*>("makerWhy")->text(); }
    QString now() const { return maker->findChild<QLabel*>("makerNow")->text(); }
    /// Of all fields.
    QList<QRect> places() {
        settle();
        QList<QRect> all;
        for (const char* field : {"makerTitle", "makerText", "makerStops", "makerStopTitle", "makerStopText",
                                  "makerQuestion", "makerBounds", "makerAnswer"})
            all += maker->findChild<QWidget*>(field)->geometry();
        return all;
    }
    /// Esc belongs to the active window.
    bool isActivated() {
        maker->activateWindow();
        return QTest::qWaitFor([&] { return QApplication::activeWindow() == maker; });
    }
    /// Whether it asks when it is to be closed; the answer is no.
    template <class Close> bool asksBefore(const Close& close) {
        bool asked = false;
        QTimer::singleShot(0, maker, [&] {
            auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
            asked = question != nullptr;
            if (asked) QTest::keyClick(question, Qt::Key_Escape);
        });
        close();
        return QTest::qWaitFor([&] { return asked; });
    }
};

Lesson lessonAbout(const std::string& quantity) {
    Lesson lesson;
    lesson.question = "How much?";
    lesson.quantity = quantity;
    lesson.choices = {{"Few of them", 20}, {"Many of them"}};
    return lesson;
}

} // namespace

class LessonMakerTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { QStandardPaths::setTestModeEnabled(true); }
    void init() {
        QSettings().clear();
        QDir(LessonMaker::folder()).removeRecursively();
    }
    void cleanupTestCase() { QDir(LessonMaker::folder()).removeRecursively(); }

    void anotherStartIsNotLostUnasked() {
        Author open;
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.1}); }, "Budget");
        open.click("makerStart");
        QVERIFY(open.asksBefore([&] { open.maker->reject(); }) && open.maker->isVisible());
    }

    void whyAFileIsRefusedStaysWhileFieldsChange() {
        Author open;
        open.write("makerTitle", "Mine");
        open.saveAs((findResource("resources/lessons") + "/mine.kvscope").c_str());
        const auto isSaid = [&] { return open.why().contains("choose another one"); };
        QVERIFY2(isSaid(), qPrintable(open.why()));
        open.write("makerTitle", "!");
        QVERIFY(isSaid());
    }

    /// The words of the old choices are about another quantity.
    void anotherQuantityHasItsOwnChoices() {
        Classroom open;
        QuestionMaker maker(open.bench, nullptr);
        Lesson lesson = lessonAbout(lessonQuantities().front().id);
        lesson.answer = "So much.";
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
        maker.show(lessonAbout("kept_share"));
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
        Lesson lesson = lessonAbout("kept_share");
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
        Lesson lesson = lessonAbout("kept_share");
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
        Author open;
        open.write("makerTitle", "Two captures");
        open.click("makerAdd");
        open.bench.openCapture(kvscope::testing::sourceDir() + "/sample_data/story-2k.h5");
        QTRY_VERIFY_WITH_TIMEOUT(open.bench.session().capturePath.ends_with("story-2k.h5"), 60'000);
        open.click("makerAdd");
        const QList<QRect> before = open.places();
        open.click("makerSave");
        QVERIFY2(open.why().contains("taken on another capture than the start"), qPrintable(open.why())); // two lines
        QCOMPARE(open.places(), before);
        open.click("makerStart"); // now the first stop is the other one
        open.click("makerSave");
        QVERIFY2(open.why().contains("taken on another capture than the start"), qPrintable(open.why()));
        open.maker->findChild<QListWidget*>("makerStops")->setCurrentRow(0);
        open.click("makerRetake");
        const QString path = open.saveAs("two-captures.kvscope");
        QTRY_VERIFY(QFile::exists(path));
        QVERIFY(open.why().isEmpty());
    }

    void aSessionBecomesALessonByClicks() {
        Author open;
        QVERIFY(open.maker && open.maker->isVisible());
        open.click("makerSave"); // without a title nothing is asked
        QVERIFY(open.why().contains("title"));
        open.write("makerTitle", "Budgets and heads");
        open.write("makerText", "Less cache, more error.");
        QVERIFY(open.isActivated());
        QVERIFY(open.asksBefore([&] { QTest::keyClick(open.maker, Qt::Key_Escape); }) && open.maker->isVisible());
        const Session start = open.bench.session();
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.1}); }, "Budget");
        open.click("makerAdd");
        open.write("makerStopTitle", "A tenth");
        open.write("makerStopText", "Look at the error.");
        open.bench.change(
            [](Session& s) {
                s.layer = LayerIndex(5);
                s.activePane = 1;
                setViewOption(s, "token_profile", "scale", "rank");
            },
            "Layer");
        open.click("makerAdd");
        open.write("makerStopText", "Another head.");
        const Session second = open.bench.session();
        QCOMPARE(open.maker->findChild<QListWidget*>("makerStops")->count(), 2);
        const QString path = open.saveAs("budgets-and-heads.kvscope");
        QTRY_VERIFY(QFile::exists(path));
        QVERIFY(open.isActivated());
        QTest::keyClick(open.maker, Qt::Key_Escape); // all is saved: nothing is asked
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
        Author open;
        open.write("makerTitle", "What is lost");
        open.write("makerText", "Less cache, more error.");
        auto* pages = open.maker->findChild<QWidget*>("makerPages");
        pages->setFocus();
        QTest::keyClick(pages, Qt::Key_Right);
        QTRY_VERIFY(open.maker->findChild<QWidget*>("makerQuestion")->isVisible());
        open.write("makerQuestion", "Which share is kept?");
        open.click("makerSave");
        QVERIFY2(open.why().contains("needs the number"), qPrintable(open.why()));
        auto* quantity = open.maker->findChild<QComboBox*>("makerQuantity");
        quantity->setFocus();
        while (quantity->currentData().toString() != "kept_share") {
            const int before = quantity->currentIndex();
            QTest::keyClick(quantity, Qt::Key_Down);
            QVERIFY(quantity->currentIndex() != before);
        }
        QTRY_COMPARE_WITH_TIMEOUT(open.now(), QString("Computed: 24.9 %"), 60'000); // 248 of 995 tokens
        auto* bounds = open.maker->findChild<QLineEdit*>("makerBounds");
        open.write("makerBounds", "60, 20");
        const QList<QRect> before = open.places();
        open.click("makerSave");
        QVERIFY2(open.why().contains("ascending"), qPrintable(open.why()));
        QCOMPARE(open.places(), before); // no message moves a field
        bounds->selectAll();
        open.write("makerBounds", "20, 60");
        QCOMPARE(open.why(), QString()); // mended
        QCOMPARE(open.places(), before);
        QVERIFY2(open.now().endsWith("That is: 20 to 60 %"), qPrintable(open.now()));
        open.write("makerAnswer", "It is {vlue}.");
        open.click("makerSave");
        QVERIFY2(open.why().contains("vlue"), qPrintable(open.why()));
        auto* answer = open.maker->findChild<QPlainTextEdit*>("makerAnswer");
        answer->selectAll();
        open.write("makerAnswer", "It is {value}, error {output_error}.");
        const QString path = open.saveAs("what-is-lost.kvscope");
        QTRY_VERIFY(QFile::exists(path));
        QVERIFY(open.isActivated());
        QTest::keyClick(open.maker, Qt::Key_Escape);
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
