// kill -9 at random moments: a file is the old one or the new one, whole, and what lay beside it is gone after the next
// writing. KVSCOPE_KILLS sets how many moments (the long tests: 200 of each kind), KVSCOPE_SEED which.
#include <QtTest>

#include "app/study/session_file.h"
#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <cmath>
#include <csignal>
#include <random>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kvscope;
using kvscope::testing::Program;

namespace {

const QString kSample = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");

int numberOf(const char* variable, int usual) {
    bool given = false;
    const int number = qEnvironmentVariableIntValue(variable, &given);
    return given ? number : usual;
}

bool isTemporary(const QString& name) { return name.startsWith('.') && name.contains(".part-"); }

QStringList temporariesIn(const Program& program) {
    QStringList names;
    for (const QString& name : program.written())
        if (isTemporary(name)) names += name;
    return names;
}

/// Half of the moments lie anywhere in the usual time of the work, the others right behind the first sight of a
/// temporary file.
struct Moment {
    bool besideFile;
    double microseconds;
};

} // namespace

class KilledTest : public QObject {
    Q_OBJECT

    int m_kills = numberOf("KVSCOPE_KILLS", 4);
    std::mt19937 m_random{static_cast<unsigned>(numberOf("KVSCOPE_SEED", 1))};

    Moment nextMoment(double usual) {
        const bool besideFile = m_random() % 2 == 0;
        return {besideFile, std::uniform_real_distribution<>(0, besideFile ? 5'000 : usual)(m_random)};
    }
    /// Until a moment that means nothing: whatever the process does then, it is killed.
    static void pass(double microseconds) {
        const timespec time{static_cast<time_t>(microseconds / 1e6), std::lround(1e3 * std::fmod(microseconds, 1e6))};
        ::ppoll(nullptr, 0, &time, nullptr);
    }
    /// `before`: the temporary files that the last kill left behind; they are not the first sight of a new one.
    static void waitFor(const Moment& moment, const Program& program, const QStringList& before,
                        const std::function<bool()>& isRunning) {
        const auto isNew = [&](const QString& name) { return !before.contains(name); };
        while (moment.besideFile && isRunning() && !std::ranges::any_of(temporariesIn(program), isNew)) pass(200);
        pass(moment.microseconds);
    }
    static void start(QProcess& process, const Program& program, const QStringList& arguments) {
        program.start(process, arguments);
        QVERIFY(process.waitForStarted());
    }
    /// The lines without what differs between two runs of one command: times.
    static QByteArray withoutTimes(const QByteArray& content, const QString& name) {
        if (!name.endsWith(".csv")) return content;
        return QByteArray::number(content.count('\n')) +
               (content.endsWith('\n') ? " whole lines" : " lines and a half");
    }

private slots:
    void initTestCase() { qInfo("%d kills of each kind, seed %d", m_kills, numberOf("KVSCOPE_SEED", 1)); }

    void aCommandLeavesTheOldFileOrTheNewOne_data() {
        QTest::addColumn<QStringList>("arguments");
        const auto row = [](const char* name, const QStringList& arguments) { QTest::newRow(name) << arguments; };
        row("export, JSON", {"evict", kSample, "--policy", "keydiff@0.5", "--scores", "--out", "list.json"});
        row("export, HDF5", {"evict", kSample, "--policy", "keydiff@0.5", "--scores", "--out", "list.h5"});
        row("export, figure", {"plot", "key_projection", kSample, "--policy", "keydiff@0.1", "--out", "figure.pdf"});
        row("capture", {"synth", "--tokens", "2048", "--layers", "1", "--out", "capture.h5"});
        row("sweep", {"sweep", kSample, "--policy", "keydiff@0.1", "--policy", "key_norm@0.1", "--layers", "0", "--out",
                      "table.csv"});
    }

    void aCommandLeavesTheOldFileOrTheNewOne() {
        QFETCH(QStringList, arguments);
        const QString name = arguments.last();
        const Program program;
        QElapsedTimer clock;
        clock.start();
        QCOMPARE(program.run(arguments).error, QByteArray());
        const double usual = 1e-3 * static_cast<double>(clock.nsecsElapsed());
        const QByteArray expected = withoutTimes(program.content(name), name);
        int cut = 0;
        for (int i = 0; i < m_kills; ++i) {
            QVERIFY(program.write(name, "old"));
            const QStringList before = temporariesIn(program);
            QProcess process;
            start(process, program, arguments);
            waitFor(nextMoment(usual), program, before, [&] { return !process.waitForFinished(0); });
            process.kill();
            QVERIFY(process.state() == QProcess::NotRunning || process.waitForFinished());
            const QByteArray left = program.content(name);
            QVERIFY2(left == "old" || withoutTimes(left, name) == expected,
                     qPrintable(QString("kill %1 left %2 bytes").arg(i).arg(left.size())));
            cut += left == "old" ? 1 : 0;
            for (const QString& file : program.written()) QVERIFY2(file == name || isTemporary(file), qPrintable(file));
        }
        QCOMPARE(program.run(arguments).error, QByteArray());
        QCOMPARE(withoutTimes(program.content(name), name), expected);
        QCOMPARE(program.written(), QStringList{name});
        qInfo("%d of %d kills came before the end", cut, m_kills);
    }

    /// What Ctrl+S does, again and again.
    void aSessionIsTheOldOneOrTheNewOne() {
        const Program program;
        const std::string path = program.at("work.kvscope").toStdString();
        Session session;
        session.capturePath = kSample.toStdString();
        const auto save = [&](int layer) {
            session.layer = LayerIndex(layer);
            writeSession(path, session);
        };
        QByteArray contents[2];
        for (const int layer : {0, 1}) {
            save(layer);
            contents[layer] = program.content("work.kvscope");
        }
        for (int i = 0; i < 5 * m_kills; ++i) {
            const QStringList before = temporariesIn(program);
            const pid_t child = ::fork();
            if (child == 0)
                for (int layer = 0;; layer = 1 - layer) save(layer);
            QVERIFY(child > 0);
            waitFor(nextMoment(20'000), program, before, [] { return true; });
            ::kill(child, SIGKILL);
            QCOMPARE(::waitpid(child, nullptr, 0), child);
            const QByteArray left = program.content("work.kvscope");
            QVERIFY2(left == contents[0] || left == contents[1], left);
        }
        save(0);
        QCOMPARE(program.written(), QStringList{"work.kvscope"});
    }
};

KVSCOPE_CORE_TEST(KilledTest)
#include "killed_test.moc"
