// SnapKV against its formula: window, pooling at the edges, groups of query heads, captures that hold few queries.
#include "core/base/error.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <numeric>
#include <set>

using namespace kvscope;

namespace {

std::vector<TokenIndex> keptOf(const PolicyOutcome& outcome, std::size_t head = 0) {
    return outcome.selection.heads[head].kept;
}

std::vector<TokenIndex> range(TokenIndex begin, TokenIndex end) {
    std::vector<TokenIndex> list(static_cast<std::size_t>(end - begin));
    std::iota(list.begin(), list.end(), begin);
    return list;
}

// Two query heads of one KV head; the last query of head q attends almost only to the tokens in `targets[q]`.
TestLayer pointedLayer(int tokens, const std::vector<std::vector<int>>& targets) {
    TestLayer layer = TestLayer::ofKeys(std::vector<naive_policies::Vector>(
        static_cast<std::size_t>(tokens), naive_policies::Vector(targets.size(), 0.0)));
    layer.plain.queries.clear();
    layer.plain.gqaGroupOf.clear();
    for (std::size_t q = 0; q < targets.size(); ++q) {
        naive_policies::Vector direction(targets.size(), 0.0);
        direction[q] = 10;
        layer.plain.queries.emplace_back(static_cast<std::size_t>(tokens), direction);
        layer.plain.gqaGroupOf.push_back(0);
        for (const int token : targets[q]) layer.plain.keys[0][static_cast<std::size_t>(token)][q] = 1;
    }
    layer.refresh();
    return layer;
}

// One KV head per query head, with the keys of the one that it read.
TestLayer withRepeatedKeys(const TestLayer& layer) {
    TestLayer repeated = layer;
    repeated.plain.keys.clear();
    for (std::size_t q = 0; q < layer.plain.gqaGroupOf.size(); ++q) {
        repeated.plain.keys.push_back(layer.plain.keys[static_cast<std::size_t>(layer.plain.gqaGroupOf[q])]);
        repeated.plain.gqaGroupOf[q] = static_cast<int>(q);
    }
    repeated.plain.preRope = {};
    repeated.refresh();
    return repeated;
}

// Empty where query head q keeps what KV head q keeps that it has to itself, and KV heads keep the unions.
std::string differenceFromAlone(const PolicyOutcome& own, const PolicyOutcome& alone) {
    std::size_t sets = 0;
    for (const HeadSelection& head : own.selection.heads) {
        std::set<TokenIndex> all;
        for (const QueryHeadSet& set : head.queryHeads) {
            const HeadSelection& wanted = alone.selection.heads[static_cast<std::size_t>(set.queryHead)];
            if (set.kept != wanted.kept || set.margin != wanted.margin)
                return "query head " + std::to_string(set.queryHead) + " keeps " + listText(set.kept) + ", not " +
                       listText(wanted.kept);
            all.insert(set.kept.begin(), set.kept.end());
            ++sets;
        }
        if (head.kept != std::vector<TokenIndex>(all.begin(), all.end())) return "a KV head does not keep the union";
    }
    return sets == alone.selection.heads.size() ? "" : "a query head has no set";
}

} // namespace

class SnapKvTest : public QObject {
    Q_OBJECT

private slots:
    void agreesWithTheOracle_data() {
        QTest::addColumn<QString>("options");
        for (const char* variant :
             {"paper", "kvpress", "keydiff", "kvcache_factory", "original_class", "minference", "compactor_vllm"})
            QTest::addRow("%s", variant) << ":" + QString(variant);
        for (const char* rule : {"mean", "sum", "max"})
            for (const char* pool : {"average", "max"})
                QTest::addRow("%s of groups, %s pool", rule, pool)
                    << QString(",window=9,pool=%1,pool_width=3,group_rule=%2").arg(pool, rule);
        QTest::newRow("trailing, tiles") << ",window=9,pool=trailing,pool_width=7,pool_tile=16";
        QTest::newRow("softmax before the window") << ",window=9,softmax=others,group_rule=max";
        QTest::newRow("softmax before the window, blocks") << ",window=4,softmax=others,pool=trailing,prompt_block=32";
        QTest::newRow("a set per query head") << ",window=9,copies=query_head,pool_width=3";
        QTest::newRow("no pooling") << ",window=5,pool_width=1";
        QTest::newRow("wide pooling") << ",window=3,pool_width=63";
        QTest::newRow("protected") << ",window=5,protect_first=4,protect_last=11";
    }

    void agreesWithTheOracle() {
        QFETCH(QString, options);
        std::uint64_t seed = 40;
        for (const LayerShape& shape : {LayerShape{6, 2, 97, 8}, LayerShape{3, 3, 131, 5}, LayerShape{4, 1, 75, 6}}) {
            for (const char* budget : {"@3t", "@33t", "@0.6", "@1"}) {
                TestLayer layer = TestLayer::random(seed++, shape);
                layer.plain.slidingWindow = seed % 3 == 0 ? 41 : 0;
                layer.plain.softcap = seed % 4 == 0 ? 2.5 : 0;
                const std::string spec = "snapkv" + options.toStdString() + budget;
                const std::string wrong = difference(m_bench.run(spec, layer), runNaive(spec, layer.plain));
                QVERIFY2(wrong.empty(), (spec + ", seed " + std::to_string(seed - 1) + ": " + wrong).c_str());
            }
        }
    }

    // Invariant: the scores of the unpooled profile add up to at most W; with the window itself to exactly W.
    void attentionAddsUpToTheWindow() {
        const TestLayer layer = TestLayer::random(7, {4, 2, 97, 8});
        const PolicyOutcome outcome = m_bench.run("snapkv,window=16,pool_width=1@30t", layer);
        const std::vector<float> scores = outcome.scores.total.data;
        const std::vector<float> all = outcome.scores.parts.at("attention").data;
        for (std::size_t h = 0; h < 2; ++h) {
            const double free = std::accumulate(scores.begin() + h * 97, scores.begin() + h * 97 + 81, 0.0);
            const double total = std::accumulate(all.begin() + h * 97, all.begin() + (h + 1) * 97, 0.0);
            QVERIFY(free < 16);
            QVERIFY(std::abs(total - 16) < 1e-4);
        }
    }

    // Without the window's own keys the free scores take the whole share of every query.
    void softmaxBeforeTheWindowAddsUpToTheWindow() {
        const TestLayer layer = TestLayer::random(7, {4, 2, 97, 8});
        const PolicyOutcome outcome = m_bench.run("snapkv,window=16,pool_width=1,softmax=others@30t", layer);
        const std::vector<float> all = outcome.scores.parts.at("attention").data;
        QCOMPARE(all.size(), std::size_t{2 * 97});
        for (std::size_t h = 0; h < 2; ++h) {
            QVERIFY(std::abs(std::accumulate(all.begin() + h * 97, all.begin() + h * 97 + 81, 0.0) - 16) < 1e-4);
            QVERIFY(std::all_of(all.begin() + h * 97 + 81, all.begin() + (h + 1) * 97, [](float x) { return x == 0; }));
        }
    }

    // L4, as the authors' code has it: a capture in which the keys are repeated, one KV head per query head, gives with
    // ordinary SnapKV the sets that the query heads have here; whatever the threads.
    void queryHeadsChooseAsKvHeadsOfTheirOwn() {
        std::uint64_t seed = 300;
        for (const LayerShape& shape : {LayerShape{6, 2, 97, 8}, LayerShape{8, 2, 120, 16}, LayerShape{3, 3, 61, 5}}) {
            for (const char* options : {"", ",window=9,pool=max,pool_width=7", ",window=5,softmax=others,pool=trailing",
                                        ",window=4,protect_first=3", ",group_rule=max,pool_width=1"}) {
                const TestLayer layer = TestLayer::random(seed++, shape), repeated = withRepeatedKeys(layer);
                const PolicyOutcome alone = m_bench.run("snapkv" + std::string(options) + "@0.3", repeated);
                for (const int threads : {1, 2, 7}) {
                    const PolicyOutcome own =
                        PolicyBench(threads).run("snapkv,copies=query_head" + std::string(options) + "@0.3", layer);
                    const std::string wrong = differenceFromAlone(own, alone);
                    QVERIFY2(wrong.empty(),
                             (wrong + ", options " + options + ", seed " + std::to_string(seed - 1)).c_str());
                }
            }
        }
    }

    // At a quarter of the tokens and groups of four a cache as large as the uncompressed one; the union lies between.
    void aSetOfAQueryHeadIsAsLargeAsTheBudget() {
        const TestLayer layer = TestLayer::random(8, {8, 2, 120, 8});
        const PolicyOutcome own = m_bench.run("snapkv:minference,window=8@0.25", layer);
        std::size_t stored = 0;
        for (const HeadSelection& head : own.selection.heads) {
            QCOMPARE(head.queryHeads.size(), std::size_t{4});
            QCOMPARE(head.protectedTokens, range(112, 120));
            QCOMPARE(head.attendedTokens(), 30.0);
            QVERIFY(head.kept.size() > 30 && head.kept.size() < 120);
            for (const QueryHeadSet& set : head.queryHeads) {
                stored += set.kept.size();
                QVERIFY(head.margin <= set.margin && set.margin >= 0);
                QVERIFY(std::includes(set.kept.begin(), set.kept.end(), head.protectedTokens.begin(),
                                      head.protectedTokens.end()));
                QCOMPARE(head.attendedBy(set.queryHead), set.kept);
            }
        }
        QCOMPARE(stored, std::size_t{2 * 120});
        QVERIFY(own.notes.back().find("L4") != std::string::npos);
        QCOMPARE(own.scores.perQueryHead.shape, (Shape{8, 120}));
    }

    // Two query heads that look at different places: together they keep one of them each, alone all four.
    void queryHeadsDisagree() {
        const TestLayer layer = pointedLayer(30, {{4, 9}, {20, 25}});
        const PolicyOutcome own = m_bench.run("snapkv,window=1,pool_width=1,copies=query_head@3t", layer);
        QCOMPARE(own.selection.heads[0].queryHeads[0].kept, (std::vector<TokenIndex>{4, 9, 29}));
        QCOMPARE(own.selection.heads[0].queryHeads[1].kept, (std::vector<TokenIndex>{20, 25, 29}));
        QCOMPARE(keptOf(own), (std::vector<TokenIndex>{4, 9, 20, 25, 29}));
        QCOMPARE(keptOf(m_bench.run("snapkv,window=1,pool_width=1@3t", layer)).size(), std::size_t{3});
        const PolicyOutcome window = m_bench.run("snapkv,window=64,copies=query_head@10t", layer);
        QCOMPARE(keptOf(window), range(20, 30)); // n <= W: the last N, for every query head
        QCOMPARE(keptOf(m_bench.run("snapkv,window=8,copies=query_head@1", layer)), range(0, 30));
    }

    // What decoding or the next block would score is another cache for each query head.
    void setsOfQueryHeadsAreRefusedInBlocks() {
        const TestLayer layer = TestLayer::random(16, {4, 2, 97, 8});
        for (const char* blocks : {"prompt_block=16", "decode_tokens=5", "prompt_block=97"})
            QCOMPARE(
                errorText([&] { m_bench.run("snapkv:minference,window=8," + std::string(blocks) + "@20t", layer); }),
                QString(
                    "query heads that store sets of their own are not processed in blocks: after the first block each "
                    "would score another cache (parameter copies). Set prompt_block=0 and decode_tokens=0, or "
                    "copies=kv_head"));
    }

    void windowIsKeptAndMarked() {
        const TestLayer layer = TestLayer::random(8, {4, 2, 97, 8});
        for (const HeadSelection& head : m_bench.run("snapkv,window=11@20t", layer).selection.heads) {
            QCOMPARE(head.kept.size(), std::size_t{20});
            QCOMPARE(head.protectedTokens, range(86, 97));
        }
    }

    // 0.10: N <= W keeps the last N; n <= W the last min(N, n).
    void smallBudgetsAndShortPrompts() {
        const TestLayer layer = TestLayer::random(9, {4, 2, 40, 8});
        QCOMPARE(keptOf(m_bench.run("snapkv,window=16@16t", layer)), range(24, 40));
        QCOMPARE(keptOf(m_bench.run("snapkv,window=16@5t", layer)), range(35, 40));
        QCOMPARE(keptOf(m_bench.run("snapkv,window=64@10t", layer)), range(30, 40));
        QCOMPARE(keptOf(m_bench.run("snapkv,window=40@1", layer)), range(0, 40));
        QCOMPARE(keptOf(m_bench.run("snapkv,window=16@1", layer)), range(0, 40)); // N >= n keeps all
    }

    // L3: average pooling divides by the full width at the edges, so an attended token 0 counts for less there.
    void averagePoolingIsZeroPadded() {
        const TestLayer layer = pointedLayer(30, {{10}});
        const auto scores = m_bench.run("snapkv,window=2@5t", layer).scores.total.data;
        for (const int near : {8, 9, 11, 12}) QCOMPARE(scores[static_cast<std::size_t>(near)], scores[10]);
        QVERIFY(scores[7] < scores[8] / 2 && scores[13] < scores[12] / 2);
        const TestLayer edge = pointedLayer(30, {{0}});
        const auto edgeScores = m_bench.run("snapkv,window=2@5t", edge).scores.total.data;
        QVERIFY(std::abs(edgeScores[0] - scores[10]) < 1e-4); // one fifth of the peak in both places
        QVERIFY(edgeScores[3] < edgeScores[2] / 2);
    }

    // Per query head, before the group is reduced: two heads that attend to neighbours do not add up under "max".
    void poolingComesBeforeTheGroup() {
        const TestLayer layer = pointedLayer(30, {{10}, {11}});
        const auto scores = m_bench.run("snapkv,window=1,pool=max,pool_width=3@5t", layer).scores.total.data;
        QVERIFY(scores[10] > 0.9f && scores[11] > 0.9f); // the mean of two peaks of 1
        QVERIFY(std::abs(scores[9] - 0.5f) < 0.01f && std::abs(scores[12] - 0.5f) < 0.01f); // one head sees a neighbour
    }

    void groupRules() {
        const TestLayer layer = pointedLayer(30, {{4}, {20}});
        const auto scoresFor = [&](const std::string& rule) {
            const std::string spec = "snapkv,window=1,pool_width=1,group_rule=" + rule + "@3t";
            return m_bench.run(spec, layer).scores.total.data;
        };
        const auto mean = scoresFor("mean"), sum = scoresFor("sum"), max = scoresFor("max");
        for (std::size_t i = 0; i < 29; ++i) QVERIFY(std::abs(sum[i] - 2 * mean[i]) < 1e-6f);
        QVERIFY(std::abs(max[4] - sum[4]) < 0.01f && std::abs(max[20] - sum[20]) < 0.01f);
        QVERIFY(max[5] < 0.01f);
    }

    // 0.9: queries before the cut that were captured are used, and their number is stated.
    void fewCapturedQueries() {
        const TestLayer layer = TestLayer::random(12, {4, 2, 97, 8, 18});
        const PolicyOutcome outcome = m_bench.run("snapkv@50t", layer);
        QCOMPARE(difference(outcome, runNaive("snapkv@50t", layer.plain)), std::string());
        QCOMPARE(outcome.notes, std::vector<std::string>{"SnapKV saw 18 of its 32 window queries before token 97: the "
                                                         "capture holds no others"});
        QVERIFY(m_bench.run("snapkv,window=18@50t", layer).notes.empty());
        QCOMPARE(outcome.selection.heads[0].protectedTokens, range(65, 97)); // the window of tokens stays W
    }

    void noQueryIsAnErrorWithARemedy() {
        TestLayer layer = TestLayer::random(13, {4, 2, 97, 8});
        layer.queries = {};
        QCOMPARE(
            errorText([&] { m_bench.run("snapkv@30t", layer); }),
            "SnapKV needs queries before token 97, and none was captured (layer 3). Capture the queries of all tokens; "
            "or, if only later tokens have queries, choose a later cut (with blocks, prompt_block=0)");
    }

    void blocksNeedEarlyQueries() {
        const TestLayer layer = TestLayer::random(14, {4, 2, 97, 8, 18});
        QVERIFY(errorText([&] { m_bench.run("snapkv,prompt_block=16@10t", layer); }).contains("before token 16"));
    }

    // The first block has the fewest queries; one sentence is enough.
    void blocksStateTheFewestQueries() {
        const TestLayer layer = TestLayer::random(15, {4, 2, 97, 8, 30});
        const PolicyOutcome outcome = m_bench.run("snapkv:kvcache_factory,copies=kv_head,decode_tokens=28@40t", layer);
        QCOMPARE(outcome.notes,
                 std::vector<std::string>{"SnapKV saw 2 of its 8 window queries before token 69: the capture "
                                          "holds no others"});
        QCOMPARE(
            difference(outcome, runNaive("snapkv:kvcache_factory,copies=kv_head,decode_tokens=28@40t", layer.plain)),
            std::string());
    }

private:
    PolicyBench m_bench;
};

KVSCOPE_TEST(SnapKvTest)
#include "snapkv_test.moc"
