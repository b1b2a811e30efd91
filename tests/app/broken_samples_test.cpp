// The broken captures of sample_data through the program: one sentence on stderr that names file, place and remedy,
// exit code 2, and nothing written. The sound one beside them, written by another program, must open.
#include <QTest>

#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

using kvscope::testing::Program;

namespace {

const QString kFolder = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/broken/");

} // namespace

class BrokenSamplesTest : public QObject {
    Q_OBJECT

private slots:
    void theSoundOneRuns() {
        const Program program;
        const Program::Outcome outcome =
            program.run({"evict", kFolder + "sound.h5", "--policy", "keydiff@0.25", "--out", "x.csv"});
        QVERIFY2(outcome.code == 0, outcome.error);
        QCOMPARE(program.written(), QStringList{"x.csv"});
    }

    // Scripts read the exit code, not the findings.
    void aFindingThatIsAnErrorFailsTheVerification() {
        const Program program;
        QCOMPARE(program.run({"inspect", "--verify", kFolder + "sound.h5"}).code, 0);
        QCOMPARE(program.run({"inspect", kFolder + "nan.h5"}).code, 0); // its numbers are not read
        for (const QStringList& form : {QStringList{}, QStringList{"--json"}}) {
            const auto wrong = program.run(QStringList{"inspect", "--verify", kFolder + "nan.h5"} + form);
            QVERIFY2(wrong.code == 2 && wrong.error.contains("errors among the findings: 1 (--verify)"), wrong.error);
            QVERIFY2(wrong.out.contains("NaN in head 1, token 37"), wrong.out);
        }
    }

    void everyOtherIsRefused_data() {
        QTest::addColumn<QString>("sentence");
        QTest::addColumn<QString>("place");
        QTest::newRow("text") << "this is not an HDF5 file"
                              << "";
        QTest::newRow("truncated") << "it may be truncated or still being written"
                                   << "";
        QTest::newRow("other_format") << "this HDF5 file is not a capture"
                                      << "format";
        QTest::newRow("wrong_version") << "version 9, this program reads version 1"
                                       << "version";
        QTest::newRow("wrong_heads") << "the shape is (2, 64, 16), the attributes ask for (3, 64, 16)"
                                     << "layers/00/k";
        QTest::newRow("wrong_shape") << "the shape is (2, 60, 16), the attributes ask for (2, 64, 16)"
                                     << "layers/00/k";
        QTest::newRow("wrong_type") << "the stored type is none of bfloat16"
                                    << "layers/00/k";
        QTest::newRow("missing_values") << "a data set is missing"
                                        << "layers/01/v";
        QTest::newRow("falling_offsets") << "offsets must rise from 0"
                                         << "tokens/offsets";
        QTest::newRow("nan") << "NaN in head 1, token 37"
                             << "layers/01/k";
        QTest::newRow("no_tokens") << "the capture has no tokens"
                                   << "tokens/ids";
        QTest::newRow("linked") << "the file links to another file"
                                << "layers/00/v";
    }

    void everyOtherIsRefused() {
        QFETCH(QString, sentence);
        QFETCH(QString, place);
        const QString path = kFolder + QTest::currentDataTag() + ".h5";
        QVERIFY(QFile::exists(path));
        const QStringList shown = {"--layer", "1", "--kv-head", "1", "--policy", "keydiff@0.25", "--out", "x.svg"};
        for (const QStringList& command :
             {QStringList{"evict", path, "--policy", "keydiff@0.25", "--out", "x.json"},
              QStringList{"measure", path, "--policy", "key_norm@0.25", "--out", "x.csv"},
              QStringList{"sweep", path, "--policy", "keydiff", "--retention", "0.25", "--out", "x.csv"},
              QStringList{"plot", "key_projection", path} + shown}) {
            const Program program;
            const Program::Outcome outcome = program.run(command);
            QCOMPARE(outcome.code, 2);
            QVERIFY2(outcome.error.startsWith("kvscope: ") && outcome.error.count('\n') == 1, outcome.error);
            for (const QString& part : {sentence, place, path})
                QVERIFY2(outcome.error.contains(part.toUtf8()), outcome.error);
            QCOMPARE(program.written(), QStringList{});
        }
    }

    // A file in the folder that no row knows would be tested by nobody.
    void everyFileIsTested() {
        const auto files = QDir(kFolder).entryList({"*.h5"}, QDir::Files);
        QCOMPARE(files.size(), 13);
    }
};

KVSCOPE_CORE_TEST(BrokenSamplesTest)
#include "broken_samples_test.moc"
