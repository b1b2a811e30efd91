// The uniform baseline is fair: inclusion frequencies, independence of layers, heads and seeds, nested budgets.
#include "tests/policies/policy_bench.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace kvscope;

namespace {

constexpr double kFiveSigma =
    5; // a fair draw fails a check once in 1.7 million; seeds are fixed, so the outcome is too

// Chi-square of `counts` against an equal share, as standard deviations from its mean.
double chiSquareDeviations(const std::vector<double>& counts, double expected, double variance) {
    double sum = 0;
    for (const double count : counts) sum += (count - expected) * (count - expected) / variance;
    const double freedom = static_cast<double>(counts.size()) - 1;
    // Inclusion counts of a fixed-size draw have covariance, under which this sum is (size / freedom) chi-square.
    return (sum * freedom / static_cast<double>(counts.size()) - freedom) / std::sqrt(2 * freedom);
}

} // namespace

class UniformTest : public QObject {
    Q_OBJECT

private slots:
    void agreesWithTheOracle() {
        TestLayer layer = TestLayer::random(1, {4, 2, 97, 4});
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            layer.plain.seed = seed;
            for (const char* spec :
                 {"uniform@17t", "uniform:kvpress@0.4", "uniform,protect_first=4,protect_last=6@30t"})
                QCOMPARE(difference(m_bench.run(spec, layer), runNaive(spec, layer.plain)), std::string());
        }
    }

    // Every token is kept with probability k/n.
    void everyPositionHasTheSameChance() {
        TestLayer layer = TestLayer::random(1, {1, 1, 64, 2});
        constexpr int runs = 4000, budget = 16;
        std::vector<double> counts(64, 0.0);
        for (int run = 0; run < runs; ++run) {
            layer.plain.seed = static_cast<std::uint64_t>(run);
            const PolicyOutcome outcome = m_bench.run("uniform@16t", layer);
            for (const TokenIndex token : outcome.selection.heads[0].kept) counts[static_cast<std::size_t>(token)] += 1;
        }
        const double p = budget / 64.0;
        const double deviations = chiSquareDeviations(counts, runs * p, runs * p * (1 - p));
        qInfo("chi-square lies %.2f standard deviations from its mean", deviations);
        QVERIFY(std::abs(deviations) < kFiveSigma);
    }

    // Each subset equally likely, not only each token: all 20 triples of 6.
    void everySubsetHasTheSameChance() {
        TestLayer layer = TestLayer::random(1, {1, 1, 6, 2});
        constexpr int runs = 6000;
        std::map<std::vector<TokenIndex>, double> counts;
        for (int run = 0; run < runs; ++run) {
            layer.plain.seed = static_cast<std::uint64_t>(run) * 7919;
            counts[m_bench.run("uniform@3t", layer).selection.heads[0].kept] += 1;
        }
        QCOMPARE(counts.size(), std::size_t{20});
        double chiSquare = 0;
        for (const auto& [subset, count] : counts)
            chiSquare += (count - runs / 20.0) * (count - runs / 20.0) / (runs / 20.0);
        qInfo("chi-square %.1f with 19 degrees of freedom", chiSquare);
        QVERIFY(chiSquare < 19 + kFiveSigma * std::sqrt(38.0));
        QVERIFY(chiSquare > 19 - 3 * std::sqrt(38.0));
    }

    void seedsLayersAndHeadsDiffer() {
        TestLayer layer = TestLayer::random(1, {4, 4, 97, 4});
        std::set<std::vector<TokenIndex>> lists;
        for (std::uint64_t seed = 0; seed < 3; ++seed)
            for (int index = 0; index < 3; ++index) {
                layer.plain.seed = seed;
                layer.plain.layer = index;
                for (const HeadSelection& head : m_bench.run("uniform@30t", layer).selection.heads)
                    lists.insert(head.kept);
            }
        QCOMPARE(lists.size(), std::size_t{36});
    }

    // Overlap of two heads is that of independent draws: k^2/n of k.
    void headsAreIndependent() {
        TestLayer layer = TestLayer::random(1, {2, 2, 400, 2});
        double common = 0;
        for (std::uint64_t seed = 0; seed < 200; ++seed) {
            layer.plain.seed = seed;
            const Selection selection = m_bench.run("uniform@100t", layer).selection;
            std::vector<TokenIndex> both;
            std::set_intersection(selection.heads[0].kept.begin(), selection.heads[0].kept.end(),
                                  selection.heads[1].kept.begin(), selection.heads[1].kept.end(),
                                  std::back_inserter(both));
            common += static_cast<double>(both.size()) / 200;
        }
        // Hypergeometric: mean 25, variance 100 (1/4)(3/4)(300/399) = 14.1, over 200 seeds.
        QVERIFY(std::abs(common - 25) < kFiveSigma * std::sqrt(14.1 / 200));
    }

    void largerBudgetsKeepWhatSmallerKept() {
        TestLayer layer = TestLayer::random(1, {1, 1, 97, 4});
        std::vector<TokenIndex> smaller;
        for (int budget = 1; budget <= 97; budget += 4) {
            const auto kept = m_bench.run("uniform@" + std::to_string(budget) + "t", layer).selection.heads[0].kept;
            QVERIFY(std::includes(kept.begin(), kept.end(), smaller.begin(), smaller.end()));
            smaller = kept;
        }
    }

    void independentOfTheTensorsAndOfBlocks() {
        const PolicyOutcome a = m_bench.run("uniform@30t", TestLayer::random(3, {4, 2, 97, 8}));
        const PolicyOutcome b = m_bench.run("uniform@30t", TestLayer::random(4, {4, 2, 97, 3}));
        const PolicyOutcome blocks = m_bench.run("uniform,prompt_block=11@30t", TestLayer::random(5, {4, 2, 97, 8}));
        QVERIFY(a.selection.sameLists(b.selection));
        QVERIFY(a.selection.sameLists(blocks.selection));
    }

    // B13: the sign sort of BalanceKV's code, 1,024 tokens in blocks of 128, one round; known shares of each position.
    void theSignSortPrefersEarlyTokensAndDropsLeaders() {
        TestLayer layer = TestLayer::random(1, {8, 8, 1024, 1});
        double early = 0, late = 0, first = 0, leaders = 0;
        constexpr int runs = 60;
        for (int run = 0; run < runs; ++run) {
            layer.plain.seed = static_cast<std::uint64_t>(run);
            const PolicyOutcome outcome = m_bench.run("uniform:sign_sort@512t", layer);
            for (const HeadSelection& head : outcome.selection.heads) {
                QCOMPARE(head.kept.size(), std::size_t{512});
                QCOMPARE(head.numeratorWeights, std::vector<float>(512, 2.0F));
                for (const TokenIndex token : head.kept) {
                    first += token == 0;
                    leaders += token > 0 && token % 128 == 0;
                    early += token > 0 && token < 128;
                    late += token >= 960;
                }
            }
        }
        constexpr double draws = runs * 8;
        QVERIFY2(std::abs(early / draws / 127 - 0.56) < 0.02, qPrintable(QString::number(early / draws / 127)));
        QVERIFY2(std::abs(late / draws / 64 - 0.43) < 0.03, qPrintable(QString::number(late / draws / 64)));
        QVERIFY2(std::abs(first / draws - 0.58) < 5 * std::sqrt(0.25 / draws),
                 qPrintable(QString::number(first / draws)));
        QVERIFY2(leaders / draws / 7 < 0.01, qPrintable(QString::number(leaders / draws / 7)));
    }

    // A block would start again with the coins and the weights of the first one: the tokens that earlier blocks evicted
    // would count for nothing.
    void theSignSortIsRefusedInBlocks() {
        const TestLayer layer = TestLayer::random(3, {2, 2, 97, 8});
        for (const char* blocks : {"prompt_block=16", "decode_tokens=5"}) {
            const std::string rest = std::string(",") + blocks + "@32t";
            const QString refusal = errorText([&] { (void)m_bench.run("uniform:sign_sort" + rest, layer); });
            QVERIFY2(refusal.contains("sign sort") && refusal.contains("draw=fair"), qPrintable(refusal));
            QCOMPARE(errorText([&] { (void)m_bench.run("uniform" + rest, layer); }), QString());
        }
    }

    // Every drawn token stands for n_mid / k others; protected ones for themselves. Weights add up to what was seen.
    void reweightingCountsEveryTokenOnce() {
        const TestLayer layer = TestLayer::random(3, {2, 2, 97, 8});
        for (const char* options : {"", ",protect_first=5,protect_last=9", ",protect_first=5,prompt_block=16"}) {
            const std::string rest = std::string(options) + "@32t";
            const PolicyOutcome plain = m_bench.run("uniform" + rest, layer);
            const PolicyOutcome weighted = m_bench.run("uniform:reweighted" + rest, layer);
            QVERIFY(weighted.selection.sameLists(plain.selection));
            for (const HeadSelection& head : weighted.selection.heads) {
                double sum = 0;
                for (std::size_t i = 0; i < head.kept.size(); ++i) {
                    const bool guarded =
                        std::binary_search(head.protectedTokens.begin(), head.protectedTokens.end(), head.kept[i]);
                    QCOMPARE(head.numeratorWeights[i] == 1.0F, guarded);
                    sum += static_cast<double>(head.numeratorWeights[i]);
                }
                QVERIFY2(std::abs(sum - 97) < 1e-4, options);
                QVERIFY(head.denominatorWeights == head.numeratorWeights);
            }
        }
        QVERIFY(m_bench.run("uniform@32t", layer).selection.heads[0].numeratorWeights.empty());
    }

    void scoresLieBelowOne() {
        const PolicyOutcome outcome = m_bench.run("uniform@1", TestLayer::random(6, {2, 2, 5000, 1}));
        for (const float score : outcome.scores.total.data) QVERIFY(score >= 0 && score < 1);
    }

private:
    PolicyBench m_bench;
};

KVSCOPE_TEST(UniformTest)
#include "uniform_test.moc"
