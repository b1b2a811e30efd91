// StreamingLLM keeps [0, n_s) and the last N - n_s, whatever the tensors hold.
#include "tests/policies/policy_bench.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

class StreamingLlmTest : public QObject {
    Q_OBJECT

private slots:
    void keepsSinksAndRecentOnes_data() {
        QTest::addColumn<QString>("spec");
        QTest::addColumn<QString>("kept");
        QTest::newRow("paper") << "streaming_llm@10t"
                               << "0-3 91-96";
        QTest::newRow("no sinks") << "streaming_llm,sinks=0@10t"
                                  << "87-96";
        QTest::newRow("budget of the sinks") << "streaming_llm@4t"
                                             << "0-3";
        QTest::newRow("budget below the sinks keeps the first N") << "streaming_llm@3t"
                                                                  << "0-2";
        QTest::newRow("one more") << "streaming_llm@5t"
                                  << "0-3 96";
        QTest::newRow("everything") << "streaming_llm@1"
                                    << "0-96";
        QTest::newRow("more sinks than tokens") << "streaming_llm:minference@20t"
                                                << "0-19";
        QTest::newRow("kvpress rounds down") << "streaming_llm:kvpress@0.1"
                                             << "0-3 92-96";
        QTest::newRow("paper rounds up") << "streaming_llm@0.1"
                                         << "0-3 91-96";
    }

    void keepsSinksAndRecentOnes() {
        QFETCH(QString, spec);
        QFETCH(QString, kept);
        const PolicyOutcome outcome = m_bench.run(spec.toStdString(), TestLayer::random(1, {4, 2, 97, 8}));
        for (const HeadSelection& head : outcome.selection.heads)
            QCOMPARE(QString::fromStdString(listText(head.kept)), kept);
    }

    // Its sequential form is its one-shot form: a token that left the window never comes back.
    void blocksChangeNothing() {
        const TestLayer layer = TestLayer::random(2, {4, 2, 97, 8});
        const PolicyOutcome once = m_bench.run("streaming_llm@17t", layer);
        for (const char* options : {",prompt_block=7", ",prompt_block=16,prompt_alignment=kvpress", ",decode_tokens=33",
                                    ",prompt_block=5,decode_tokens=10,decode_block=4"})
            QVERIFY(once.selection.sameLists(
                m_bench.run("streaming_llm" + std::string(options) + "@17t", layer).selection));
    }

    void independentOfTheTensors() {
        const PolicyOutcome a = m_bench.run("streaming_llm@17t", TestLayer::random(3, {4, 2, 97, 8}));
        const PolicyOutcome b = m_bench.run("streaming_llm@17t", TestLayer::random(4, {4, 2, 97, 8}));
        QVERIFY(a.selection.sameLists(b.selection));
    }

    void sinksAreMarkedAndTheRestRanksByPosition() {
        const PolicyOutcome outcome = m_bench.run("streaming_llm@10t", TestLayer::random(5, {4, 2, 97, 8}));
        QCOMPARE(outcome.selection.heads[0].protectedTokens, (std::vector<TokenIndex>{0, 1, 2, 3}));
        QCOMPARE(outcome.selection.heads[0].margin, 1.0f); // positions 91 and 90
        const auto scores = outcome.scores.total.data;
        for (std::size_t i = 0; i < 97; ++i) QCOMPARE(scores[i], static_cast<float>(i));
    }

    void agreesWithTheOracle() {
        for (int budget = 1; budget <= 61; budget += 3) {
            const TestLayer layer = TestLayer::random(6, {2, 2, 61, 4});
            for (const char* options : {"", ":minference", ",sinks=9,prompt_block=8"}) {
                const std::string spec = "streaming_llm" + std::string(options) + "@" + std::to_string(budget) + "t";
                QCOMPARE(difference(m_bench.run(spec, layer), runNaive(spec, layer.plain)), std::string());
            }
        }
    }

private:
    PolicyBench m_bench;
};

KVSCOPE_TEST(StreamingLlmTest)
#include "streaming_llm_test.moc"
