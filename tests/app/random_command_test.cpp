// Random numbers through the program: means and spreads over seeds, and the same numbers replayed by every command.
#include <QtTest>

#include "tests/app/command_test.h"
#include "tests/support/test_program.h"

#include <QImage>
#include <QVector>

#include <cmath>

using namespace kvscope;

class RandomCommandTest : public testing::CommandTest {
    Q_OBJECT

    /// A column of a CSV without quoted fields before it.
    QVector<double> column(const QString& file, const QString& name) const {
        const QStringList lines = QString::fromUtf8(m_program.content(file)).trimmed().split('\n');
        const auto at = lines.first().split(',').indexOf(name);
        QVector<double> values;
        for (qsizetype i = 1; i < lines.size() && at >= 0; ++i)
            values.push_back(lines[i].split(',').value(at).toDouble());
        return values;
    }
    QStringList measure(const QStringList& more, const QString& out) const {
        return QStringList{"measure", kSample, "--policy", "uniform@0.25", "--layers", "3", "--kv-heads", "1"} + more +
               QStringList{"--out", out};
    }

private slots:
    void meanAndSpreadOverSeeds() {
        expectDone(measure({"--seeds", "4-6"}, "all.csv"));
        const auto mean = column("all.csv", "output_error"), spread = column("all.csv", "output_error_std");
        QVector<QVector<double>> one;
        for (const char* seed : {"4", "5", "6"}) {
            expectDone(measure({"--seed", seed}, "one.csv"));
            one.push_back(column("one.csv", "output_error"));
        }
        QCOMPARE(mean.size(), 4); // the query heads of a KV head
        for (qsizetype head = 0; head < 4; ++head) {
            const double expected = (one[0][head] + one[1][head] + one[2][head]) / 3;
            double squares = 0;
            for (const auto& run : one) squares += (run[head] - expected) * (run[head] - expected);
            QVERIFY(std::abs(mean[head] - expected) < 1e-12);
            QVERIFY(spread[head] > 0 && std::abs(spread[head] - std::sqrt(squares / 2)) < 1e-12);
        }
        QVERIFY(m_program.content("all.csv").contains("3 of 4-6"));
        QVERIFY(!m_program.content("one.csv").contains("output_error_std"));
    }

    // Without a cut the first queries see no kept token: they are counted for each query head, as a mean over the
    // seeds.
    void skippedQueriesAreThoseOfTheRow() {
        expectDone({"synth", "--tokens", "64", "--layers", "1", "--out", "short.h5"});
        const auto skipped = [&](const QStringList& seeds) {
            expectDone(QStringList{"measure", "short.h5", "--policy", "uniform@0.1", "--cut", "none"} + seeds +
                       QStringList{"--metrics", "output_error,retained_mass", "--out", "m.csv"});
            return column("m.csv", "skipped");
        };
        const auto mean = skipped({"--seeds", "0-2"});
        QCOMPARE(mean.size(), 8);
        QVector<double> sum(8);
        for (const char* seed : {"0", "1", "2"}) {
            const auto one = skipped({"--seed", seed});
            for (qsizetype head = 0; head < 8; ++head) {
                QVERIFY(one[head] >= 0 && one[head] < 64);
                sum[head] += one[head];
            }
        }
        for (qsizetype head = 0; head < 8; ++head) QVERIFY(std::abs(mean[head] - sum[head] / 3) < 1e-3);
        QVERIFY(*std::max_element(sum.begin(), sum.end()) > 0);
        // A query that sees no kept token retains nothing.
        const auto mass = column("m.csv", "retained_mass"), queries = column("m.csv", "queries");
        const auto last = skipped({"--seed", "2"});
        for (qsizetype head = 0; head < 8; ++head) QVERIFY(mass[head] <= 1 - last[head] / queries[head] + 1e-6);
    }

    // From one seed nobody knows the deviation, which 0 would deny.
    void oneSeedOfAPolicyThatDrawsHasNoDeviation() {
        expectDone(measure({"--seeds", "4"}, "single.csv"));
        const QStringList lines = QString::fromUtf8(m_program.content("single.csv")).trimmed().split('\n');
        const auto at = lines.front().split(',').indexOf("output_error_std");
        QVERIFY(at > 0 && lines.size() == 5);
        for (const QString& line : lines.mid(1)) QCOMPARE(line.split(',').value(at), QString());
        expectDone(measure({"--seeds", "4"}, "single.json"));
        QVERIFY(m_program.content("single.json").contains("\"output_error_std\": null"));
    }

    void policiesWithoutLuckRunOnce() {
        expectDone(
            {"measure", kSample, "--policy", "keydiff@0.25", "--layers", "3", "--seeds", "0-9", "--out", "k.csv"});
        QCOMPARE(column("k.csv", "seeds"), QVector<double>(8, 0.0));
    }

    // What one seed drew, replayed under another seed, gives the first one's results: list, measure, sweep and figure.
    void everyCommandReplays() {
        const QStringList replay = {"--uniforms", "drawn.h5:/uniforms", "--seed", "99"};
        expectDone(measure({"--seed", "5", "--record", "drawn.h5"}, "drawn.csv"));
        expectDone(measure(replay, "replayed.csv"));
        expectDone(measure({"--seed", "99"}, "other.csv"));
        QCOMPARE(column("replayed.csv", "output_error"), column("drawn.csv", "output_error"));
        QVERIFY(column("other.csv", "output_error") != column("drawn.csv", "output_error"));

        const QStringList sweep = {"sweep", kSample, "--policy", "uniform", "--retention", "0.25", "--layers", "3"};
        expectDone(sweep + QStringList{"--seed", "5", "--out", "a.csv"});
        expectDone(sweep + replay + QStringList{"--out", "b.csv"});
        QCOMPARE(column("b.csv", "output_error"), column("a.csv", "output_error"));

        const QStringList plot = {"plot", "token_strip", kSample, "--policy", "uniform@0.25", "--layer", "3"};
        expectDone(plot + QStringList{"--seed", "5", "--out", "a.png"});
        expectDone(plot + replay + QStringList{"--out", "b.png"});
        expectDone(plot + QStringList{"--seed", "99", "--out", "c.png"});
        const auto picture = [&](const char* name) { return QImage(m_program.at(name)); };
        QVERIFY(picture("a.png") == picture("b.png"));
        QVERIFY(picture("a.png") != picture("c.png"));
    }

    // BalanceKV's partial round and the coins of sign sort draw from a slot far beyond the others.
    void partialRoundsAreRecorded() {
        for (const char* policy : {"balancekv:longbench@0.3", "uniform:sign_sort@0.3"}) {
            const auto measured = [&](const QStringList& more, const char* out) {
                expectDone(QStringList{"measure", kSample, "--policy", policy, "--layers", "3", "--out", out} + more);
                return column(out, "output_error");
            };
            const auto drawn = measured({"--seed", "5", "--record", "partial.h5"}, "drawn.csv");
            QCOMPARE(measured({"--uniforms", "partial.h5:/uniforms", "--seed", "99"}, "replayed.csv"), drawn);
            QVERIFY(measured({"--seed", "99"}, "other.csv") != drawn);
        }
    }

    // Decimal digits and nothing else: no octal, no sign, nothing beyond 64 bits.
    void seedsAreDecimal() {
        expectDone(measure({"--seed", "042"}, "octal.csv"));
        expectDone(measure({"--seed", "42"}, "decimal.csv"));
        QCOMPARE(column("octal.csv", "output_error"), column("decimal.csv", "output_error"));
        QVERIFY(m_program.content("octal.csv").contains(",42,"));
        expectDone(measure({"--seed", "18446744073709551615"}, "last.csv"));
        for (const char* seed : {"-1", "18446744073709551616", "99999999999999999999", "0x10", "1.5", "1e3", "", "5 "})
            expectRefused(measure({QString("--seed=%1").arg(seed)}, "x.csv"), "seed");
        expectRefused({"synth", "--seed", "-1", "--out", "x.h5"}, "seed");
    }

    void filesOfNumbersAndSeveralSeedsContradict() {
        expectDone(measure({"--record", "drawn.h5"}, "drawn.csv"));
        expectRefused(measure({"--uniforms", "drawn.h5:/uniforms", "--seeds", "0-2"}, "x.csv"), "several seeds");
        expectRefused(measure({"--record", "x.h5", "--seeds", "0-2"}, "x.csv"), "several seeds");
        expectRefused({"sweep", kSample, kSample, "--policy", "uniform@0.25", "--uniforms", "drawn.h5:/uniforms",
                       "--out", "x.csv"},
                      "one capture");
        expectRefused({"measure", kSample, "--policy", "keydiff@0.25", "--record", "x.h5", "--out", "x.csv"},
                      "drew no random number");
        // Sinks and recent tokens fill the budget of a policy that is random otherwise.
        expectRefused({"measure", kSample, "--policy", "balancekv@0.25", "--record", "x.h5", "--out", "x.csv"},
                      "its parameters and budget");
    }
};

KVSCOPE_CORE_TEST(RandomCommandTest)
#include "random_command_test.moc"
