// Live contexts in the window: from the dialog to the answers' dock, what is wrong beside its field, progress and
// cancelling, undo, sessions, a worker that dies and one that is started again. The worker has no model.
#include <QtTest>

#include "app/live/live_context.h"
#include "app/study/session_file.h"
#include "app/window/actions/file_actions.h"
#include "app/window/actions/window_actions.h"
#include "app/window/dialogs/from_text_dialog.h"
#include "app/window/docks/dock_layout.h"
#include "core/run/stage_cache.h"
#include "tests/app/answer_context.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/window_fixture.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QSettings>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::FakeWorker;
using kvscope::testing::OpenWindow;

namespace {

/// A window, and a worker that reads 83 tokens: 61 of context, a question and an answer of 8.
struct LiveWindow : OpenWindow {
    FakeWorker fake{testing::contextWith().get()};

    LiveWindow() { QSettings().clear(); }
    live::LiveDescription description(const std::string& mode = "right") const {
        live::LiveDescription made;
        made.command = fake.command(mode);
        made.model.path = "/models/tiny";
        made.parts = {{SegmentKind::Context, "In the beginning"}, {SegmentKind::Answer, "48151"}};
        return made;
    }
    void openLive(const std::string& mode = "right") {
        bench.openLive(description(mode));
        waitForLive();
    }
    void waitForLive() {
        QVERIFY(until([this] { return bench.live() && idle(); }));
    }
    FromTextDialog* dialog() {
        trigger("newFromText");
        (void)until([this] { return window.findChild<FromTextDialog*>() != nullptr; });
        return window.findChild<FromTextDialog*>();
    }
    void trigger(const char* action) { window.actions()->byName(action)->trigger(); }
    /// The buttons of the notice `id`.
    QPushButton* button(const char* id, const QString& text) {
        for (QFrame* row : window.findChildren<QFrame*>(id))
            for (QPushButton* one : row->findChildren<QPushButton*>())
                if (one->text() == text) return one;
        return nullptr;
    }
};

template <class Field> Field* field(QDialog* dialog, const char* name) { return dialog->findChild<Field*>(name); }

void fill(FromTextDialog* dialog, const std::string& command, const QString& model) {
    field<QLineEdit>(dialog, "livePython")->setText(QString::fromStdString(command));
    field<QComboBox>(dialog, "liveModel")->setEditText(model);
    auto* text = field<QPlainTextEdit>(dialog, "liveText");
    text->clear();
    QTest::keyClicks(text, "In the beginning");
    QTest::mouseClick(field<QPushButton>(dialog, "checkPython"), Qt::LeftButton);
}

QString said(QDialog* dialog, const char* name) {
    const auto* label = field<QLabel>(dialog, name);
    return label->isVisibleTo(dialog) ? label->text() : QString();
}

void clickOpen(QDialog* dialog) {
    QTest::mouseClick(field<QDialogButtonBox>(dialog, "fromTextButtons")->button(QDialogButtonBox::Open),
                      Qt::LeftButton);
}

} // namespace

class LiveWindowTest : public QObject {
    Q_OBJECT

private slots:
    /// What is typed stays while the list comes.
    void modelsOfTheCacheAreOffered() {
        LiveWindow live;
        FromTextDialog* dialog = live.dialog();
        fill(dialog, live.fake.command("right"), "org/ti");
        auto* model = field<QComboBox>(dialog, "liveModel");
        model->lineEdit()->setCursorPosition(2);
        QVERIFY(live.until([&] { return model->findText("org/tiny") >= 0; }));
        QVERIFY(model->currentText() == "org/ti" && model->lineEdit()->cursorPosition() == 2);
    }

    void whatIsCarriedOverToAContextNamesIt() {
        LiveWindow live;
        live.openLive(); // it has no layer 3, which the file before has shown
        const QStringList said = live.window.notices().messages().filter("previous policies");
        QVERIFY2(said.size() == 1 && said[0].startsWith("fake (live) is shown"), qPrintable(said.join('|')));
    }

    void anotherCaptureDoesNotEndTheCheck() {
        LiveWindow live;
        FromTextDialog* dialog = live.dialog();
        QVERIFY(dialog);
        fill(dialog, live.fake.command("right"), "/models/tiny");
        live.bench.closeCapture(); // ends all jobs on the capture
        live.finish();
        QVERIFY2(said(dialog, "cutSays").contains("before the cut"), qPrintable(said(dialog, "pythonSays")));
    }

    void theDialogSaysWhatIsNeededAndOpens() {
        LiveWindow live;
        FromTextDialog* dialog = live.dialog();
        QVERIFY(dialog);
        fill(dialog, live.fake.command("right"), "/models/tiny");
        QVERIFY(live.until([&] { return said(dialog, "cutSays").contains("before the cut"); }));
        const QString model = said(dialog, "modelSays");
        QVERIFY2(model.contains("Fake: 2 layers, 4 query heads, 2 KV heads of 16"), qPrintable(model));
        QVERIFY2(model.contains("3.8 MiB for the weights"), qPrintable(model)); // 4,000,000 bytes in fp32
        QVERIFY2(model.contains("664.0 KiB for 83 tokens"), qPrintable(model)); // 83 x 4,096 x 2
        QVERIFY2(said(dialog, "cutSays").contains("<b>61 tokens</b> before the cut"),
                 qPrintable(said(dialog, "cutSays")));
        QVERIFY(said(dialog, "cutSays").contains("22 behind it") && said(dialog, "cutSays").contains("answer has 8"));
        QVERIFY2(dialog->height() <= 680 && dialog->width() <= 900, "too large for 1280x720");
        live.finish(); // the check
        const QByteArray asked = live.fake.process();
        clickOpen(dialog);
        live.waitForLive();
        QCOMPARE(live.fake.process(), asked); // the worker that answered the dialog goes on
        QCOMPARE(live.bench.session().live.text().empty(), false);
        QVERIFY2(live.window.windowTitle().startsWith("fake (live)"), qPrintable(live.window.windowTitle()));
        QCOMPARE(live.bench.cut()->token, 61);
        live.arrange(); // the dock of answers is in sight, and nothing in it is framed
        const PanelDock* answers = live.window.docks()->dock("answers");
        QVERIFY(!answers->visibleRegion().isEmpty() && !answers->isAncestorOf(live.window.focusWidget()));
        // The next dialog begins with what was opened last.
        FromTextDialog* again = live.dialog();
        QCOMPARE(field<QPlainTextEdit>(again, "liveText")->toPlainText(), QString("In the beginning"));
        QCOMPARE(again->description().model.path, std::string("/models/tiny"));
    }

    void whatIsWrongStandsAtItsField() {
        LiveWindow live;
        FromTextDialog* dialog = live.dialog();
        fill(dialog, "/nowhere/python", "/models/tiny");
        QVERIFY2(live.until([&] { return said(dialog, "pythonSays").contains("Cannot start '/nowhere/python'"); }),
                 qPrintable(said(dialog, "pythonSays")));
        QVERIFY(said(dialog, "modelSays").isEmpty());
        fill(dialog, live.fake.command("right"), "mamba");
        QVERIFY(live.until([&] { return said(dialog, "modelSays").contains("no keys and values"); }));
        clickOpen(dialog);
        live.finish();
        QVERIFY(dialog->isVisible() && !live.bench.live());
        fill(dialog, live.fake.command("right"), "/models/tiny");
        field<QComboBox>(dialog, "liveCut")->setCurrentIndex(3);
        field<QWidget>(dialog, "liveCutNumber")->setProperty("value", 100);
        QTest::mouseClick(field<QPushButton>(dialog, "checkPython"), Qt::LeftButton);
        QVERIFY(live.until([&] { return said(dialog, "cutSays").contains("lies outside"); }));
        field<QPlainTextEdit>(dialog, "liveText")->clear();
        clickOpen(dialog);
        QVERIFY(said(dialog, "textSays").contains("Type or paste a text"));
        dialog->reject();
        live.finish();
        QTRY_VERIFY(!live.fake.isAlive());
    }

    /// The text of before stays, and can be opened.
    void aFileThatIsNoTextIsSaidAndStopsNothing() {
        LiveWindow live;
        FromTextDialog* dialog = live.dialog();
        fill(dialog, live.fake.command("right"), "/models/tiny");
        QVERIFY(live.until([&] { return said(dialog, "cutSays").contains("before the cut"); }));
        live.finish();
        live.fake.write("latin.txt", "gr\xfc\xdf");
        answerFileDialog(live.fake.path() + "/latin.txt");
        QTest::mouseClick(field<QPushButton>(dialog, "textFile"), Qt::LeftButton);
        QVERIFY2(said(dialog, "textSays").endsWith("latin.txt is not UTF-8: convert it."),
                 qPrintable(said(dialog, "textSays")));
        QCOMPARE(field<QPlainTextEdit>(dialog, "liveText")->toPlainText(), QString("In the beginning"));
        clickOpen(dialog);
        live.waitForLive();
        QVERIFY(live.bench.live());
    }

    /// The field shows some characters as others; tokens are made of those that the file has.
    void aTextIsReadAsItIsGiven() {
        LiveWindow live;
        FromTextDialog* dialog = live.dialog();
        fill(dialog, live.fake.command("right"), "/models/tiny");
        for (const char* line : {"liveQuestion", "liveAnswer"})
            field<QLineEdit>(dialog, line)->clear(); // the example's
        const std::string given = "Qui va là\u00a0?\r\nPersonne\u2028ne r\u00e9pond.\u2029Rien.\r\n";
        live.fake.write("given.txt", QByteArray::fromStdString(given));
        answerFileDialog(live.fake.path() + "/given.txt");
        QTest::mouseClick(field<QPushButton>(dialog, "textFile"), Qt::LeftButton);
        const auto expect = [](const FromTextDialog& of, const std::vector<live::TextPart>& parts) {
            QCOMPARE(of.description().parts, parts);
        };
        expect(*dialog, {{SegmentKind::Context, given}});
        auto* text = field<QPlainTextEdit>(dialog, "liveText");
        text->moveCursor(QTextCursor::End);
        QTest::keyClicks(text, "!");
        expect(*dialog, {{SegmentKind::Context, "Qui va là ?\nPersonne\nne r\u00e9pond.\nRien.\n!"}});
        live::LiveDescription first = live.description();
        first.parts = {{SegmentKind::Context, given}, {SegmentKind::Needle, "48\u00a0151\r\n"}};
        first.model.revision = "v1.5";
        const FromTextDialog again(live.bench, first, &live.window); // as one that was opened last
        expect(again, first.parts);
        QCOMPARE(again.description().model.revision, std::string("v1.5"));
        again.findChild<QComboBox*>("liveModel")->setEditText("/models/other");
        QVERIFY(again.description().model.revision.empty());
    }

    void aTextLongerThanTheModelWasMadeForIsSaid() {
        LiveWindow live;
        FromTextDialog* dialog = live.dialog();
        const QString words = "It was made for 82 tokens";
        fill(dialog, live.fake.command("right"), "/models/tiny"); // for 83, which the text has
        QVERIFY(live.until([&] { return said(dialog, "cutSays").contains("before the cut"); }));
        QVERIFY(!said(dialog, "modelSays").contains("It was made for"));
        fill(dialog, live.fake.command("right"), "/models/short");
        QVERIFY2(live.until([&] { return said(dialog, "modelSays").contains(words); }),
                 qPrintable(said(dialog, "modelSays")));
    }

    void undoLeadsBackOverIt() {
        LiveWindow live;
        const std::string file = live.bench.session().capturePath;
        live.openLive();
        live.trigger("undo");
        QVERIFY(live.until([&] { return live.bench.capture() && !live.bench.live() && live.idle(); }));
        QCOMPARE(live.bench.session().capturePath, file);
        QTRY_VERIFY(!live.fake.isAlive());
        live.trigger("redo");
        live.waitForLive();
        QVERIFY(live.fake.isAlive());
    }

    void openingShowsItsStageAndIsCancelled() {
        LiveWindow live;
        const auto before = live.bench.capture();
        live.bench.openLive(live.description("deaf"));
        QVERIFY(live.until([&] { return live.bench.opening().stage == "reading 83 tokens"; }));
        while (live.said("opening").isEmpty() && live.clock.expireNext()) {
        }
        QVERIFY2(live.said("opening").contains("tiny (live): reading 83 tokens"), qPrintable(live.said("opening")));
        QTest::mouseClick(live.button("opening", "Cancel"), Qt::LeftButton);
        QCOMPARE(live.bench.opening().name, std::string()); // at once
        QVERIFY(live.bench.capture() == before && live.said("opening").isEmpty());
        QTRY_VERIFY_WITH_TIMEOUT(!live.fake.isAlive(), 20000); // it is deaf: killed after a while
    }

    void aDeadWorkerIsToldAndStartedAgain() {
        LiveWindow live;
        live.openLive();
        live.bench.change(
            [](Session& s) {
                s.panes = {{PolicySpec::parse("keydiff"), {}, {}}, {PolicySpec::parse("streaming_llm"), {}, {}}};
            },
            "Test");
        live.waitForLive();
        const Session before = live.bench.session();
        const auto kept = live.bench.viewInput().panes.at(0).result;
        live.fake.kill();
        // Nothing is pending until the system has told of its end.
        QTRY_VERIFY_WITH_TIMEOUT(!live.said("worker").isEmpty(), 60'000);
        QVERIFY2(live.said("worker").startsWith("The worker was killed by signal 9"), qPrintable(live.said("worker")));
        QVERIFY2(live.said("worker").endsWith(" numbers. What was computed stays."), qPrintable(live.said("worker")));
        // With another budget what was there stays, as older; of a layer that the worker would have to send nothing is.
        live.bench.runner().cache().drop("");
        live.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Tokens, 9}); }, "Budget");
        live.finish();
        const PaneData older = live.bench.viewInput().panes.at(0);
        QVERIFY(older.result == kept && older.outdated && !older.computing && older.error.empty());
        live.bench.change([](Session& s) { s.layer = LayerIndex(s.layer.value == 0 ? 1 : 0); }, "Layer");
        live.finish();
        const PaneData none = live.bench.viewInput().panes.at(0);
        QVERIFY2(!none.result && none.error.find("killed by signal 9") != std::string::npos, none.error.c_str());
        live.trigger("undo");
        live.trigger("undo");
        QTest::mouseClick(live.button("worker", "Start again"), Qt::LeftButton);
        QVERIFY(live.until([&] { return live.fake.isAlive() && live.idle() && live.said("worker").isEmpty(); }));
        QVERIFY(live.bench.session() == before);
    }

    void sessionsAndRecentFilesStartItAgain() {
        LiveWindow live;
        live.openLive();
        const QString path = live.fake.path() + "/live.kvscope";
        answerFileDialog(path);
        live.trigger("saveAs");
        QVERIFY2(QFile::exists(path), "the session is not written");
        const Session saved = readSession(path.toStdString());
        QVERIFY(saved.capturePath.empty());
        QVERIFY(live::descriptionOf(saved.live.text()) == live.description());
        live.trigger("close");
        live.finish();
        QTRY_VERIFY(!live.fake.isAlive());
        live.window.openPath(path);
        live.waitForLive();
        live.trigger("close");
        live.finish();
        // The same from the list of recent ones.
        auto* files = live.window.findChild<FileActions*>();
        const QStringList recent = files->recent();
        const auto entry = std::ranges::find_if(recent, [](const QString& one) { return one.startsWith('{'); });
        QVERIFY(entry != recent.end());
        QCOMPARE(FileActions::recentName(*entry), QString("tiny (live): In the beginning"));
        files->open(*entry);
        live.waitForLive();
    }

    void aBrokenDescriptionIsRefusedWithItsKey() {
        LiveWindow live;
        live.openLive();
        const std::string path = live.fake.path().toStdString() + "/broken.kvscope";
        Session session = live.bench.session();
        writeSession(path, session);
        QFile file(QString::fromStdString(path));
        QVERIFY(file.open(QIODevice::ReadWrite));
        const QByteArray text = file.readAll().replace("\"cut\": \"default\",\n    \"device\"", "\"device\"");
        file.resize(0);
        file.seek(0);
        file.write(text);
        file.close();
        const QString refused = errorText([&] { readSession(path); });
        QVERIFY2(refused.contains("'cut'"), qPrintable(refused));
    }

    void aRefusalOffersToChangeTheDescription() {
        LiveWindow live;
        auto* files = live.window.findChild<FileActions*>();
        files->openLive(live.description("refuses"));
        QVERIFY(live.until([&] { return !live.said("error").isEmpty(); }));
        QVERIFY2(live.said("error").startsWith("Needs 14.2 GiB") || live.said("error").startsWith("needs 14.2 GiB"),
                 qPrintable(live.said("error")));
        QTest::mouseClick(live.button("error", "Change…"), Qt::LeftButton);
        QVERIFY(live.window.findChild<FromTextDialog*>());
    }

    void aSessionThatCannotBeOpenedOffersItsOwnDescription() {
        LiveWindow live;
        live.openLive();
        Session session = live.bench.session();
        live::LiveDescription moved = live.description("refuses"); // made on another machine
        moved.model.path = "/elsewhere/tiny";
        session.live = SharedText(live::textOf(moved));
        const std::string path = live.fake.path().toStdString() + "/moved.kvscope";
        writeSession(path, session);
        live.window.openPath(QString::fromStdString(path));
        QVERIFY(live.until([&] { return !live.said("error").isEmpty(); }));
        QVERIFY2(live.said("error").startsWith("Needs 14.2 GiB"), qPrintable(live.said("error")));
        QTest::mouseClick(live.button("error", "Change…"), Qt::LeftButton);
        QCOMPARE(live.window.findChild<FromTextDialog*>()->description().model.path, std::string("/elsewhere/tiny"));
    }

    void theCaptureIsWrittenByTheWorker() {
        LiveWindow live;
        QVERIFY(!live.window.actions()->byName("saveCapture")->isEnabled());
        live.openLive();
        QVERIFY(live.window.actions()->byName("saveCapture")->isEnabled());
        const QString path = live.fake.path() + "/written.h5";
        answerFileDialog(path);
        live.trigger("saveCapture");
        live.finish();
        QVERIFY2(QFile::exists(path), qPrintable(live.window.notices().messages().join(" | ")));
        answerFileDialog("/nowhere/written.h5");
        live.trigger("saveCapture");
        live.finish();
        const QString messages = live.window.notices().messages().join(" | ");
        QVERIFY2(messages.contains("cannot be written"), qPrintable(messages));
        QVERIFY(live.bench.live() && live.fake.isAlive());
    }

    void theWorkerGoesWithTheWindow() {
        auto live = std::make_unique<LiveWindow>();
        live->openLive();
        const QString process = "/proc/" + live->fake.process();
        QVERIFY(QFile::exists(process));
        live->finish(); // a job that still runs would keep its context
        live.reset();
        QVERIFY(!QFile::exists(process)); // reaped, too
    }
};

KVSCOPE_WINDOW_TEST(LiveWindowTest)
#include "live_window_test.moc"
