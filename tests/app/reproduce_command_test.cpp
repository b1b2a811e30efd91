// `kvscope reproduce` as its users run it: the list of rows, what is refused, and the files of a row.
#include "tests/app/command_test.h"

#include "core/studies/reproduction.h"
#include "tests/support/test_program.h"

using namespace kvscope;

class ReproduceCommandTest : public testing::CommandTest {
    Q_OBJECT

private slots:
    // Ids in one column and titles in another, also next to the longest id.
    void theListIsATable() {
        const auto outcome = m_program.run({"reproduce", "--list"});
        QVERIFY2(outcome.code == 0, outcome.error);
        const QList<QByteArray> lines = outcome.out.trimmed().split('\n');
        QCOMPARE(std::size_t(lines.size()), allReproductions().size());
        qsizetype column = -1;
        for (qsizetype i = 0; i < lines.size(); ++i) {
            const Reproduction& row = allReproductions()[std::size_t(i)];
            QVERIFY2(lines[i].startsWith(QByteArray::fromStdString(row.id + "  ")), lines[i]);
            const qsizetype at = lines[i].indexOf(QByteArray::fromStdString("  " + row.item)) + 2;
            column = column < 0 ? at : column;
            QCOMPARE(at, column);
            QVERIFY2(lines[i].contains(QByteArray::fromStdString(row.elsewhere)), lines[i]);
        }
    }

    // Numbers and figure of a row that needs no run and of one that compares lists; the command stands in the file.
    void rowsAreWritten() {
        expectDone({"reproduce", "keydiff-table8", kSample, "--csv", "t8.csv", "--out", "t8.svg"});
        const QByteArray lengths = m_program.content("t8.csv");
        QVERIFY2(lengths.contains("\n# not scaled: one prompt") &&
                     lengths.contains("\nthe paper's cache sizes,exact,kept_share,4096,4K,1,,,1,,\n"),
                 lengths);
        QVERIFY(lengths.contains("# command: kvscope reproduce keydiff-table8 "));
        QVERIFY(m_program.content("t8.svg").contains("KeyDiff Table 8"));
        expectDone({"reproduce", "keydiff-table14", kSample, "--layers", "1", "--csv", "t14.csv", "--out", "t14.png"});
        const QByteArray anchors = m_program.content("t14.csv");
        QVERIFY2(anchors.contains("\nkeydiff overlap,keydiff,overlap,0,normalised_mean,1,,,1,,\n") &&
                     anchors.contains("overlap with the lists of anchor=normalised_mean"),
                 anchors);
        QVERIFY(m_program.content("t14.png").startsWith("\x89PNG"));
    }

    void mistakes() {
        expectRefused({"reproduce", "keydiff-tabel13", kSample}, "keydiff-table13");
        expectRefused({"reproduce", "keydiff-table13"}, "needs a capture");
        expectRefused({"reproduce", "keydiff-table13", kSample}, "nothing would be written");
        expectRefused({"reproduce", "keydiff-ttft", kSample, "--csv", "a.csv"}, "needs the model");
        expectRefused({"reproduce", "keydiff-table13", kSample, "--csv", "a.txt"}, ".csv");
    }
};

KVSCOPE_CORE_TEST(ReproduceCommandTest)
#include "reproduce_command_test.moc"

#include <cstddef>
