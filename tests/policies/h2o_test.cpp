// H2O against its formula: sums over all later queries, carried from block to block, masked or as the published copy.
#include "tests/policies/policy_bench.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <numeric>

using namespace kvscope;

namespace {

// One KV head whose logits are all equal.
TestLayer equalLogits(int tokens) {
    return TestLayer::ofKeys(
        std::vector<naive_policies::Vector>(static_cast<std::size_t>(tokens), naive_policies::Vector(4, 0.0)));
}

} // namespace

class H2oTest : public QObject {
    Q_OBJECT

private slots:
    void agreesWithTheOracle_data() {
        QTest::addColumn<QString>("options");
        for (const char* options :
             {"", ":keydiff", ":kvpress", ":kvcache_factory", ",group_rule=max", ",accumulate=mean,recent_share=0.2",
              ":keydiff,prompt_block=16", ",prompt_block=7,decode_tokens=11", ":kvpress,prompt_block=13",
              ":keydiff,accumulate=mean,decode_tokens=30,decode_block=4", ":kvcache_factory,prompt_block=17",
              ",protect_first=2,protect_last=9"})
            QTest::newRow(options) << options;
    }

    void agreesWithTheOracle() {
        QFETCH(QString, options);
        std::uint64_t seed = 160;
        for (const LayerShape& shape : {LayerShape{6, 2, 67, 8}, LayerShape{3, 3, 41, 5}, LayerShape{2, 1, 1, 4}}) {
            for (const char* budget : {"@1t", "@0.31", "@1"}) {
                if (shape.tokens == 1 && options.contains("decode_tokens")) continue; // refused: no prompt is left
                TestLayer layer = TestLayer::random(seed++, shape);
                layer.plain.slidingWindow = seed % 3 == 0 && !options.contains("kvcache") ? 19 : 0;
                const std::string spec = "h2o" + options.toStdString() + budget;
                const std::string wrong = difference(m_bench.run(spec, layer), runNaive(spec, layer.plain));
                QVERIFY2(wrong.empty(), (spec + ", seed " + std::to_string(seed - 1) + ": " + wrong).c_str());
            }
        }
    }

    // Invariants of 6.2: the scores of a query head add up to n, and token 0 receives at least the attention of query
    // 0.
    void scoresAddUpToTheQueries() {
        const TestLayer layer = TestLayer::random(5, {4, 2, 97, 8});
        for (const char* spec : {"h2o@20t", "h2o:kvcache_factory@20t"}) {
            const auto scores = scoresOf(spec, layer);
            for (std::size_t h = 0; h < 2; ++h)
                QVERIFY(std::abs(std::accumulate(scores.begin() + h * 97, scores.begin() + (h + 1) * 97, 0.0) - 97) <
                        1e-3);
        }
        QVERIFY(scoresOf("h2o@20t", layer)[0] >= 1 && scoresOf("h2o@20t", layer)[97] >= 1);
    }

    void uniformAttentionGivesHarmonicNumbers() {
        QCOMPARE(scoresOf("h2o@1t", equalLogits(2)), (std::vector<float>{1.5F, 0.5F}));
        double harmonic = 0;
        for (int i = 1; i <= 30; ++i) harmonic += 1.0 / i;
        QVERIFY(std::abs(scoresOf("h2o@1t", equalLogits(30))[0] - harmonic) < 1e-5);
    }

    // L1: the sum prefers the old token; unmasked, equal logits prefer none but for the masked window.
    void agesAreTreatedAsNamed() {
        const auto sum = scoresOf("h2o@1t", equalLogits(30)),
                   copy = scoresOf("h2o:kvcache_factory@1t", equalLogits(30));
        QVERIFY(sum[0] > 2 * sum[10]);
        QVERIFY(std::abs(copy[0] - copy[21]) < 1e-6 && copy[21] > copy[29]);
        const auto mean = scoresOf("h2o:kvpress@0.5", equalLogits(30));
        QVERIFY(std::abs(mean[29] - 1 / 30.0) < 1e-6); // one query sees the last token
    }

    void halfOfTheBudgetIsRecent() {
        const TestLayer layer = TestLayer::random(6, {4, 2, 97, 8});
        const HeadSelection half = m_bench.run("h2o@21t", layer).selection.heads[0];
        QCOMPARE(half.protectedTokens.size(), std::size_t{10});
        QCOMPARE(half.protectedTokens.front(), 87);
        QVERIFY(m_bench.run("h2o:keydiff@21t", layer).selection.heads[0].protectedTokens.empty());
        QCOMPARE(m_bench.run("h2o:kvcache_factory@21t", layer).selection.heads[0].protectedTokens.front(), 89);
    }

    void fewCapturedQueriesAreStated() {
        const TestLayer layer = TestLayer::random(7, {4, 2, 97, 8, 18});
        const PolicyOutcome outcome = m_bench.run("h2o@50t", layer);
        QCOMPARE(difference(outcome, runNaive("h2o@50t", layer.plain)), std::string());
        QCOMPARE(outcome.notes, std::vector<std::string>{"H2O accumulated 18 of the 97 queries before token 97: the "
                                                         "capture holds no others"});
    }

    void threadsChangeNothing() {
        const TestLayer layer = TestLayer::random(8, {4, 2, 97, 8});
        const auto one = scoresOf("h2o@20t", layer);
        for (const int threads : {2, 7}) {
            const PolicyBench bench(threads);
            QCOMPARE(bench.run("h2o@20t", layer).scores.total.data, one);
        }
    }

private:
    std::vector<float> scoresOf(const std::string& spec, const TestLayer& layer) const {
        return m_bench.run(spec, layer).scores.total.data;
    }

    PolicyBench m_bench{1};
};

KVSCOPE_TEST(H2oTest)
#include "h2o_test.moc"
