// SIGINT and SIGTERM: a command ends with 130 or 143, whatever it is in, and leaves no file behind. What hangs today is
// ended by its own watchdog, so these tests need no clock.
#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <array>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
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
        program.start(process, arguments);
        QVERIFY(process.waitForStarted());
    }
    static void expectEnded(QProcess& process, int number) {
        QVERIFY(process.waitForFinished(60'000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 128 + number);
        const QByteArray error = process.readAllStandardError();
        QVERIFY2(error.startsWith("kvscope: stopped") && error.count('\n') == 1, error);
    }

    /// Its output is a pipe that nobody empties: it hangs in the kernel, where it notices no stop request. `reader` is
    /// the end of the pipe to read from.
    static void startHanging(QProcess& process, const Program& program, const QString& temporary, int& reader) {
        const QByteArray pipe = program.at("pipe").toUtf8();
        QCOMPARE(::mkfifo(pipe.constData(), 0600), 0);
        reader = ::open(pipe.constData(), O_RDONLY | O_NONBLOCK);
        QVERIFY(reader >= 0);
        process.setStandardOutputFile(program.at("pipe"));
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("TMPDIR", temporary);
        process.setProcessEnvironment(environment);
        start(process, program, {"evict", kSample, "--policy", "keydiff@0.9", "--out", "-.csv"});
        const auto waiting = [&] {
            int bytes = 0;
            return ::ioctl(reader, FIONREAD, &bytes) == 0 ? bytes : 0;
        };
        QTRY_VERIFY_WITH_TIMEOUT(waiting() >= 65'536, 60'000);
    }
    /// Until its writer closes it.
    static void empty(int reader) {
        std::array<char, 65'536> bytes;
        pollfd some{reader, POLLIN, 0};
        while (::poll(&some, 1, 60'000) > 0 && ::read(reader, bytes.data(), bytes.size()) > 0) {
        }
    }
    static bool ignores(const QProcess& process, int number) {
        QFile status(QString("/proc/%1/status").arg(process.processId()));
        if (!status.open(QIODevice::ReadOnly)) return false;
        const QByteArray name = "SigIgn:\t", all = status.readAll();
        const auto at = all.indexOf(name);
        return at >= 0 && ((all.mid(at + name.size(), 16).toULongLong(nullptr, 16) >> (number - 1)) & 1) != 0;
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

    void aCallThatHangsIsEnded_data() { addSignals(); }
    void aCallThatHangsIsEnded() {
        QFETCH(int, number);
        const Program program;
        QProcess process;
        const QTemporaryDir temporary;
        int reader = -1;
        startHanging(process, program, temporary.path(), reader);
        ::kill(static_cast<pid_t>(process.processId()), number);
        expectEnded(process, number);
        ::close(reader);
        QCOMPARE(QDir(temporary.path()).entryList({"kvscope-*"}), QStringList());
    }

    /// A process started with nohup goes on. It hangs until the signal was sent, so that it is at work then.
    void anIgnoredSignalStaysIgnored() {
        const Program program;
        QProcess process;
        process.setChildProcessModifier([] { std::signal(SIGHUP, SIG_IGN); });
        const QTemporaryDir temporary;
        int reader = -1;
        startHanging(process, program, temporary.path(), reader);
        QVERIFY(ignores(process, SIGHUP)); // else it would end only after a while
        ::kill(static_cast<pid_t>(process.processId()), SIGHUP);
        empty(reader);
        QVERIFY(process.waitForFinished(120'000));
        ::close(reader);
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 0);
    }
};

KVSCOPE_CORE_TEST(SignalsTest)
#include "signals_test.moc"
