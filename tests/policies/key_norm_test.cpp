// Key norm keeps the smallest norms: sign, ties, and that rotations (RoPE is one) change nothing.
#include "core/base/error.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;

class KeyNormTest : public QObject {
    Q_OBJECT

private slots:
    void keepsTheSmallest() {
        const TestLayer layer = TestLayer::ofKeys({{3, 4}, {0, 1}, {6, 8}, {0, 2}, {1, 0}});
        const PolicyOutcome outcome = m_bench.run("key_norm@2t", layer);
        QCOMPARE(outcome.scores.total.data, (std::vector<float>{-5, -1, -10, -2, -1}));
        QCOMPARE(outcome.scores.parts.at("norm").data, (std::vector<float>{5, 1, 10, 2, 1}));
        QCOMPARE(outcome.selection.heads[0].kept, (std::vector<TokenIndex>{1, 4}));
        QCOMPARE(outcome.selection.heads[0].margin, 1.0f);
    }

    void equalNormsGoToTheEarlierToken() {
        const TestLayer layer = TestLayer::ofKeys({{3, 4}, {5, 0}, {0, 5}, {4, 3}, {0, -5}});
        for (int budget = 1; budget <= 5; ++budget) {
            const HeadSelection head =
                m_bench.run("key_norm@" + std::to_string(budget) + "t", layer).selection.heads[0];
            for (int i = 0; i < budget; ++i) QCOMPARE(head.kept[static_cast<std::size_t>(i)], i);
            QCOMPARE(head.margin, budget < 5 ? 0.0f : std::numeric_limits<float>::infinity());
        }
    }

    void agreesWithTheOracle() {
        std::uint64_t seed = 80;
        for (const char* options : {"", ":kvpress", ",protect_first=3,protect_last=5", ",rounding=round",
                                    ",prompt_block=16", ",prompt_block=13,prompt_alignment=kvpress,decode_tokens=9"}) {
            for (const char* budget : {"@1t", "@0.31", "@50t", "@1"}) {
                const TestLayer layer = TestLayer::random(seed++, {6, 3, 97, 7});
                const std::string spec = "key_norm" + std::string(options) + budget;
                const std::string wrong = difference(m_bench.run(spec, layer), runNaive(spec, layer.plain));
                QVERIFY2(wrong.empty(), (spec + ", seed " + std::to_string(seed - 1) + ": " + wrong).c_str());
            }
        }
    }

    // A different rotation of each key, as RoPE is, leaves the lists as they are.
    void rotationsChangeNothing() {
        TestLayer layer = TestLayer::random(5, {2, 2, 97, 8});
        const PolicyOutcome before = m_bench.run("key_norm@30t", layer);
        for (auto& head : layer.plain.keys)
            for (std::size_t i = 0; i < head.size(); ++i)
                for (std::size_t c = 0; c < 4; ++c) {
                    const double angle = double(i) / std::pow(100, double(c) / 4);
                    const double x = head[i][c], y = head[i][c + 4];
                    head[i][c] = std::cos(angle) * x - std::sin(angle) * y;
                    head[i][c + 4] = std::sin(angle) * x + std::cos(angle) * y;
                }
        layer.refresh();
        QVERIFY(before.selection.sameLists(m_bench.run("key_norm@30t", layer).selection));
    }

    // The order does not depend on the cache, so cutting back block by block ends where one cut ends.
    void blocksChangeNothing() {
        const TestLayer layer = TestLayer::random(6, {2, 2, 97, 8});
        const PolicyOutcome once = m_bench.run("key_norm@30t", layer);
        for (const char* options :
             {",prompt_block=7", ",prompt_block=16,prompt_alignment=kvpress", ",decode_tokens=33"})
            QVERIFY(once.selection.sameLists(m_bench.run("key_norm" + std::string(options) + "@30t", layer).selection));
    }

    void layersAndLengthsThatAreLeftAlone() {
        TestLayer layer = TestLayer::random(9, {2, 2, 97, 8});
        layer.plain.layer = 0;
        TestLayer third = layer;
        third.plain.layer = 2;
        const auto keptIn = [&](const std::string& spec, const TestLayer& in) {
            return m_bench.run(spec, in).selection.heads[1].kept.size();
        };
        QCOMPARE(keptIn("key_norm:two_layers@30t", layer), std::size_t{97});
        QCOMPARE(keptIn("key_norm:two_layers@30t", third), std::size_t{30});
        QCOMPARE(keptIn("key_norm,only_above=97@30t", third), std::size_t{97});
        QCOMPARE(keptIn("key_norm,only_above=96@30t", third), std::size_t{30});
        QCOMPARE(keptIn("key_norm:above_2048@30t", third), std::size_t{97});
        const auto noted = [&](const std::string& spec, const TestLayer& in) { return m_bench.run(spec, in).notes; };
        QCOMPARE(noted("key_norm:two_layers@30t", layer),
                 std::vector<std::string>{"layer 0 keeps everything (skip_layers=2)"});
        QCOMPARE(noted("key_norm,only_above=97@30t", third),
                 std::vector<std::string>{"97 tokens are all kept (only_above=97)"});
        QVERIFY(noted("key_norm:two_layers@30t", third).empty() && noted("key_norm,only_above=96@30t", third).empty());
        QVERIFY(errorText([&] {
                    m_bench.run("key_norm,skip_layers=1,prompt_block=16@30t", third);
                }).contains("skip_layers"));
    }

private:
    PolicyBench m_bench;
};

KVSCOPE_TEST(KeyNormTest)
#include "key_norm_test.moc"
