// Help > Try it live from a machine without an environment: one is made by a Python that pretends, used again, refused
// in one sentence, and cancelled. Nothing is installed.
#include <QtTest>

#include "app/live/command_words.h"
#include "app/window/actions/try_live.h"
#include "app/window/actions/window_actions.h"
#include "tests/app/answer_context.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QMessageBox>
#include <QRadioButton>
#include <QSettings>
#include <QStandardPaths>
#include <QStorageInfo>

using namespace kvscope;
using kvscope::testing::FakeWorker;
using kvscope::testing::OpenWindow;

namespace {

/// A window on a machine whose only Python pretends.
struct BareMachine : OpenWindow {
    const QByteArray path = qgetenv("PATH"), cache = qgetenv("XDG_CACHE_HOME");
    FakeWorker fake{testing::contextWith().get()};
    QTemporaryDir programs;

    explicit BareMachine(const char* mode) {
        QSettings().clear();
        qputenv("XDG_CACHE_HOME", programs.filePath("user's cache").toUtf8());
        for (const char* program : {"cp", "rm", "env"})
            QFile::link(QStandardPaths::findExecutable(program), programs.filePath(program));
        qputenv("FAKE_FOLDER", fake.path().toUtf8());
        qputenv("FAKE_WORKER", (kvscope::testing::sourceDir() + "/tests/live/fake_worker.py").c_str());
        qputenv("REAL_PYTHON", QStandardPaths::findExecutable("python3").toUtf8());
        if (std::string(mode) != "none") addPython();
        setMode(mode);
        qputenv("PATH", programs.path().toUtf8());
    }
    ~BareMachine() {
        qputenv("PATH", path);
        cache.isEmpty() ? qunsetenv("XDG_CACHE_HOME") : qputenv("XDG_CACHE_HOME", cache);
    }

    static void setMode(const char* mode) { qputenv("MODE", mode); }
    void addPython() const {
        const QString python = programs.filePath("python3");
        QVERIFY(
            QFile::copy(QString::fromStdString(kvscope::testing::sourceDir()) + "/tests/live/fake_python.sh", python));
        QFile::setPermissions(python, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    }
    QStringList calls(const QString& with) const {
        QFile file(fake.path() + "/calls");
        return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()).split('\n').filter(with)
                                              : QStringList();
    }
    /// Chooses the menu's entry, or clicks `start`; clicks `button` when the question comes.
    void tryIt(const QString& button = "Make it", QPushButton* start = nullptr) {
        m_asked = 0;
        m_clicker.disconnect();
        m_clicker.callOnTimeout([this, button] {
            auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
            if (!box) return;
            m_clicker.stop();
            ++m_asked;
            text = box->text();
            for (QAbstractButton* one : box->buttons())
                if (one->text().remove('&') == button) return QTest::mouseClick(one, Qt::LeftButton);
            qFatal("the question has no such button");
        });
        m_clicker.start(20);
        if (start)
            QTest::mouseClick(start, Qt::LeftButton);
        else
            window.actions()->byName("tryLive")->trigger();
    }
    int asked() const { return m_asked; }
    bool isSettled() const { ///< whatever views are shown
        const ViewInput input = bench.viewInput();
        return std::ranges::all_of(input.panes, [](const PaneData& pane) { return pane.result && !pane.computing; });
    }
    void waitForLive() {
        QTRY_VERIFY_WITH_TIMEOUT(bench.opening().name.size() || bench.live() || !said("error").isEmpty(), 60'000);
        QVERIFY2(said("error").isEmpty(), qPrintable(said("error")));
        QVERIFY(until([this] { return bench.live() && isSettled(); }));
    }
    QString text; ///< of the question

private:
    QTimer m_clicker;
    int m_asked = 0;
};

} // namespace

class TryLiveTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        constexpr qint64 kNeeded = 10'000'000'000; // what an environment may take is asked of the real disk
        if (QStorageInfo(QDir::tempPath()).bytesAvailable() < kNeeded)
            QSKIP("the temporary folder's disk is nearly full");
    }

    void anEnvironmentIsMadeAndUsedAgain() {
        BareMachine machine("right");
        machine.tryIt();
        machine.waitForLive();
        QCOMPARE(machine.asked(), 1);
        QVERIFY2(machine.text.contains(TryLive::folder()) && machine.text.contains("1 GB"), qPrintable(machine.text));
        QCOMPARE(machine.calls("-m venv").size(), 1);
        QVERIFY(machine.calls("pip install").constLast().contains(TryLive::folder() + "/tools"));
        QVERIFY(!QFile::exists(TryLive::folder() + "/tmp"));
        QVERIFY(QString::fromStdString(machine.bench.session().live.text()).contains("48151"));
        const auto installs = machine.calls("pip install").size();
        machine.window.actions()->byName("close")->trigger();
        machine.finish();
        machine.tryIt();
        machine.waitForLive();
        QCOMPARE(machine.asked(), 0);
        QCOMPARE(machine.calls("pip install").size(), installs);
        const std::string python = TryLive::folder().toStdString() + "/bin/python";
        QCOMPARE(live::commandWords(TryLive::knownPython()), std::vector{python});
    }

    void whatIsMissingIsSaidInOneSentence_data() {
        QTest::addColumn<QString>("expected");
        QTest::newRow("none") << "none was found. Install it with: sudo apt install python3 python3-venv.";
        QTest::newRow("old") << "The model needs Python 3.11 or newer; python3 is 3.9.";
        QTest::newRow("bare") << "Python 3.11 lacks venv. Install it with: sudo apt install python3.11-venv.";
        QTest::newRow("offline") << "PyPI cannot be reached. Connect to the internet";
        QTest::newRow("full") << "live is full. Make room there";
        QTest::newRow("odd") << "could not be made: Package 'kvscope-tools' requires a different Python.";
    }
    void whatIsMissingIsSaidInOneSentence() {
        QFETCH(QString, expected);
        BareMachine machine(QTest::currentDataTag());
        machine.tryIt();
        QTRY_VERIFY_WITH_TIMEOUT(!machine.said("error").isEmpty(), 60'000);
        QVERIFY2(machine.said("error").contains(expected), qPrintable(machine.said("error")));
        QVERIFY(machine.said("tryLive").isEmpty() && !machine.bench.live());
        QVERIFY(!QFile::exists(TryLive::folder()));
        // What was lacking is there now.
        if (std::string(QTest::currentDataTag()) != "offline") return;
        BareMachine::setMode("right");
        machine.tryIt();
        machine.waitForLive();
    }

    void cancelEndsWhatInstalls() {
        BareMachine machine("slow");
        QVERIFY(QDir().mkpath(TryLive::folder() + ".gone/left")); // by an rm that was killed
        machine.tryIt();
        QTRY_VERIFY_WITH_TIMEOUT(machine.said("tryLive").contains("(184.1 MB)"), 60'000);
        QVERIFY2(machine.said("tryLive").startsWith("Installing torch (2 of 3)"), qPrintable(machine.said("tryLive")));
        QFile file(machine.fake.path() + "/pip");
        QTRY_VERIFY(file.size() > 0);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString process = "/proc/" + QString(file.readAll()).trimmed();
        QVERIFY(QFile::exists(process));
        QTRY_VERIFY(machine.noticeButton("Cancel"));
        QTest::mouseClick(machine.noticeButton("Cancel"), Qt::LeftButton);
        QVERIFY(machine.said("tryLive").isEmpty() && machine.said("error").isEmpty());
        QVERIFY(!QFile::exists(process) && !QFile::exists(TryLive::folder()));
        QTRY_COMPARE(QFileInfo(TryLive::folder()).dir().entryList({"live*"}), QStringList());
        BareMachine::setMode("right");
        machine.tryIt();
        machine.waitForLive();
    }

    void aLessonStartsItsModel() {
        BareMachine machine("none");
        QTest::keyClick(&machine.window, Qt::Key_3, Qt::ControlModifier);
        const auto find = [&](const char* name) { return machine.window.findChild<QPushButton*>(name); };
        QTRY_VERIFY_WITH_TIMEOUT(find("lesson16") && find("lesson16")->isVisible(), 20'000);
        QTest::mouseClick(find("lesson16"), Qt::LeftButton);
        QTRY_VERIFY(find("startModel") && find("startModel")->isVisible());
        QVERIFY(machine.until([&] { return machine.isSettled(); }));
        QTest::mouseClick(find("startModel"), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(machine.said("error").contains("Install it with"), 60'000);
        // Teach goes on: the recorded number answers.
        QTest::mouseClick(machine.window.findChild<QRadioButton*>("lessonChoice2"), Qt::LeftButton);
        QTest::mouseClick(find("lessonAnswerButton"), Qt::LeftButton);
        const auto verdict = [&] { return machine.window.findChild<QLabel*>("lessonVerdict")->text(); };
        QVERIFY(machine.until([&] { return verdict().contains("recorded from the model: 100.0 %"); }));
        QTest::mouseClick(find("lessonStop2"), Qt::LeftButton);
        QVERIFY(machine.until([&] { return verdict().contains("start the model"); }));
        // With a Python it runs, in the same lesson.
        machine.addPython();
        BareMachine::setMode("right");
        machine.tryIt("Make it", find("startModel"));
        machine.waitForLive();
        QTRY_VERIFY(!find("startModel")->isVisible());
        QCOMPARE(lessonOf(machine.bench.session())->number, 16);
        QVERIFY(QString::fromStdString(machine.bench.session().live.text()).contains("81590"));
    }

    void noMeansNo() {
        BareMachine machine("right");
        machine.tryIt("Cancel");
        QTRY_COMPARE_WITH_TIMEOUT(machine.asked(), 1, 60'000);
        QTRY_VERIFY(machine.said("tryLive").isEmpty());
        QVERIFY(machine.calls("-m venv").isEmpty() && !machine.bench.live());
        machine.tryIt(); // and may be asked again
        machine.waitForLive();
    }
};

KVSCOPE_WINDOW_TEST(TryLiveTest)
#include "try_live_test.moc"
