// Block prompt processing: where blocks are cut (K3), what each step evicts, causality, state, and what is refused.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/policies/block_processing.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/policy_spec.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <stop_token>

using namespace kvscope;

namespace {

std::vector<std::pair<int, int>> endsAndCaches(const PolicyOutcome& outcome) {
    std::vector<std::pair<int, int>> result;
    for (const BlockStep& step : outcome.steps) result.emplace_back(step.end, static_cast<int>(step.cached));
    return result;
}

// Sums the norms of the keys over all blocks that a token has been in the cache: the simplest state there is.
class Accumulating : public Policy {
public:
    explicit Accumulating(bool perQueryHead) : Policy(statefulCard()), m_perQueryHead(perQueryHead) {}

    Features features(const PolicyInput& input, const ParameterValues&) const override {
        HostTensor sums = input.engine.rowNorms(input.keys, input.checkpoint);
        if (m_perQueryHead) sums = repeated(sums, input.attention.gqaGroupOf);
        if (!input.carried.empty()) {
            const HostTensor& before = input.carried.at("sum");
            for (std::size_t i = 0; i < sums.data.size(); ++i) sums.data[i] += before.data[i];
        }
        return {{"sum", std::move(sums)}};
    }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues&) const override {
        const HostTensor& sum = features.at("sum");
        return {m_perQueryHead ? reduceGroups(sum, input.attention.gqaGroupOf, input.keys.size(0), GroupRule::Mean)
                               : sum,
                {}};
    }

    Features carry(const PolicyInput&, const Features& features, const ParameterValues&) const override {
        return features;
    }

private:
    static PolicyCard statefulCard() {
        PolicyCard card = policyById("key_norm").card();
        card.carriesState = true;
        return card;
    }

    static HostTensor repeated(const HostTensor& perKvHead, const std::vector<std::int32_t>& gqaGroupOf) {
        HostTensor result{{static_cast<std::int64_t>(gqaGroupOf.size()), perKvHead.shape[1]}, {}};
        for (const std::int32_t kv : gqaGroupOf) {
            const auto head = perKvHead.data.begin() + kv * perKvHead.shape[1];
            result.data.insert(result.data.end(), head, head + perKvHead.shape[1]);
        }
        return result;
    }

    bool m_perQueryHead;
};

} // namespace

class BlockProcessingTest : public QObject {
    Q_OBJECT

private slots:
    // K3: N = 100, B = 128, n = 400.
    void bothAlignments() {
        const TestLayer layer = TestLayer::random(1, {1, 1, 400, 4});
        QCOMPARE(endsAndCaches(m_bench.run("keydiff,prompt_block=128@100t", layer)),
                 (std::vector<std::pair<int, int>>{{128, 128}, {256, 228}, {384, 228}, {400, 116}}));
        QCOMPARE(endsAndCaches(m_bench.run("keydiff,prompt_block=128,prompt_alignment=kvpress@100t", layer)),
                 (std::vector<std::pair<int, int>>{{228, 228}, {356, 228}, {400, 144}}));
    }

    void alignmentsAgreeWhenTheBlockDividesTheBudget() {
        const TestLayer layer = TestLayer::random(2, {2, 2, 201, 6});
        for (const char* spec : {"keydiff,prompt_block=16", "keydiff:pairwise,prompt_block=32"}) {
            const PolicyOutcome paper = m_bench.run(std::string(spec) + "@64t", layer);
            const PolicyOutcome kvpress = m_bench.run(std::string(spec) + ",prompt_alignment=kvpress@64t", layer);
            QVERIFY(paper.selection.sameLists(kvpress.selection));
            QCOMPARE(endsAndCaches(paper), endsAndCaches(kvpress));
        }
    }

    // Invariant (e): a block of the whole prompt is one shot.
    void oneBlockIsOneShot() {
        const TestLayer layer = TestLayer::random(3, {4, 2, 97, 6});
        for (const char* policy :
             {"keydiff", "keydiff:sliding_window", "snapkv", "tova:kvpress", "key_norm", "uniform"}) {
            const PolicyOutcome once = m_bench.run(std::string(policy) + "@40t", layer);
            for (const char* block : {",prompt_block=97", ",prompt_block=5000"}) {
                const PolicyOutcome blocks = m_bench.run(policy + std::string(block) + "@40t", layer);
                QVERIFY2(once.selection.sameLists(blocks.selection), policy);
                QVERIFY(!once.simulated && blocks.simulated);
                QCOMPARE(once.selection.heads[0].margin, blocks.selection.heads[0].margin);
                QCOMPARE(once.selection.heads[0].protectedTokens, blocks.selection.heads[0].protectedTokens);
            }
        }
    }

    void agreesWithTheOracle_data() {
        QTest::addColumn<QString>("options");
        QTest::newRow("divides") << "prompt_block=16";
        QTest::newRow("does not divide") << "prompt_block=23";
        QTest::newRow("one by one") << "prompt_block=1";
        QTest::newRow("larger than the prompt") << "prompt_block=500";
        QTest::newRow("kvpress alignment") << "prompt_block=23,prompt_alignment=kvpress";
        QTest::newRow("decoding") << "decode_tokens=30";
        QTest::newRow("both") << "prompt_block=23,decode_tokens=30,decode_block=4";
        QTest::newRow("both, kvpress") << "prompt_block=23,prompt_alignment=kvpress,decode_tokens=30,decode_block=7";
        QTest::newRow("protected") << "prompt_block=19,protect_first=3,protect_last=5";
    }

    void agreesWithTheOracle() {
        QFETCH(QString, options);
        std::uint64_t seed = 100;
        for (const char* policy : {"keydiff", "keydiff:kvpress", "keydiff:pairwise", "keydiff:sliding_window",
                                   "snapkv:kvcache_factory,copies=kv_head", "snapkv,window=5,group_rule=max", "tova",
                                   "tova:kvpress", "tova:keydiff"}) {
            for (const char* budget : {"@9t", "@40t", "@90t"}) {
                const TestLayer layer = TestLayer::random(seed++, {6, 2, 97, 6});
                const std::string spec = std::string(policy) + "," + options.toStdString() + budget;
                const PolicyOutcome outcome = m_bench.run(spec, layer);
                const naive_policies::Result expected = runNaive(spec, layer.plain);
                const std::string wrong = difference(outcome, expected);
                QVERIFY2(wrong.empty(), (spec + ", seed " + std::to_string(seed - 1) + ": " + wrong).c_str());
                QVERIFY2(sameSteps(outcome, expected), spec.c_str());
            }
        }
    }

    // K10: the anchor drifts towards the distinctive, so that blocks are not one shot.
    void blocksAreNotOneShot() {
        const TestLayer layer = TestLayer::random(5, {2, 2, 300, 8});
        QVERIFY(!m_bench.run("keydiff@40t", layer)
                     .selection.sameLists(m_bench.run("keydiff,prompt_block=16@40t", layer).selection));
    }

    void everyTokenIsKeptOrEvictedOnce() {
        const TestLayer layer = TestLayer::random(6, {2, 2, 211, 8});
        const PolicyOutcome outcome = m_bench.run("keydiff,prompt_block=17,decode_tokens=40@31t", layer);
        for (std::size_t h = 0; h < 2; ++h) {
            std::vector<TokenIndex> all = outcome.selection.heads[h].kept;
            QCOMPARE(all.size(), std::size_t{31});
            for (const BlockStep& step : outcome.steps) {
                QVERIFY(std::is_sorted(step.evicted[h].begin(), step.evicted[h].end()));
                QVERIFY(std::all_of(step.evicted[h].begin(), step.evicted[h].end(),
                                    [&](TokenIndex token) { return token < step.end; }));
                QCOMPARE(static_cast<std::int64_t>(step.evicted[h].size()), step.cached - 31);
                all.insert(all.end(), step.evicted[h].begin(), step.evicted[h].end());
            }
            std::sort(all.begin(), all.end());
            QCOMPARE(listText(all), std::string("0-210"));
        }
    }

    void marginIsTheSmallestOfAllSteps() {
        const TestLayer layer = TestLayer::random(7, {2, 2, 211, 8});
        const PolicyOutcome outcome = m_bench.run("keydiff,prompt_block=17@31t", layer);
        float smallest = std::numeric_limits<float>::infinity();
        for (const BlockStep& step : outcome.steps) smallest = std::min(smallest, step.margin);
        QCOMPARE(std::min(outcome.selection.heads[0].margin, outcome.selection.heads[1].margin), smallest);
    }

    // Changing what comes later changes no earlier step.
    void stepsSeeNoFuture() {
        TestLayer layer = TestLayer::random(8, {4, 2, 120, 8});
        for (const char* spec :
             {"keydiff,prompt_block=20@30t", "snapkv:kvcache_factory,copies=kv_head,prompt_block=20@30t",
              "tova,prompt_block=20@30t"}) {
            const PolicyOutcome before = m_bench.run(spec, layer);
            TestLayer later = layer;
            for (std::size_t i = 80; i < 120; ++i) {
                later.plain.keys[0][i].assign(8, 2.0);
                later.plain.queries[1][i].assign(8, -1.0);
            }
            later.refresh();
            const PolicyOutcome after = m_bench.run(spec, later);
            for (std::size_t i = 0; i < before.steps.size() && before.steps[i].end <= 80; ++i)
                QCOMPARE(after.steps[i].evicted, before.steps[i].evicted);
            QVERIFY(before.steps.back().evicted != after.steps.back().evicted);
        }
    }

    void scoresBelongToTheRowsOfTheLastBlock() {
        const TestLayer layer = TestLayer::random(9, {2, 2, 97, 8});
        const PolicyOutcome outcome = m_bench.run("keydiff,prompt_block=16@30t", layer);
        const naive_policies::Result expected = runNaive("keydiff,prompt_block=16@30t", layer.plain);
        QCOMPARE(outcome.scores.total.shape[1], std::int64_t{31}); // 97 = 6 * 16 + 1
        const auto scores = outcome.scores.total.data;
        for (std::size_t h = 0; h < 2; ++h)
            for (std::size_t r = 0; r < 31; ++r) {
                QCOMPARE(outcome.positions[h][r], expected.rows[h][r]);
                QVERIFY(std::abs(scores[h * 31 + r] - expected.scores[h][r]) < 1e-6);
            }
    }

    void aBudgetThatHoldsEverythingEvictsNothing() {
        const PolicyOutcome outcome = m_bench.run("keydiff,prompt_block=16@1", TestLayer::random(10, {2, 2, 97, 8}));
        QVERIFY(outcome.steps.empty() && outcome.simulated);
        QCOMPARE(listText(outcome.selection.heads[0].kept), std::string("0-96"));
        QCOMPARE(outcome.scores.total.shape[1], std::int64_t{97});
    }

    // Accumulated state follows its rows through evictions.
    void stateIsCarried() {
        const TestLayer layer = TestLayer::ofKeys({{1}, {8}, {2}, {7}, {3}, {1}, {30}, {1}});
        const ParameterValues values = PolicySpec::parse("key_norm,prompt_block=2").values;
        const PolicyOutcome outcome = m_bench.run(Accumulating(false), values, Budget::parse("3t"), layer);
        // Sums after 2 tokens: 1 8. After 4: 2 16 2 7, a tie that the earlier token wins. After 6: 3 24 14 3 1.
        QCOMPARE(outcome.steps.size(), std::size_t{3});
        QCOMPARE(outcome.steps[0].evicted[0], std::vector<TokenIndex>{2});
        QCOMPARE(outcome.steps[1].evicted[0], (std::vector<TokenIndex>{4, 5}));
        QCOMPARE(outcome.steps[2].evicted[0], (std::vector<TokenIndex>{0, 7}));
        QCOMPARE(outcome.scores.total.data, (std::vector<float>{4, 32, 21, 30, 1}));
    }

    // State per query head follows the rows of the KV head that it reads.
    void stateIsCarriedPerQueryHead() {
        const TestLayer layer = TestLayer::random(13, {6, 2, 97, 3});
        const ParameterValues values = PolicySpec::parse("key_norm,prompt_block=9").values;
        const PolicyOutcome perKvHead = m_bench.run(Accumulating(false), values, Budget::parse("20t"), layer);
        const PolicyOutcome perQueryHead = m_bench.run(Accumulating(true), values, Budget::parse("20t"), layer);
        QVERIFY(perKvHead.selection.heads[0].kept != perKvHead.selection.heads[1].kept);
        QVERIFY(perKvHead.selection.sameLists(perQueryHead.selection));
        const auto expected = perKvHead.scores.total.data;
        const auto actual = perQueryHead.scores.total.data;
        for (std::size_t i = 0; i < expected.size(); ++i)
            QVERIFY(std::abs(actual[i] - expected[i]) <= 1e-5f * expected[i]);
    }

    // Rows of a table [2, m] could be those of query heads or of KV heads.
    void stateOfPermutedHeadsIsRefused() {
        TestLayer layer = TestLayer::random(13, {2, 2, 97, 3});
        const ParameterValues values = PolicySpec::parse("key_norm,prompt_block=9").values;
        m_bench.run(Accumulating(true), values, Budget::parse("20t"), layer);
        layer.plain.gqaGroupOf = {1, 0};
        const auto run = [&] { m_bench.run(Accumulating(true), values, Budget::parse("20t"), layer); };
        QVERIFY(errorText(run).contains("(kv_of_q)"));
    }

    void decodedTokensMustLeaveAPrompt() {
        const TestLayer layer = TestLayer::random(11, {1, 1, 40, 4});
        QCOMPARE(errorText([&] { m_bench.run("keydiff,decode_tokens=40@10t", layer); }),
                 "40 decoded tokens leave no prompt: 40 tokens lie before the cut (parameter "
                 "decode_tokens). Give at most 39");
    }

    void progressRisesAndStopsWhenAsked() {
        const TestLayer layer = TestLayer::random(12, {2, 2, 97, 8});
        double last = 0;
        std::stop_source source;
        const Checkpoint watching(source.get_token(), [&](double done, double total) {
            QVERIFY(done / total >= last - 1e-12 && done / total <= 1);
            last = done / total;
            if (last > 0.5) source.request_stop();
        });
        QVERIFY_THROWS_EXCEPTION(Cancelled, m_bench.run("keydiff,prompt_block=8@20t", layer, watching));
        QVERIFY(last > 0.5 && last < 0.8);
    }

private:
    static bool sameSteps(const PolicyOutcome& outcome, const naive_policies::Result& expected) {
        if (outcome.steps.size() != expected.steps.size()) return false;
        for (std::size_t i = 0; i < expected.steps.size(); ++i) {
            const BlockStep& step = outcome.steps[i];
            if (step.end != expected.steps[i].end || step.cached != expected.steps[i].cached) return false;
            for (std::size_t h = 0; h < step.evicted.size() && expected.closest > 2e-6; ++h)
                if (!std::equal(step.evicted[h].begin(), step.evicted[h].end(), expected.steps[i].evicted[h].begin(),
                                expected.steps[i].evicted[h].end()))
                    return false;
        }
        return true;
    }

    PolicyBench m_bench;
};

KVSCOPE_TEST(BlockProcessingTest)
#include "block_processing_test.moc"
