// Displays that cannot show the window, and one that goes away: a sentence, never a crash. And a crash: its stack and
// what was shown are kept.
#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QStandardPaths>
#include <QtTest>

#include <csignal>

using kvscope::testing::Program;

namespace {

const QString kSample = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/broken/sound.h5");

/// An X server of its own.
class OwnDisplay {
public:
    explicit OwnDisplay(const QStringList& more = {}) {
        m_server.start("Xvfb",
                       QStringList{"-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"} + more);
        if (m_server.waitForStarted())
            while (!m_number.contains('\n') && m_server.waitForReadyRead(60'000)) m_number += m_server.readAll();
    }
    ~OwnDisplay() { end(); }
    QString name() const { return ":" + QString::fromUtf8(m_number.trimmed()); }
    bool isUp() const { return !m_number.isEmpty(); }
    void end() {
        m_server.kill();
        m_server.waitForFinished();
    }

private:
    QProcess m_server;
    QByteArray m_number;
};

} // namespace

class PlatformsTest : public QObject {
    Q_OBJECT

    Program m_program;

    void start(QProcess& process, const QMap<QString, QString>& variables) const {
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        for (const char* display : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) environment.remove(display);
        environment.insert("XDG_STATE_HOME", m_program.at("state"));
        environment.insert("XDG_CONFIG_HOME", m_program.at("config"));
        environment.insert("LIBGL_ALWAYS_SOFTWARE", "1");
        for (const auto& [name, value] : variables.asKeyValueRange()) environment.insert(name, value);
        process.setProcessEnvironment(environment);
        process.start(Program::path(), {kSample});
        QVERIFY(process.waitForStarted());
    }
    void expectSentence(QProcess& process, const char* words) const {
        QVERIFY(process.waitForFinished(120'000));
        const QByteArray error = process.readAllStandardError();
        QVERIFY2(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 2, error);
        QVERIFY2(error.startsWith("kvscope: ") && error.count('\n') == 1 && error.contains(words), error);
    }
    /// What the window of this process keeps of its session.
    QString sessionOf(const QProcess& process) const {
        return m_program.at(QString("state/kvscope/session-%1.kvscope").arg(process.processId()));
    }

private slots:
    void platformsWithoutAWindow_data() {
        QTest::addColumn<QString>("variable");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("words");
        const auto row = [](const char* variable, const char* value, const char* words) {
            QTest::addRow("%s=%s", variable, value) << variable << value << words;
        };
        for (const char* platform : {"offscreen", "minimal"}) row("QT_QPA_PLATFORM", platform, "shows no window");
        row("QT_QPA_PLATFORM", "nonsense", "cannot be opened");
        row("DISPLAY", ":9999", "cannot be opened on the display ':9999'");
        row("WAYLAND_DISPLAY", "nowhere", "cannot be opened");
    }

    void platformsWithoutAWindow() {
        QFETCH(QString, variable);
        QFETCH(QString, value);
        QFETCH(QString, words);
        QProcess process;
        start(process, {{variable, value}});
        expectSentence(process, qPrintable(words));
    }

    void displaysWithoutEnoughOpenGl_data() {
        QTest::addColumn<QString>("variable");
        QTest::addColumn<QString>("value");
        QTest::newRow("none") << "QT_XCB_GL_INTEGRATION"
                              << "none";
        QTest::newRow("2.1") << "MESA_GL_VERSION_OVERRIDE"
                             << "2.1";
        QTest::newRow("vnc") << "QT_QPA_PLATFORM"
                             << "vnc:port=0";
    }

    /// QPainter paints there: the window comes up, shows something, and ends when it is asked to.
    void displaysWithoutEnoughOpenGl() {
        if (QStandardPaths::findExecutable("Xvfb").isEmpty()) QSKIP("needs Xvfb");
        QFETCH(QString, variable);
        QFETCH(QString, value);
        const OwnDisplay display({"+extension", "GLX"});
        QVERIFY(display.isUp());
        QProcess process;
        // Without the last, QPainter would paint because the OpenGL that is there is software.
        start(process, {{"DISPLAY", display.name()}, {variable, value}, {"KVSCOPE_OPENGL", "1"}});
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(sessionOf(process)), 120'000);
        process.terminate();
        QVERIFY(process.waitForFinished(120'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QVERIFY(process.readAllStandardError().contains("kvscope: stopped"));
    }

    void aDisplayThatGoesAway() {
        if (QStandardPaths::findExecutable("Xvfb").isEmpty()) QSKIP("needs Xvfb");
        OwnDisplay display({"+extension", "GLX"});
        QVERIFY(display.isUp());
        QProcess process;
        start(process, {{"DISPLAY", display.name()}});
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(sessionOf(process)), 120'000); // it is up, and has shown something
        const QString session = sessionOf(process);
        display.end();
        QVERIFY(process.waitForFinished(120'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QVERIFY(QFile::exists(session));
    }

    void aCrashKeepsStackAndSession() {
        if (QStandardPaths::findExecutable("Xvfb").isEmpty()) QSKIP("needs Xvfb");
        const OwnDisplay display({"+extension", "GLX"});
        QVERIFY(display.isUp());
        QProcess process;
        start(process, {{"DISPLAY", display.name()}});
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(sessionOf(process)), 120'000);
        const QString session = sessionOf(process);
        const QString stack = m_program.at(QString("state/kvscope/stack-%1.txt").arg(process.processId()));
        ::kill(static_cast<pid_t>(process.processId()), SIGSEGV);
        QVERIFY(process.waitForFinished(120'000));
        QCOMPARE(process.exitStatus(), QProcess::CrashExit);
        QVERIFY(QFile::exists(session));
        QFile written(stack);
        QVERIFY(written.open(QIODevice::ReadOnly));
        const QByteArray text = written.readAll();
        QVERIFY2(text.startsWith("kvscope crashed, signal 11\n") && text.count('\n') > 3, text);
        QVERIFY(process.readAllStandardError().contains("the stack is in"));
    }
};

KVSCOPE_CORE_TEST(PlatformsTest)
#include "platforms_test.moc"
