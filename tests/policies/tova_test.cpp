// TOVA against its formula: one query, all heads or one group, and decoding one token at a time.
#include "core/base/error.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <numeric>

using namespace kvscope;

class TovaTest : public QObject {
    Q_OBJECT

private slots:
    void agreesWithTheOracle_data() {
        QTest::addColumn<QString>("options");
        QTest::newRow("original") << "";
        QTest::newRow("kvpress") << ":kvpress";
        QTest::newRow("keydiff") << ":keydiff";
        QTest::newRow("decoding") << ",decode_tokens=40";
        QTest::newRow("decoding per KV head") << ":keydiff,decode_tokens=40,decode_block=3";
    }

    void agreesWithTheOracle() {
        QFETCH(QString, options);
        std::uint64_t seed = 60;
        for (const LayerShape& shape : {LayerShape{6, 2, 97, 8}, LayerShape{3, 3, 81, 5}, LayerShape{4, 1, 75, 6}}) {
            for (const char* budget : {"@1t", "@33t", "@0.6"}) {
                TestLayer layer = TestLayer::random(seed++, shape);
                layer.plain.slidingWindow = seed % 3 == 0 ? 41 : 0;
                const std::string spec = "tova" + options.toStdString() + budget;
                const std::string wrong = difference(m_bench.run(spec, layer), runNaive(spec, layer.plain));
                QVERIFY2(wrong.empty(), (spec + ", seed " + std::to_string(seed - 1) + ": " + wrong).c_str());
            }
        }
    }

    void scoresOfAHeadAddUpToOne() {
        const TestLayer layer = TestLayer::random(3, {6, 2, 97, 8});
        for (const char* spec : {"tova@20t", "tova:keydiff@20t"}) {
            const auto scores = m_bench.run(spec, layer).scores.total.data;
            for (std::size_t h = 0; h < 2; ++h)
                QVERIFY(std::abs(std::accumulate(scores.begin() + h * 97, scores.begin() + (h + 1) * 97, 0.0) - 1) <
                        1e-5);
        }
    }

    // L2: the original and kvpress choose once for all KV heads of the layer.
    void headsShareIndicesPerLayer() {
        const TestLayer layer = TestLayer::random(4, {6, 2, 97, 8});
        for (const char* spec :
             {"tova@20t", "tova:kvpress@20t", "tova,prompt_block=16@20t", "tova,decode_tokens=30@20t"}) {
            const PolicyOutcome outcome = m_bench.run(spec, layer);
            QCOMPARE(outcome.selection.heads[0].kept, outcome.selection.heads[1].kept);
        }
        const PolicyOutcome own = m_bench.run("tova:keydiff@20t", layer);
        QVERIFY(own.selection.heads[0].kept != own.selection.heads[1].kept);
    }

    // The last token turns away from its own query, so that only kvpress keeps it.
    void lastTokenIsForcedInByKvpressOnly() {
        TestLayer layer = TestLayer::random(5, {2, 1, 97, 8});
        for (std::size_t c = 0; c < 8; ++c)
            layer.plain.keys[0].back()[c] = -4 * (layer.plain.queries[0].back()[c] + layer.plain.queries[1].back()[c]);
        layer.refresh();
        QVERIFY(m_bench.run("tova@10t", layer).selection.heads[0].kept.back() != 96);
        const HeadSelection forced = m_bench.run("tova:kvpress@10t", layer).selection.heads[0];
        QCOMPARE(forced.kept.back(), 96);
        QCOMPARE(forced.protectedTokens, std::vector<TokenIndex>{96});
    }

    void onlyTheLastQueryCounts() {
        TestLayer layer = TestLayer::random(6, {4, 2, 97, 8});
        const PolicyOutcome before = m_bench.run("tova@20t", layer);
        for (auto& head : layer.plain.queries)
            for (std::size_t r = 0; r + 1 < head.size(); ++r) head[r].assign(8, 3.0);
        layer.refresh();
        QVERIFY(before.selection.sameLists(m_bench.run("tova@20t", layer).selection));
        layer.plain.queries[0].back().assign(8, 3.0);
        layer.refresh();
        QVERIFY(!before.selection.sameLists(m_bench.run("tova@20t", layer).selection));
    }

    // History matters: what an earlier query dropped is gone, so decoding is not the one-shot choice.
    void decodingDropsOneTokenAtATime() {
        const TestLayer layer = TestLayer::random(8, {4, 2, 97, 8});
        const PolicyOutcome outcome = m_bench.run("tova,decode_tokens=40@20t", layer);
        QCOMPARE(outcome.steps.size(), std::size_t{41}); // the prompt of 57, then 40 tokens
        QCOMPARE(outcome.steps[0].end, 57);
        for (std::size_t i = 1; i < outcome.steps.size(); ++i) {
            QCOMPARE(outcome.steps[i].cached, std::int64_t{21});
            QCOMPARE(outcome.steps[i].evicted[0].size(), std::size_t{1});
        }
        QVERIFY(!outcome.selection.sameLists(m_bench.run("tova@20t", layer).selection));
    }

    void noQueryIsAnErrorWithARemedy() {
        TestLayer layer = TestLayer::random(9, {4, 2, 97, 8});
        layer.queries = {};
        const Error::Parts refused = errorParts([&] { m_bench.run("tova@30t", layer); });
        QVERIFY(refused.sentence.starts_with("TOVA needs queries before token 97, and none was captured"));
        QVERIFY(!refused.remedy.empty());
    }

private:
    PolicyBench m_bench;
};

KVSCOPE_TEST(TovaTest)
#include "tova_test.moc"
