// Atomic files: whole or not at all, and nothing left beside them.
#include "core/base/atomic_file.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QtTest>

#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kvscope;

namespace {

QStringList entries(const QTemporaryDir& folder) {
    return QDir(folder.path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot, QDir::Name);
}

std::string at(const QTemporaryDir& folder, const char* name) { return folder.filePath(name).toStdString(); }

/// No file of this process may grow beyond `bytes`: to a writer the same as a full disk.
class FileSizeLimit {
public:
    explicit FileSizeLimit(rlim_t bytes) : m_oldHandler(std::signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &m_old);
        const rlimit limit{bytes, m_old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileSizeLimit() {
        setrlimit(RLIMIT_FSIZE, &m_old);
        std::signal(SIGXFSZ, m_oldHandler);
    }

private:
    rlimit m_old{};
    void (*m_oldHandler)(int);
};

} // namespace

class AtomicFileTest : public QObject {
    Q_OBJECT

private slots:
    void writesAndReplaces() {
        QTemporaryDir folder;
        writeFileAtomically(at(folder, "a.txt"), "first, and longer");
        writeFileAtomically(at(folder, "a.txt"), std::string("zero\0byte", 9));
        QCOMPARE(readWholeFile(at(folder, "a.txt")), std::string("zero\0byte", 9));
        QCOMPARE(entries(folder), QStringList{"a.txt"});
    }

    void keepsPermissionsOfTheTarget() {
        QTemporaryDir folder;
        writeFileAtomically(at(folder, "a.txt"), "x");
        std::filesystem::permissions(at(folder, "a.txt"), std::filesystem::perms(0640));
        writeFileAtomically(at(folder, "a.txt"), "y");
        QVERIFY(std::filesystem::status(at(folder, "a.txt")).permissions() == std::filesystem::perms(0640));
    }

    void followsLinks() {
        QTemporaryDir folder;
        writeFileAtomically(at(folder, "real.txt"), "old");
        std::filesystem::create_symlink(at(folder, "real.txt"), at(folder, "link.txt"));
        writeFileAtomically(at(folder, "link.txt"), "new");
        QVERIFY(std::filesystem::is_symlink(at(folder, "link.txt")));
        QCOMPARE(readWholeFile(at(folder, "real.txt")), std::string("new"));
    }

    void followsLinksToWhereNothingIsYet() {
        QTemporaryDir folder;
        QVERIFY(QDir(folder.path()).mkdir("sub"));
        std::filesystem::create_symlink("sub/middle.txt", at(folder, "link.txt"));
        std::filesystem::create_symlink("new.txt", at(folder, "sub/middle.txt"));
        writeFileAtomically(at(folder, "link.txt"), "x");
        QVERIFY(std::filesystem::is_symlink(at(folder, "link.txt")) &&
                std::filesystem::is_symlink(at(folder, "sub/middle.txt")));
        QCOMPARE(readWholeFile(at(folder, "sub/new.txt")), std::string("x"));
        std::filesystem::create_symlink("round.txt", at(folder, "round.txt"));
        QVERIFY(!errorMessage([&] { writeFileAtomically(at(folder, "round.txt"), "x"); }).empty());
        QVERIFY(std::filesystem::is_symlink(at(folder, "round.txt")));
    }

    void uncommittedLeavesTheTarget() {
        QTemporaryDir folder;
        writeFileAtomically(at(folder, "a.h5"), "old");
        {
            const AtomicFile file(at(folder, "a.h5"));
            QVERIFY(QString::fromStdString(file.temporaryPath()).endsWith(".h5"));
            QCOMPARE(entries(folder).size(), 2);
        }
        QCOMPARE(entries(folder), QStringList{"a.h5"});
        QCOMPARE(readWholeFile(at(folder, "a.h5")), std::string("old"));
    }

    void twoWritersDoNotMeet() {
        QTemporaryDir folder;
        AtomicFile a(at(folder, "a.txt"));
        AtomicFile b(at(folder, "a.txt"));
        QVERIFY(a.temporaryPath() != b.temporaryPath());
        b.commit();
        a.commit();
        QCOMPARE(entries(folder), QStringList{"a.txt"});
    }

    /// As a killed process leaves them; a process that still writes holds the lock.
    void leftoversGoWithTheNextFile() {
        QTemporaryDir folder;
        const AtomicFile writing(at(folder, "busy.txt"));
        const std::string busy = QFileInfo(QString::fromStdString(writing.temporaryPath())).fileName().toStdString();
        const char* others[] = {".notes.part-two.txt", ".notes.part-1-2x", "notes.part-1-2.txt"};
        for (const char* name : others) QVERIFY(QFile(folder.filePath(name)).open(QIODevice::WriteOnly));
        for (const char* name : {".table.part-999999-0.csv", ".no suffix.part-1-12"})
            QVERIFY(QFile(folder.filePath(name)).open(QIODevice::WriteOnly));
        QCOMPARE(entries(folder).size(), 6);
        writeFileAtomically(at(folder, "other.txt"), "x");
        QStringList expected{QString::fromStdString(busy), "other.txt"};
        for (const char* name : others) expected << name;
        expected.sort();
        QCOMPARE(entries(folder), expected);
    }

    void fullDiskLeavesNothing() {
        QTemporaryDir folder;
        writeFileAtomically(at(folder, "a.txt"), "old");
        std::string message;
        {
            const FileSizeLimit limit(4096);
            message = errorMessage([&] { writeFileAtomically(at(folder, "a.txt"), std::string(1 << 20, 'x')); });
        }
        QVERIFY2(message.find("cannot write the file") == 0 && message.find("a.txt") != std::string::npos,
                 message.c_str());
        QCOMPARE(entries(folder), QStringList{"a.txt"});
        QCOMPARE(readWholeFile(at(folder, "a.txt")), std::string("old"));
    }

    void errorsNameFileAndRemedy() {
        QTemporaryDir folder;
        const std::string missing = errorMessage([&] { writeFileAtomically(at(folder, "no/such/a.txt"), "x"); });
        QVERIFY2(missing.find("Create the folder first") != std::string::npos, missing.c_str());
        QVERIFY2(missing.find("no/such/a.txt") != std::string::npos, missing.c_str());
        const std::string directory = errorMessage([&] { writeFileAtomically(folder.path().toStdString(), "x"); });
        QVERIFY2(directory.find("folder, not a file") != std::string::npos, directory.c_str());
        QVERIFY(!errorMessage([] { writeFileAtomically("", "x"); }).empty());
        QVERIFY(errorMessage([&] { readWholeFile(at(folder, "none")); }).find("No such file") != std::string::npos);
        writeFileAtomically(at(folder, "big"), std::string(100, 'x'));
        QVERIFY(errorMessage([&] { readWholeFile(at(folder, "big"), 99); }).find("larger than 99") !=
                std::string::npos);
        QCOMPARE(entries(folder), QStringList{"big"});
    }

    // A pipe where a file is needed is an error; the pipe, and the link to it, stay what they are.
    void pipesAreNeverReplaced() {
        QTemporaryDir folder;
        QCOMPARE(::mkfifo(at(folder, "pipe").c_str(), 0600), 0);
        std::filesystem::create_symlink(at(folder, "pipe"), at(folder, "link"));
        const int reader = ::open(at(folder, "pipe").c_str(), O_RDWR | O_NONBLOCK);
        QVERIFY(reader >= 0);
        for (const char* name : {"pipe", "link"}) {
            const std::string refused = errorMessage([&] { AtomicFile(at(folder, name)).commit(); });
            QVERIFY2(refused.find("a device or a pipe") != std::string::npos && refused.find(name) != std::string::npos,
                     refused.c_str());
            checkCanWrite(at(folder, name));
            writeFileAtomically(at(folder, name), "text");
            char text[5] = {};
            QCOMPARE(::read(reader, text, 4), ssize_t{4});
            QCOMPARE(std::string(text), std::string("text"));
            QVERIFY(std::filesystem::is_fifo(at(folder, "pipe")));
        }
        ::close(reader);
        QVERIFY(std::filesystem::is_symlink(at(folder, "link")));
        QCOMPARE(
            QDir(folder.path()).entryList(QDir::AllEntries | QDir::System | QDir::Hidden | QDir::NoDotAndDotDot).size(),
            2);
    }

    void probingLeavesNothing() {
        QTemporaryDir folder;
        writeFileAtomically(at(folder, "old"), "old");
        checkCanWrite(at(folder, "old"));
        checkCanWrite(at(folder, "new"));
        QVERIFY(!errorMessage([&] { checkCanWrite(at(folder, "no/new")); }).empty());
        QCOMPARE(entries(folder), QStringList{"old"});
        QCOMPARE(readWholeFile(at(folder, "old")), std::string("old"));
    }

    void devicesAreWrittenDirectly() {
        writeFileAtomically("/dev/null", "x");
        QVERIFY(std::filesystem::is_character_file("/dev/null"));
        QVERIFY(!errorMessage([] { writeFileAtomically("/dev/full", "x"); }).empty());
    }
};

KVSCOPE_TEST(AtomicFileTest)
#include "atomic_file_test.moc"
