// Sessions with a file come to no harm, whatever replaces them in the window; and one that cannot be written never
// locks the window up.
#include <QtTest>

#include "app/study/session_file.h"
#include "app/window/actions/file_actions.h"
#include "app/window/actions/window_actions.h"
#include "app/window/panels/lesson_question.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/window_fixture.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QDir>
#include <QFile>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QTimer>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::kSample;
using kvscope::testing::OpenWindow;

namespace {

const QString kLesson = QString::fromStdString(kvscope::testing::sourceDir() + "/resources/lessons/quotient.kvscope");

const QString kBlocks = QString::fromStdString(kvscope::testing::sourceDir() + "/resources/lessons/blocks.kvscope");
const QString kOther = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/story-2k.h5");

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// Answers the next question that a dialog asks.
void answer(QMessageBox::StandardButton button) {
    auto* timer = new QTimer(qApp);
    QObject::connect(timer, &QTimer::timeout, qApp, [timer, button] {
        const auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
        if (!box) return;
        timer->deleteLater();
        QTest::mouseClick(box->button(button), Qt::LeftButton);
    });
    timer->start(30);
}

/// A window on a session of its own, changed since it was opened: layer 4 instead of 2.
struct ChangedSession : OpenWindow {
    QTemporaryDir folder;
    QString path = folder.filePath("own/work.kvscope");

    ChangedSession() {
        QDir(folder.path()).mkdir("own");
        Session session = bench.session();
        session.layer = LayerIndex(2);
        writeSession(path.toStdString(), session);
        window.openPath(path);
        waitFor([this] { return bench.session().layer == LayerIndex(2) && bench.history().isSaved(); });
        bench.change([](Session& s) { s.layer = LayerIndex(4); }, "Layer");
    }
    template <class Condition> void waitFor(const Condition& condition) { QTRY_VERIFY(condition()); }
    LayerIndex stored() const { return readSession(path.toStdString()).layer; }
};

} // namespace

class WindowSessionsTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs); }
    void init() {
        QSettings().clear();
        QSettings().setValue("tourTaken", true);
    }

    void closingTheCaptureWritesNothingAndIsUndone() {
        ChangedSession open;
        QTest::keyClick(&open.window, Qt::Key_W, Qt::ControlModifier);
        QTRY_VERIFY(!open.bench.capture());
        QCOMPARE(open.stored(), LayerIndex(2));
        QVERIFY(!open.window.windowTitle().contains("work")); // what follows is not that session's
        QTest::keyClick(&open.window, Qt::Key_Z, Qt::ControlModifier);
        QTRY_VERIFY(open.bench.capture() && open.bench.session().layer == LayerIndex(4));
        QVERIFY(open.window.windowTitle().contains("work"));
        QCOMPARE(open.stored(), LayerIndex(2));
    }

    // "The same policies on the next prompt": nothing is asked, nothing is written, and undo leads back.
    void anotherCaptureKeepsPoliciesBudgetAndLayout() {
        ChangedSession open;
        open.bench.change(
            [](Session& s) {
                s.panes = {{PolicySpec::parse("compactor"), {}, {}}, {PolicySpec::parse("score"), {}, {}}};
                s.budget.value = 0.1;
                s.layout = WindowLayout::ExploreHead;
                s.cut = "999999";
            },
            "Study");
        const Session before = open.bench.session();
        open.window.openPath(kOther);
        QTRY_VERIFY(open.bench.session().capturePath == kOther.toStdString());
        const Session& now = open.bench.session();
        QVERIFY(now.panes == before.panes && now.budget == before.budget && now.layout == before.layout);
        QCOMPARE(now.cut, std::string("default"));
        QTRY_VERIFY(open.window.notices().messages().join(' ').contains("The cut 999999 does not fit"));
        QVERIFY(!open.window.windowTitle().contains("work"));
        QTest::keyClick(&open.window, Qt::Key_Z, Qt::ControlModifier);
        QTRY_VERIFY(open.bench.session().capturePath == before.capturePath);
        QVERIFY(open.bench.session().panes == before.panes && open.window.windowTitle().contains("work"));
        QTest::keyClick(&open.window, Qt::Key_Y, Qt::ControlModifier);
        QTRY_VERIFY(open.bench.session().capturePath == kOther.toStdString());
        open.window.openPath(QString::fromStdString(kSample));
        QTRY_VERIFY(open.bench.session().capturePath == kSample);
        QVERIFY(open.window.notices().messages().isEmpty()); // everything fits
        open.window.actions()->byName("afresh")->trigger();
        QTRY_COMPARE(open.bench.session().panes.size(), std::size_t(3));
        QCOMPARE(open.stored(), LayerIndex(2));
    }

    void aLessonGivesTheSessionBack() {
        ChangedSession open;
        const Session before = open.bench.session();
        open.window.openPath(kLesson);
        QTRY_VERIFY(!open.bench.session().lesson.empty());
        auto* leave = open.window.findChild<QPushButton*>("leaveLesson");
        QTRY_VERIFY(leave && leave->isVisible());
        QTest::mouseClick(leave, Qt::LeftButton);
        QTRY_VERIFY(open.bench.session().lesson.empty() && open.bench.capture());
        QVERIFY(open.bench.session().panes == before.panes && open.bench.session().layer == before.layer &&
                open.bench.session().layout == before.layout && open.window.windowTitle().contains("work"));
        QTest::keyClick(&open.window, Qt::Key_Z, Qt::ControlModifier);
        QTRY_VERIFY(!open.bench.session().lesson.empty());
        QCOMPARE(open.stored(), LayerIndex(2));
    }

    // As the clicker of a lecturer does, whatever was clicked before: through the stops, then to the next lesson.
    void pageKeysGoThroughStopsAndLessons() {
        OpenWindow open;
        open.window.openPath(kBlocks);
        const auto number = [&] {
            const auto lesson = lessonOf(open.bench.session());
            return lesson ? lesson->number : 0;
        };
        QTRY_COMPARE(number(), 7);
        QTRY_VERIFY(open.window.findChild<QLabel*>("lessonPlace"));
        QTest::mouseClick(open.window.findChild<QLabel*>("stepCaption"), Qt::LeftButton);
        for (const auto& [key, stop] : {std::pair{Qt::Key_PageDown, 1},
                                        {Qt::Key_PageDown, 2},
                                        {Qt::Key_Right, 0}, // playing on leaves the stop, not the order
                                        {Qt::Key_PageDown, 3},
                                        {Qt::Key_PageUp, 2}}) {
            QTest::keyClick(&open.window, key);
            QVERIFY(!stop || open.window.findChild<QLabel*>("lessonPlace")->text() ==
                                 QString("LOOK AT: STOP %1 OF 5").arg(stop));
        }
        for (int i = 0; i < 4; ++i) QTest::keyClick(&open.window, Qt::Key_PageDown); // three stops, the question
        QCOMPARE(number(), 7);
        const auto* question = open.window.findChild<LessonQuestion*>();
        const auto isInSight = [&] { return question->visibleRegion().boundingRect().height() == question->height(); };
        QTRY_VERIFY(isInSight());
        QTest::keyClick(&open.window, Qt::Key_PageDown);
        QTRY_COMPARE(number(), 8);
        QTest::keyClick(&open.window, Qt::Key_PageUp);
        QTRY_COMPARE(number(), 7); // at its end
        QTRY_VERIFY(open.window.findChild<LessonQuestion*>() != nullptr);
        question = open.window.findChild<LessonQuestion*>();
        QTRY_VERIFY(isInSight());
        QTest::keyClick(&open.window, Qt::Key_PageUp);
        QCOMPARE(open.window.findChild<QLabel*>("lessonPlace")->text(), QString("LOOK AT: STOP 5 OF 5"));
    }

    void theNextWindowLooksLikeTheLast() {
        {
            OpenWindow open;
            open.bench.change(
                [](Session& s) {
                    s.look.theme = ThemeChoice::Dark;
                    s.look.compact = true;
                    s.layout = WindowLayout::ExploreHead;
                },
                "Interface");
            QVERIFY(open.window.close());
        }
        const OpenWindow next;
        const Session& session = next.bench.session();
        QVERIFY(session.look.theme == ThemeChoice::Dark && session.look.compact);
        QCOMPARE(session.layout, WindowLayout::ExploreHead);
    }

    void closingTheWindowAsksForUnsavedFiles() {
        ChangedSession open;
        answer(QMessageBox::Cancel);
        QVERIFY(!open.window.close());
        QCOMPARE(open.stored(), LayerIndex(2));
        answer(QMessageBox::Save);
        QVERIFY(open.window.close());
        QCOMPARE(open.stored(), LayerIndex(4));
    }

    void aSessionThatCannotBeWrittenIsSaidAndCanBeLeft() {
        ChangedSession open;
        QVERIFY(QDir(open.folder.filePath("own")).removeRecursively());
        answer(QMessageBox::Save);
        QVERIFY(!open.window.close());
        QVERIFY(open.window.isVisible());
        QTRY_VERIFY(open.window.notices().messages().join(' ').contains("work.kvscope"));
        QCOMPARE(open.bench.session().layer, LayerIndex(4)); // nothing is lost meanwhile
        answer(QMessageBox::Discard);
        QVERIFY(open.window.close());
    }

    void aSessionWhoseCaptureIsGoneIsGivenAnother() {
        ChangedSession open;
        Session session = readSession(open.path.toStdString());
        session.capturePath = open.folder.filePath("gone.h5").toStdString();
        const QString path = open.folder.filePath("lost.kvscope");
        writeSession(path.toStdString(), session);
        open.window.openPath(path);
        QTRY_VERIFY(open.noticeButton("Locate…"));
        QVERIFY(open.window.notices().messages().join(' ').contains("gone.h5"));
        answerFileDialog(QString::fromStdString(kSample));
        QTest::mouseClick(open.noticeButton("Locate…"), Qt::LeftButton);
        QTRY_VERIFY(open.window.windowTitle().contains("lost"));
        QVERIFY(open.bench.session().layer == LayerIndex(2) && open.bench.session().capturePath == kSample);
    }

    void saveAsThatFailsLeavesTheSessionItsFile() {
        ChangedSession open;
        answerFileDialog(open.folder.filePath("gone/other.kvscope"));
        open.window.actions()->byName("saveAs")->trigger();
        QTRY_VERIFY(open.window.windowTitle().contains("work"));
        open.window.actions()->byName("save")->trigger();
        QTRY_COMPARE(open.stored(), LayerIndex(4));
    }

    // However a lesson's file is opened and left, the program does not write it: saving asks for another name.
    void aLessonsFileIsNeverWritten() {
        OpenWindow open;
        QTemporaryDir folder;
        const QString file = folder.filePath("lesson.kvscope"), own = folder.filePath("own.kvscope");
        writeSession(file.toStdString(), readSession(kLesson.toStdString()));
        const QByteArray before = contentOf(file);
        open.window.openPath(file);
        QTRY_VERIFY(!open.bench.session().lesson.empty() && open.bench.capture());
        const LayerIndex layer = open.bench.session().layer;
        QTest::keyClick(&open.window, Qt::Key_BracketLeft); // another head
        open.bench.change([](Session& s) { s.layer = LayerIndex(s.layer.value == 1 ? 2 : 1); }, "Layer");
        QVERIFY(open.bench.session().layer != layer && !open.bench.history().isSaved());
        answerFileDialog(own);
        QTest::keyClick(&open.window, Qt::Key_S, Qt::ControlModifier);
        QTRY_VERIFY(QFile::exists(own));
        QCOMPARE(readSession(own.toStdString()).layer, open.bench.session().layer);
        open.bench.change([](Session& s) { s.layer = LayerIndex(4); }, "Layer");
        open.activate();
        QTest::keyClick(&open.window, Qt::Key_S, Qt::ControlModifier); // one's own file is not asked for again
        QVERIFY2(open.bench.history().isSaved(), qPrintable(open.window.notices().messages().join(" | ")));
        QCOMPARE(readSession(own.toStdString()).layer, LayerIndex(4));
        open.window.openPath(file);
        QTRY_COMPARE(open.bench.session().layer, layer);
        open.bench.change([](Session& s) { s.layer = LayerIndex(5); }, "Layer");
        QTest::keyClick(&open.window, Qt::Key_W, Qt::ControlModifier); // leaving it saves nothing
        QTRY_VERIFY(!open.bench.capture());
        QCOMPARE(contentOf(file), before);
    }

    void anInstalledLessonIsNotOverwritten() {
        OpenWindow open;
        const QByteArray before = contentOf(kLesson);
        open.window.openPath(kLesson);
        QTRY_VERIFY(!open.bench.session().lesson.empty());
        open.bench.change([](Session& s) { s.seed = 7; }, "Seed");
        answerFileDialog(kLesson);
        answer(QMessageBox::Yes);
        QTest::keyClick(&open.window, Qt::Key_S, Qt::ControlModifier | Qt::ShiftModifier);
        QTRY_VERIFY(open.window.notices().messages().join(' ').contains("choose another name"));
        const QByteArray after = contentOf(kLesson);
        if (QFile file(kLesson); after != before && file.open(QIODevice::WriteOnly)) file.write(before);
        QCOMPARE(after, before);
        QVERIFY(!open.window.windowTitle().contains("quotient"));
    }

    void escapeLeavesTheFieldOfFind() {
        OpenWindow open;
        QTest::keyClick(&open.window, Qt::Key_F, Qt::ControlModifier);
        auto* find = open.window.findChild<QLineEdit*>("find");
        QTRY_VERIFY(find->hasFocus());
        QTest::keyClicks(find, "garden");
        QTest::keyClick(find, Qt::Key_Return);
        QTRY_VERIFY(!open.bench.session().selected.empty());
        const auto selected = open.bench.session().selected;
        QTest::keyClick(find, Qt::Key_Escape);
        QTRY_VERIFY(!find->hasFocus());
        QCOMPARE(open.bench.session().selected, selected); // one thing at a time
        QTest::keyClick(&open.window, Qt::Key_Escape);
        QTRY_VERIFY(open.bench.session().selected.empty());
    }
};

KVSCOPE_WINDOW_TEST(WindowSessionsTest)
#include "window_sessions_test.moc"
