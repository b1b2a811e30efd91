// `kvscope plot --all-heads`: one panel for each head, with the numbers that its own figure has.
#include "tests/app/command_test.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QRegularExpression>
#include <QSet>

using namespace kvscope;

class AllHeadsTest : public kvscope::testing::CommandTest {
    Q_OBJECT

    QString factsIn(const QString& file) const {
        static const QRegularExpression facts("error [0-9.]+ · mass [0-9.]+ % · kept [0-9,]+");
        return facts.match(QString::fromUtf8(m_program.content(file))).captured();
    }

private slots:
    void everyHeadHasItsOwnNumbers() {
        const QStringList common = {"plot", "key_projection", kSample, "--layer", "3", "--policy", "keydiff@0.1"};
        expectDone(common + QStringList{"--all-heads", "--size", "2400x420", "--out", "all.svg"});
        const QString all = QString::fromUtf8(m_program.content("all.svg"));
        QSet<QString> seen;
        for (int head = 0; all.contains(QString("KV head %1").arg(head)); ++head) {
            const QString name = QString("%1.svg").arg(head);
            expectDone(common + QStringList{"--kv-head", QString::number(head), "--size", "600x400", "--out", name});
            QVERIFY2(!factsIn(name).isEmpty() && all.contains(factsIn(name)), qPrintable(name + ": " + factsIn(name)));
            seen.insert(factsIn(name));
        }
        QVERIFY2(seen.size() >= 2, qPrintable(QString::number(seen.size())));
        QVERIFY(!all.contains("Query head")); // lists are those of KV heads: four pictures would be the same
        expectDone({"plot", "attention_map", kSample, "--policy", "keydiff@0.1", "--all-heads", "--size", "1200x800",
                    "--out", "maps.svg"});
        QVERIFY(m_program.content("maps.svg").contains("Query head 3, KV head"));
    }

    // Equal colours are equal weights in pictures side by side, unless each is to have its own range.
    void mapsSideBySideShareTheirColours() {
        const auto rangesIn = [this](const QStringList& more, const QString& file) {
            expectDone(QStringList{"plot", "attention_map", kSample, "--layer", "2", "--policy", "keydiff@0.1",
                                   "--size", "1600x1000", "--out", file} +
                       more);
            static const QRegularExpression tags("<[^>]*>"), range("log10, (\\S+) to (\\S+)");
            const QString words = QString::fromUtf8(m_program.content(file)).replace(tags, " ").simplified();
            QStringList ranges;
            for (auto found = range.globalMatch(words); found.hasNext();) ranges += found.next().captured();
            return ranges;
        };
        const auto distinct = [](const QStringList& ranges) {
            return QSet<QString>(ranges.begin(), ranges.end()).size();
        };
        const QStringList heads = rangesIn({"--all-heads"}, "heads.svg"),
                          each = rangesIn({"--all-heads", "--view-set", "range=each"}, "each.svg");
        QCOMPARE(heads.size(), 8);
        QVERIFY2(distinct(heads) == 1, qPrintable(heads.join("; ")));
        QVERIFY2(distinct(each) > 2, qPrintable(each.join("; ")));
        const QString other = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/story-2k.h5");
        const QStringList both = rangesIn({"--compare-with", other}, "both.svg"),
                          own = rangesIn({"--compare-with", other, "--view-set", "range=each"}, "own.svg");
        QCOMPARE(both.size(), 2);
        QVERIFY2(distinct(both) == 1, qPrintable(both.join("; ")));
        QVERIFY2(distinct(own) == 2, qPrintable(own.join("; ")));
    }

    void mistakes() {
        expectRefused({"plot", "head_grid", kSample, "--policy", "keydiff@0.1", "--all-heads", "--out", "x.svg"},
                      "is not about one head");
        const QString other = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/records-2k.h5");
        expectRefused({"plot", "attention_map", kSample, "--policy", "keydiff@0.1", "--all-heads", "--compare-with",
                       other, "--out", "x.svg"},
                      "all heads are shown of one capture");
        const auto both = m_program.run(
            {"plot", "overlap", kSample, "--policy", "keydiff@0.1", "--all-heads", "--kv-head", "1", "--out", "x.svg"});
        QVERIFY(both.code != 0);
    }
};

KVSCOPE_CORE_TEST(AllHeadsTest)
#include "all_heads_test.moc"
