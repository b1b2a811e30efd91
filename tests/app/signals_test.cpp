// SIGINT and SIGTERM: a command ends with 130 or 143, whatever it is in, and leaves no file behind. What hangs today is
// ended by its own watchdog, so these tests need no clock.
#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <csignal>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

using kvscope::testing::Program;

namespace {

const QString kSample = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");

void addSignals() {
    QTest::addColumn<int>("number");
    QTest::newRow("SIGINT") << SIGINT;
    QTest::newRow("SIGTERM") << SIGTERM;
    QTest::newRow("SIGHUP") << SIGHUP;
}

} // namespace

class SignalsTest : public QObject {
    Q_OBJECT

    static void start(QProcess& process, const Program& program, const QStringList& arguments) {
        process.setWorkingDirectory(program.at("."));
        process.start(QCoreApplication::applicationDirPath() + "/../bin/kvscope", arguments);
        QVERIFY(process.waitForStarted());
    }
    static void expectEnded(QProcess& process, int number) {
        QVERIFY(process.waitForFinished(60'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 128 + number);
        const QByteArray error = process.readAllStandardError();
        QVERIFY2(error.startsWith("kvscope: stopped") && error.count('\n') == 1, error);
    }

private slots:
    void aStopRequestEndsTheWork_data() { addSignals(); }
    void aStopRequestEndsTheWork() {
        QFETCH(int, number);
        const Program program;
        QProcess process;
        start(process, program,
              {"sweep", kSample, "--policy", "balancekv@0.5", "--seeds", "0-9999", "--out", "table.csv"});
        QTRY_COMPARE_WITH_TIMEOUT(program.written().size(), 1, 60'000); // the temporary file
        QVERIFY(program.written().first().startsWith(".table.part-"));
        ::kill(static_cast<pid_t>(process.processId()), number);
        expectEnded(process, number);
        QCOMPARE(program.written(), QStringList());
    }

    /// The program fills a pipe that nobody empties, and so hangs in the kernel, where it notices no stop request.
    void aCallThatHangsIsEnded_data() { addSignals(); }
    void aCallThatHangsIsEnded() {
        QFETCH(int, number);
        const Program program;
        const QByteArray pipe = program.at("pipe").toUtf8();
        QCOMPARE(::mkfifo(pipe.constData(), 0600), 0);
        const int reader = ::open(pipe.constData(), O_RDONLY | O_NONBLOCK);
        QVERIFY(reader >= 0);
        QProcess process;
        process.setStandardOutputFile(program.at("pipe"));
        QTemporaryDir temporary;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("TMPDIR", temporary.path());
        process.setProcessEnvironment(environment);
        start(process, program, {"evict", kSample, "--policy", "keydiff@0.9", "--out", "-.csv"});
        const auto waiting = [&] {
            int bytes = 0;
            return ::ioctl(reader, FIONREAD, &bytes) == 0 ? bytes : 0;
        };
        QTRY_VERIFY_WITH_TIMEOUT(waiting() >= 65'536, 60'000);
        ::kill(static_cast<pid_t>(process.processId()), number);
        expectEnded(process, number);
        ::close(reader);
        QCOMPARE(QDir(temporary.path()).entryList({"kvscope-*"}), QStringList());
    }

    /// A process started with nohup goes on.
    void anIgnoredSignalStaysIgnored() {
        const Program program;
        QProcess process;
        process.setChildProcessModifier([] { std::signal(SIGHUP, SIG_IGN); });
        start(process, program,
              {"sweep", kSample, "--policy", "uniform@0.5", "--seeds", "0-500", "--out", "table.csv"});
        const auto pid = static_cast<pid_t>(process.processId());
        QTRY_COMPARE_WITH_TIMEOUT(program.written().size(), 1, 60'000);
        QVERIFY(program.written().first().startsWith(".table.part-")); // it is still at work
        ::kill(pid, SIGHUP);
        QVERIFY(process.waitForFinished(120'000));
        QCOMPARE(process.exitCode(), 0);
        QCOMPARE(program.written(), QStringList{"table.csv"});
    }
};

KVSCOPE_CORE_TEST(SignalsTest)
#include "signals_test.moc"
