// Disks that are full, folders that may not be written and names that are pipes: the program says so in one sentence
// that names the user's file, ends as after any other mistake, and leaves what was there as it was.
#include <QTest>

#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

using kvscope::testing::Program;

namespace {

const QString kSample = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");

void makePipe(const Program& program, const QString& name) {
    QCOMPARE(::mkfifo(program.at(name).toUtf8().constData(), 0600), 0);
}

bool isPipe(const Program& program, const QString& name) {
    return std::filesystem::is_fifo(program.at(name).toStdString());
}

} // namespace

class FullDiskTest : public QObject {
    Q_OBJECT

private slots:
    void aFullDiskLeavesTheOldFile_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("name");
        QTest::addColumn<QList<int>>("limits");
        const auto row = [](const QStringList& arguments, const QString& name, const QList<int>& limits) {
            QTest::newRow(qPrintable(arguments.first() + " " + name)) << arguments << name << limits;
        };
        const QStringList policy{"--policy", "snapkv@0.1", "--layers", "1"};
        for (const QString name : {"f.png", "f.svg", "f.pdf"})
            row({"plot", "key_projection", kSample, "--policy", "keydiff@0.1", "--size", "400x300", "--out", name},
                name, {100, 8192});
        for (const QString name : {"l.json", "l.csv"})
            row(QStringList{"evict", kSample, "--out", name} + policy, name, {100});
        row(QStringList{"evict", kSample, "--scores", "--out", "l.h5"} + policy, "l.h5",
            {100, 2048, 4096, 9000, 12'000});
        row({"evict", kSample, "--policy", "uniform@50t", "--cut", "300", "--record", "r.h5", "--out", "l.csv"}, "r.h5",
            {100, 3000, 9000, 20'000});
        row({"synth", "--tokens", "512", "--layers", "1", "--q-heads", "2", "--kv-heads", "1", "--head-dim", "32",
             "--deflate", "4", "--out", "s.h5"},
            "s.h5", {100, 4096, 20'000, 50'000});
        row(QStringList{"measure", kSample, "--out", "m.csv"} + policy, "m.csv", {100});
        row({"sweep", kSample, "--policy", "keydiff@0.1", "--layers", "0", "--out", "s.csv"}, "s.csv", {100});
        row({"report", kSample, "--policy", "keydiff@0.1", "--views", "overlap", "--out", "r.html"}, "r.html", {1000});
    }

    void aFullDiskLeavesTheOldFile() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, name);
        QFETCH(QList<int>, limits);
        for (const int limit : limits) {
            const Program program;
            QVERIFY(program.write(name, "old"));
            const auto outcome = program.run(arguments, static_cast<rlim_t>(limit));
            const QByteArray what =
                QByteArray::number(limit) + " bytes, code " + QByteArray::number(outcome.code) + "\n" + outcome.error;
            QVERIFY2(outcome.code == 2 && outcome.error.trimmed().count('\n') == 0, what);
            QVERIFY2(outcome.error.contains(name.toUtf8()) && !outcome.error.contains(".part"), what);
            QCOMPARE(program.written(), QStringList{name});
            QCOMPARE(program.content(name), QByteArray("old"));
        }
    }

    void aReadOnlyFolderLeavesTheOldFile_data() { aFullDiskLeavesTheOldFile_data(); }

    void aReadOnlyFolderLeavesTheOldFile() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, name);
        const Program program;
        QVERIFY(program.write(name, "old"));
        const QByteArray folder = program.at(".").toUtf8();
        QCOMPARE(::chmod(folder.constData(), 0555), 0);
        QProcess process;
        process.setChildProcessModifier([] {
            constexpr uid_t kNobody = 65534; // no permission stops the superuser
            if (::geteuid() == 0) static_cast<void>(!::setuid(kNobody));
        });
        program.start(process, arguments);
        const bool finished = process.waitForFinished(120'000);
        QCOMPARE(::chmod(folder.constData(), 0755), 0);
        const QByteArray error = process.readAllStandardError();
        QVERIFY2(finished && process.exitCode() == 2 && error.trimmed().count('\n') == 0, error);
        QVERIFY2(error.contains("Permission denied") && error.contains(name.toUtf8()), error);
        QCOMPARE(program.written(), QStringList{name});
        QCOMPARE(program.content(name), QByteArray("old"));
    }

    void hdf5AndTablesThatGrowNeedAFile() {
        const Program program;
        for (const QString name : {"l.h5", "s.csv"}) makePipe(program, name);
        const QList<QStringList> commands = {
            {"evict", kSample, "--policy", "keydiff@0.1", "--out", "l.h5"},
            {"evict", kSample, "--policy", "uniform@50t", "--record", "l.h5", "--out", "l.csv"},
            {"synth", "--tokens", "64", "--out", "l.h5"},
            {"convert", kSample, "--out", "l.h5"},
            {"sweep", kSample, "--policy", "keydiff@0.1", "--layers", "0", "--out", "s.csv"}};
        for (const QStringList& arguments : commands) {
            const auto outcome = program.run(arguments);
            QVERIFY2(outcome.code == 2 && outcome.error.contains("a device or a pipe"),
                     arguments.join(' ').toUtf8() + "\n" + outcome.error);
            QVERIFY(isPipe(program, "l.h5") && isPipe(program, "s.csv"));
            QCOMPARE(program.written(), QStringList());
        }
    }

    void figuresAndListsGoIntoPipes() {
        const Program program;
        const QStringList figure{"plot", "key_projection", kSample, "--policy", "keydiff@0.1", "--out"};
        const QList<std::pair<QStringList, QByteArray>> commands = {
            {figure + QStringList{"f.svg"}, "</svg>"},
            {figure + QStringList{"f.png"}, "IEND"},
            {{"evict", kSample, "--policy", "keydiff@0.1", "--out", "l.json"}, "]"}};
        for (const auto& [arguments, end] : commands) {
            const QString name = arguments.last();
            makePipe(program, name);
            QProcess reader;
            reader.start("cat", {program.at(name)});
            const auto outcome = program.run(arguments);
            QVERIFY2(outcome.code == 0, outcome.error);
            QVERIFY(reader.waitForFinished());
            QVERIFY2(reader.readAllStandardOutput().right(40).contains(end), qPrintable(name));
            QVERIFY(isPipe(program, name));
        }
    }
};

KVSCOPE_CORE_TEST(FullDiskTest)
#include "full_disk_test.moc"
