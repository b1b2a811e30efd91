// PyramidKV: numbers worked out by hand, where each schedule gives up, and that a layer is SnapKV at its budget.
#include "core/base/error.h"
#include "core/policies/baselines/pyramid_budgets.h"
#include "core/policies/policy_spec.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace kvscope;
using Schedule = PyramidShape::Schedule;

namespace {

double meanOf(const PyramidBudgets& budgets) {
    return std::accumulate(budgets.tokens.begin(), budgets.tokens.end(), 0.0) /
           static_cast<double>(budgets.tokens.size());
}

} // namespace

class PyramidKvTest : public QObject {
    Q_OBJECT

private slots:
    // n = 8192, capacity 2048, W = 32, L = 32: 3964 first, 151 last, mean 2057.5 by flooring.
    void integerScheduleOfTheAuthors() {
        const PyramidBudgets budgets = pyramidBudgets({Schedule::Integer, 32, 8192, 2048, 32, 20, false});
        QVERIFY(!budgets.uniform);
        QCOMPARE(budgets.tokens.front(), 3964);
        QCOMPARE(budgets.tokens.back(), 151);
        QCOMPARE(meanOf(budgets), 2057.5);
        const PyramidBudgets overLayers = pyramidBudgets({Schedule::Integer, 32, 8192, 2048, 32, 20, true}); // L5
        QCOMPARE(overLayers.tokens.front(), 3964);
        QCOMPARE(overLayers.tokens.back(), 3964 - 31 * 119);
    }

    void realScheduleOfKvpress() {
        const PyramidBudgets budgets = pyramidBudgets({Schedule::Real, 32, 8192, 2048, 64, 20, false});
        QCOMPARE(budgets.tokens.front(), 3994);
        QCOMPARE(budgets.tokens.back(), 102);
        QCOMPARE(meanOf(budgets), 2048.0);
    }

    // kvpress puts the line through n (1 - ratio) itself and rounds once, per layer: b = 1399.3 of 1,999 tokens.
    void fractionsAreRoundedOnce() {
        TestLayer layer = TestLayer::random(11, {2, 1, 1999, 4});
        const std::vector<std::size_t> expected = {1935, 1782, 1629, 1476,
                                                   1323, 1170, 1017, 864}; // 1935 - l 1071.4 / 7
        for (const int own : {0, 3, 5, 6, 7}) {
            layer.plain.layer = own;
            layer.refresh();
            const PolicyOutcome outcome = m_bench.run("pyramidkv:kvpress@0.7", layer);
            QCOMPARE(outcome.selection.heads[0].kept.size(), expected[static_cast<std::size_t>(own)]);
            QCOMPARE(outcome.notes.back(), "PyramidKV keeps " +
                                               std::to_string(expected[static_cast<std::size_t>(own)]) +
                                               " tokens in layer " + std::to_string(own) + " of 8");
        }
    }

    // L5: 1280 kept tokens are needed with W = 64 and beta = 20.
    void kvpressFallsBackToUniform() {
        QVERIFY(pyramidBudgets({Schedule::Real, 32, 4096, 1024, 64, 20, false}).uniform);
        QVERIFY(pyramidBudgets({Schedule::Real, 32, 8192, 1279, 64, 20, false}).uniform);
        QVERIFY(!pyramidBudgets({Schedule::Real, 32, 8192, 1280, 64, 20, false}).uniform);
    }

    void authorsFallBackToUniform() {
        QVERIFY(pyramidBudgets({Schedule::Integer, 8, 100, 59, 8, 20, false}).uniform); // n < 2b = 102
        QVERIFY(!pyramidBudgets({Schedule::Integer, 8, 100, 58, 8, 20, false}).uniform);
        QVERIFY(pyramidBudgets({Schedule::Integer, 1, 100, 20, 8, 20, false}).uniform);
        QVERIFY(pyramidBudgets({Schedule::Integer, 8, 100, 8, 8, 20, false}).uniform);
    }

    void budgetsNeverGrowAndFit_data() {
        QTest::addColumn<bool>("real");
        QTest::newRow("integer") << false;
        QTest::newRow("real") << true;
    }

    void budgetsNeverGrowAndFit() {
        QFETCH(bool, real);
        for (const int layers : {1, 2, 7, 32})
            for (const std::int64_t n : {1, 2, 9, 97, 1000, 8192})
                for (std::int64_t capacity = 1; capacity <= n; capacity += 1 + n / 37)
                    for (const double beta : {1.0, 2.5, 20.0}) {
                        const auto budgets = pyramidBudgets({real ? Schedule::Real : Schedule::Integer, layers, n,
                                                             static_cast<double>(capacity), 8, beta, false});
                        QCOMPARE(budgets.tokens.size(), static_cast<std::size_t>(layers));
                        QVERIFY(std::is_sorted(budgets.tokens.rbegin(), budgets.tokens.rend()));
                        QVERIFY(budgets.tokens.front() <= n && budgets.tokens.back() >= 1);
                        if (real) // halves of the last rounding
                            QVERIFY(std::abs(meanOf(budgets) - static_cast<double>(capacity)) <= 0.5);
                        else // the floored slope leaves up to one token per layer below the first
                            QVERIFY(meanOf(budgets) >= capacity && meanOf(budgets) < capacity + layers / 2.0 + 1);
                    }
    }

    void betaOneIsFlat() {
        for (const Schedule schedule : {Schedule::Integer, Schedule::Real})
            for (const std::int64_t tokens : pyramidBudgets({schedule, 32, 8192, 2048, 32, 1, false}).tokens)
                QCOMPARE(tokens, 2048);
    }

    // The test layer is layer 3 of 8.
    void aLayerIsSnapKvAtItsBudget() {
        const TestLayer layer = TestLayer::random(9, {4, 2, 97, 8});
        const std::int64_t own = pyramidBudgets({Schedule::Integer, 8, 97, 30, 8, 20, false}).tokens[3];
        QVERIFY(own != 30);
        const PolicyOutcome pyramid = m_bench.run("pyramidkv@30t", layer);
        const PolicyOutcome snap =
            m_bench.run("snapkv:kvcache_factory,copies=kv_head@" + std::to_string(own) + "t", layer);
        QVERIFY(pyramid.selection.sameLists(snap.selection));
        QCOMPARE(pyramid.requested, 30);
        QCOMPARE(pyramid.notes.back(), "PyramidKV keeps " + std::to_string(own) + " tokens in layer 3 of 8");
    }

    // Scores, budgets and choice together against plain loops, in every layer of the model.
    void agreesWithTheOracle() {
        for (int own = 0; own < 8; ++own) {
            TestLayer layer = TestLayer::random(60 + std::uint64_t(own), {6, 2, 97, 8});
            layer.plain.layer = own;
            for (const char* variant : {"", ":original_layers", ":kvpress", ":kvpress,window=4,beta=3",
                                        ",window=3,beta=1", ",window=20,beta=7.5,group_rule=max",
                                        ",protect_first=3,protect_last=11", ",window=4,copies=query_head"})
                for (const char* budget : {"@1t", "@0.1", "@30t", "@0.45", "@0.8", "@1"}) {
                    const std::string spec = std::string("pyramidkv") + variant + budget;
                    const std::string wrong = difference(m_bench.run(spec, layer), runNaive(spec, layer.plain));
                    QVERIFY2(wrong.empty(), (spec + ", layer " + std::to_string(own) + ": " + wrong).c_str());
                }
        }
    }

    void degenerateSizes() {
        for (const int n : {1, 5, 8, 9}) {
            const TestLayer layer = TestLayer::random(10, {4, 2, n, 8});
            for (const char* variant : {"original", "original_layers", "kvpress"}) {
                const std::string spec = "pyramidkv:" + std::string(variant);
                QCOMPARE(m_bench.run(spec + "@1t", layer).selection.heads[0].kept, std::vector<TokenIndex>{n - 1});
                QCOMPARE(m_bench.run(spec + "@1", layer).selection.heads[1].kept.size(), static_cast<std::size_t>(n));
            }
        }
    }

    void blocksAreRefused() { QVERIFY_THROWS_EXCEPTION(Error, PolicySpec::parse("pyramidkv,prompt_block=8")); }

private:
    PolicyBench m_bench;
};

KVSCOPE_TEST(PyramidKvTest)
#include "pyramidkv_test.moc"
