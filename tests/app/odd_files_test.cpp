// Inputs that are no regular files, names that are no text, and files that kill the HDF5 library: every command says
// so in one line and ends with 2.
#include "tests/app/command_test.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QJsonDocument>
#include <QJsonObject>

#include <filesystem>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace kvscope;

namespace {

const QString kSound = QString::fromStdString(testing::sourceDir() + "/sample_data/broken/sound.h5");

} // namespace

class OddFilesTest : public testing::CommandTest {
    Q_OBJECT

private slots:
    void initTestCase() {
        QVERIFY(QFile::copy(kSound, m_program.at("good.h5")));
        QVERIFY(QFile::copy(kSound, m_program.at("-dash.h5")));
        for (const char* extension : {"h5", "json", "csv", "npz", "safetensors", "kvscope"})
            QCOMPARE(::mkfifo(m_program.at(QString("pipe.%1").arg(extension)).toUtf8().constData(), 0600), 0);
        QVERIFY(QDir(m_program.at(".")).mkdir("folder.h5") && QDir(m_program.at(".")).mkdir("folder.json"));
        const int one = ::socket(AF_UNIX, SOCK_STREAM, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const QByteArray path = m_program.at("socket.h5").toUtf8();
        QVERIFY(path.size() < qsizetype(sizeof address.sun_path));
        std::copy(path.begin(), path.end(), address.sun_path);
        QCOMPARE(::bind(one, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        ::close(one);
    }

    void whatIsNoFileIsRefused_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("words");
        const auto row = [](const QStringList& arguments, const QString& words) {
            QTest::newRow(qPrintable(arguments.join(' '))) << arguments << words;
        };
        const QStringList policy{"--policy", "keydiff@0.5"};
        const QString pipe = "this is a pipe, not a file";
        row({"inspect", "pipe.h5"}, pipe);
        row({"inspect", "socket.h5"}, "this is a socket, not a file");
        row({"inspect", "/dev/zero"}, "this is a device, not a file");
        row({"inspect", "folder.h5"}, "folder");
        row(QStringList{"evict", "pipe.h5", "--out", "o.json"} + policy, pipe);
        row(QStringList{"sweep", "good.h5", "pipe.h5", "--out", "o.csv"} + policy, pipe);
        row({"measure", "good.h5", "--selection", "pipe.json", "--out", "o.csv"}, pipe);
        row({"measure", "good.h5", "--selection", "pipe.csv", "--out", "o.csv"}, pipe);
        row({"measure", "good.h5", "--selection", "pipe.h5", "--out", "o.csv"}, pipe);
        row({"measure", "good.h5", "--selection", "folder.json", "--out", "o.csv"}, "this is a folder, not a file");
        row({"evict", "good.h5", "--policy", "imported,file=pipe.h5:/x@0.5", "--out", "o.json"}, pipe);
        row({"evict", "good.h5", "--policy", "uniform@0.5", "--uniforms", "pipe.h5:/x", "--out", "o.json"}, pipe);
        row({"evict", "good.h5", "--policy", "keydiff@tau=0.9:pipe.json", "--out", "o.json"}, pipe);
        row({"calibrate", "pipe.h5", "--policy", "keydiff", "--out", "o.json"}, pipe);
        row({"calibrate", "--triples", "pipe.csv", "--policy", "keydiff", "--out", "o.json"}, pipe);
        row({"convert", "pipe.npz", "--out", "o.h5"}, pipe);
        row({"convert", "pipe.safetensors", "--out", "o.h5"}, pipe);
        row({"plot", "token_strip", "--session", "pipe.kvscope", "--out", "o.svg"}, pipe);
        row(QStringList{"report", "pipe.h5", "--out", "o.html"} + policy, pipe);
        row({"theory", "pipe.h5", "--out", "o.json"}, pipe);
        row({"pipe.h5"}, pipe);
        row({"pipe.kvscope"}, pipe);
        row({"pipe.json"}, pipe);
    }

    void whatIsNoFileIsRefused() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, words);
        expectRefused(arguments, qPrintable(words));
    }

    void namesThatAreNoUtf8() {
        const std::string name = m_program.at("n\xc3\xa9").toStdString() + "\xff.h5"; // é as UTF-8, then no character
        std::filesystem::copy_file(kSound.toStdString(), name);
        const auto [code, out] = shell(R"("$KVSCOPE" inspect --json n*.h5)");
        QCOMPARE(code, 0);
        QVERIFY2(QJsonDocument::fromJson(out).object()["file"].toString().contains("n\u00e9"), out);
        const auto list = shell(R"("$KVSCOPE" evict n*.h5 --policy keydiff@0.5 --out list.json && cat list.json)");
        QCOMPARE(list.first, 0);
        QVERIFY2(list.second.contains(R"(evict $'n\\xc3\\xa9\\xff.h5' --policy)"), list.second);
        const auto window = shell(R"("$KVSCOPE" n*.h5)");
        QCOMPARE(window.first, 2);
        QVERIFY2(window.second.contains("Rename the file: n\u00e9\\xff.h5") && window.second.count('\n') == 1,
                 window.second);
        std::filesystem::remove(name);
        QVERIFY(QFile::remove(m_program.at("list.json")));
    }

    void messagesAreOneShortLine() {
        for (const QString& name :
             {QString("a\nb.h5"), QString("\x1b[31mred.h5"), QString(4000, 'x'), QString("folder.h5/").repeated(400)}) {
            expectRefused({"inspect", name}, "kvscope: ");
            const auto outcome = m_program.run({"inspect", name});
            QVERIFY2(outcome.error.size() < 400 && !outcome.error.contains('\x1b'), outcome.error);
        }
        expectRefused({"inspect", "a\nb.h5"}, "a\\nb.h5");
        expectRefused({"evict", "good.h5", "--policy", QString(5000, 'k') + "@0.5", "--out", "o.json"}, "...");
        expectRefused({"inspect", "good.h5", QString(5000, 'w')}, "...");
    }

    void aNameWithADashIsAFileBesideTheFolder() {
        expectRefused({"inspect", "-dash.h5"}, "write './-dash.h5'");
        expectDone({"inspect", "./-dash.h5"});
        expectDone({"inspect", "--", "-dash.h5"});
    }
};

KVSCOPE_CORE_TEST(OddFilesTest)
#include "odd_files_test.moc"
