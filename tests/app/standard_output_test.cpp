// `--out -`: what a command would write into a file goes to standard output, whole and alone.
#include <QtTest>

#include "tests/app/command_test.h"
#include "tests/support/test_program.h"

using namespace kvscope;

namespace {

const QStringList kPolicy{"--policy", "keydiff@50t"};

} // namespace

class StandardOutputTest : public testing::CommandTest {
    Q_OBJECT

    QTemporaryDir m_temporary;

    void nothingIsLeft() const { // Qt leaves a folder of its own
        QCOMPARE(QDir(m_temporary.path()).entryList({"kvscope-*"}), QStringList());
    }

private slots:
    void initTestCase() { qputenv("TMPDIR", m_temporary.path().toUtf8()); }
    void cleanup() { nothingIsLeft(); }

    void theSameBytesAsTheFile_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("output");
        QTest::addColumn<QString>("typed");
        const auto row = [](const char* name, QStringList arguments, const char* output, const char* typed) {
            QTest::newRow(name) << arguments + kPolicy << output << typed;
        };
        row("list", {"evict", kSample, "--layers", "3"}, "x.json", "-");
        row("list as CSV", {"evict", kSample, "--layers", "3"}, "x.csv", "-.csv");
        row("measures", {"measure", kSample, "--layers", "3"}, "x.json", "-");
        row("measures as CSV", {"measure", kSample, "--layers", "3"}, "x.csv", "-.csv");
        row("theory", {"theory", kSample, "--layers", "3"}, "x.json", "-.json");
        row("figure", {"plot", "token_strip", kSample, "--layer", "3"}, "x.svg", "-.svg");
    }

    void theSameBytesAsTheFile() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, output);
        QFETCH(QString, typed);
        expectDone(arguments + QStringList{"--out", output});
        QByteArray file = m_program.content(output);
        QVERIFY(file.contains(("--out " + output).toUtf8())); // the command that makes it again
        const QStringList before = m_program.written();
        const auto outcome = m_program.run(arguments + QStringList{"--out", typed});
        QCOMPARE(outcome.code, 0);
        QCOMPARE(outcome.out, file.replace(("--out " + output).toUtf8(), ("--out " + typed).toUtf8()));
        QCOMPARE(m_program.written(), before);
    }

    void whatElseIsPrintedGoesToStandardError() {
        const QStringList plot = QStringList{"plot", "token_strip", kSample, "--layer", "3"} + kPolicy;
        const auto file = m_program.run(plot + QStringList{"--out", "f.svg"});
        const auto piped = m_program.run(plot + QStringList{"--out", "-.svg"});
        QVERIFY(!file.out.trimmed().isEmpty()); // the finding
        QVERIFY2(piped.error.contains(file.out), piped.error);
        QVERIFY(piped.out.startsWith("<?xml"));
        const auto fit = m_program.run({"calibrate", "--policy", "snapkv", "--k", "-5", "--out", "-"});
        QCOMPARE(fit.code, 0);
        QVERIFY(fit.out.startsWith("{") && fit.out.endsWith("}\n") && fit.error.contains("given by hand"));
        const auto report =
            m_program.run(QStringList{"report", kSample, "--views", "token_strip", "--out", "-"} + kPolicy);
        QVERIFY2(report.code == 0 && report.out.startsWith("<!"), report.error);
        QVERIFY2(!report.error.contains("standard_output"), report.error); // its path is gone
        const auto table = m_program.run({"reproduce", "keydiff-table8", kSample, "--layers", "3", "--csv", "-"});
        QVERIFY2(table.code == 0 && table.out.contains("# command: kvscope reproduce"), table.error);
        const auto image = m_program.run(plot + QStringList{"--out", "-"}); // PNG stands first in the help
        QVERIFY2(image.code == 0 && image.out.startsWith("\x89PNG"), image.error);
    }

    void refused() {
        const QStringList evict = QStringList{"evict", kSample, "--layers", "3"} + kPolicy;
        expectRefused(evict + QStringList{"--steps", "-", "--out", "-"}, "has room for one output");
        expectRefused(evict + QStringList{"--out", "-.txt"}, "Choose one of .json, .csv, .h5");
        expectRefused(QStringList{"sweep", kSample, "--out", "a b/t.parquet"} + kPolicy,
                      "Write a b/t.json, which kvscope-parquet a b/t.json --out a b/t.parquet turns into one");
        const auto failed = m_program.run({"evict", kSample, "--policy", "keydiff@5000t", "--out", "-"});
        QVERIFY(failed.code == 2 && failed.out.isEmpty());
        const auto [terminal, words] =
            shell("script -qec '$KVSCOPE plot token_strip $SAMPLE --policy keydiff@9t --out -' /dev/null");
        QVERIFY2(terminal == 2 && words.contains("a .png file is not for a terminal"), words);
        const auto [full, sentence] = shell("$KVSCOPE evict $SAMPLE --policy keydiff@9t --out - >/dev/full");
        QVERIFY2(full == 2 && sentence.contains("cannot write standard output"), sentence);
    }

    void whatCannotBePrintedIsAnError_data() {
        QTest::addColumn<QString>("words");
        for (const char* words : {"inspect $SAMPLE", "policies", "man", "--help", "evict --version"})
            QTest::newRow(words) << words;
    }
    void whatCannotBePrintedIsAnError() {
        QFETCH(QString, words);
        const auto [code, sentence] = shell("$KVSCOPE " + words + " >/dev/full");
        QVERIFY2(code == 2 && sentence.contains("cannot write standard output: No space left on device"), sentence);
    }

    // A reader that has enough ends the program; its temporary file is gone by then.
    void aClosedPipe() {
        const auto [code, head] = shell("$KVSCOPE evict $SAMPLE --policy exact --scores --out - | head -c 1");
        QVERIFY(code == 0 && head == "{");
    }
};

KVSCOPE_CORE_TEST(StandardOutputTest)
#include "standard_output_test.moc"
