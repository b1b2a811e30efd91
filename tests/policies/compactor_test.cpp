// Compactor and leverage against plain loops and against what the paper says, kvpress and
// compactor-vllm: scores, budgets, protected tokens, joint choice, drawing, refusals.
#include "core/capture/open_capture.h"
#include "core/policies/policy_spec.h"
#include "tests/policies/compactor_oracle.h"
#include "tests/support/error_message.h"
#include "tests/support/golden.h"
#include "tests/support/larger_error.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

using namespace kvscope;

namespace {

using Block = kvscope::naive::Block;
using Numbers = kvscope::naive::Numbers;
using oracle::blockOf;
using oracle::chosenBy;

/// [1, n, d] of one head.
HostTensor headOf(const HostTensor& tensor, std::int64_t head) {
    const std::int64_t size = tensor.shape[1] * tensor.shape[2];
    return {{1, tensor.shape[1], tensor.shape[2]},
            {tensor.data.begin() + head * size, tensor.data.begin() + (head + 1) * size}};
}

/// Empty, or where the scores differ by more than the float roundings on their way.
std::string scoreDifference(const std::vector<float>& got, const std::vector<Numbers>& expected) {
    const std::size_t n = expected.front().size();
    for (std::size_t h = 0; h < expected.size(); ++h)
        for (std::size_t i = 0; i < n; ++i)
            if (!(std::abs(double{got[h * n + i]} - expected[h][i]) <= 2e-4))
                return "head " + std::to_string(h) + ", token " + std::to_string(i) + ": " +
                       std::to_string(got[h * n + i]) + " instead of " + std::to_string(expected[h][i]);
    return {};
}

std::size_t keptInAll(const PolicyOutcome& outcome) {
    std::size_t sum = 0;
    for (const HeadSelection& head : outcome.selection.heads) sum += head.kept.size();
    return sum;
}

bool holds(const std::vector<TokenIndex>& kept, TokenIndex begin, TokenIndex end) {
    for (TokenIndex i = begin; i < end; ++i)
        if (!std::binary_search(kept.begin(), kept.end(), i)) return false;
    return true;
}

} // namespace

class CompactorTest : public QObject {
    Q_OBJECT

private slots:
    void scoresAreTheFormulas_data() {
        QTest::addColumn<QString>("spec");
        for (const char* spec : {"compactor,sketch_size=5@0.25", "compactor,sketch=srht,sketch_size=5@0.25",
                                 "compactor:kvpress,sketch_size=6@0.25", "compactor,sketch=none@0.25",
                                 "compactor,sketch=none,chunk=32@0.25", "compactor:kvpress,sketch=none,chunk=32@0.25",
                                 "compactor:compactor_vllm,sketch=none,token_chunk=40,chunk=48,page=1,protect_first=2,"
                                 "protect_last=3@0.25",
                                 "compactor,sketch=none,route=svd,lambda=2,pool_width=1,value_norm=false@0.1"})
            QTest::newRow(spec) << spec;
    }

    void scoresAreTheFormulas() {
        QFETCH(QString, spec);
        for (const std::uint64_t seed : {71u, 72u}) {
            TestLayer layer = TestLayer::random(seed, {6, 2, 107, 8});
            const PolicySpec parsed = PolicySpec::parse(spec.toStdString());
            const PolicyOutcome outcome = m_bench.run(spec.toStdString(), layer);
            const bool removed = parsed.values.choice("lambda_rule") == "removed";
            const auto expected =
                oracle::compactorScores(layer, parsed.values, removed ? 0.75 : parsed.values.real("lambda"));
            const std::string wrong = scoreDifference(outcome.scores.total.data, expected);
            QVERIFY2(wrong.empty(), wrong.c_str());
        }
    }

    // The lists of the formulas on real keys and values, written down; the engine's are the same to the last token.
    void goldenListsOnASample() {
        const auto capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
        std::vector<std::string> lines = {
            "# needle-1k, layer, cut 995 | policy at 0.05 | head | kept tokens (0-based)"};
        for (const int own : {1, 3}) {
            const TestLayer layer = TestLayer::ofCapture(*capture, LayerIndex(own), 995);
            for (const char* spec : {"compactor,sketch=none", "compactor,sketch=none,chunk=128,lambda=1,protect_last=4",
                                     "compactor:kvpress,sketch=none", "leverage:exact"}) {
                const PolicySpec parsed = PolicySpec::parse(spec);
                const bool alone = parsed.policy == "leverage",
                           removed = !alone && parsed.values.choice("lambda_rule") == "removed";
                std::vector<Numbers> scores;
                if (alone)
                    for (std::int64_t h = 0; h < layer.keys.shape[0]; ++h)
                        scores.push_back(kvscope::naive::leverage({kvscope::naive::Block{
                            1, 995, layer.keys.shape[2], blockOf(headOf(layer.preRopeKeys, h), 0, 995).numbers}}));
                else
                    scores =
                        oracle::compactorScores(layer, parsed.values, removed ? 0.95 : parsed.values.real("lambda"));
                const auto kept = m_bench.run(std::string(spec) + "@0.05", layer).selection.heads;
                const int count = naive_policies::budgetTokens("0.05", 995, parsed.values.text("rounding"));
                for (std::size_t h = 0; h < scores.size(); ++h) {
                    const std::string expected = listText(chosenBy(scores[h], parsed.values, count));
                    lines.push_back("layer " + std::to_string(own) + " | " + spec + " | KV head " + std::to_string(h) +
                                    " | " + expected);
                    QCOMPARE(QString::fromStdString(listText(kept[h].kept)), QString::fromStdString(expected));
                }
            }
        }
        const std::string differs = golden::compare("policies_compactor.txt", lines);
        QVERIFY2(differs.empty(), differs.c_str());
    }

    // With the sketch drawn and chosen as each code does it: heads of compactor-vllm have lists of unequal length.
    void goldenListsOfSketchesAndPages() {
        const auto capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
        std::vector<std::string> lines = {
            "# needle-1k, layer, cut 995 | policy at 0.05 | head | kept tokens (0-based)"};
        for (const int own : {1, 3}) {
            const TestLayer layer = TestLayer::ofCapture(*capture, LayerIndex(own), 995);
            for (const char* spec :
                 {"compactor,sketch_size=32", "compactor,sketch=srht,sketch_size=32", "compactor:kvpress",
                  "compactor:compactor_vllm", "compactor:compactor_vllm,page=16,protect_first=4,protect_last=8"}) {
                const PolicySpec parsed = PolicySpec::parse(spec);
                const ParameterValues& values = parsed.values;
                const bool removed = values.choice("lambda_rule") == "removed";
                const auto scores = oracle::compactorScores(layer, values, removed ? 0.95 : values.real("lambda"));
                std::vector<std::vector<TokenIndex>> expected = oracle::chosenJointly(scores, values, 0.05);
                const int count = naive_policies::budgetTokens("0.05", 995, values.text("rounding"));
                for (std::size_t h = 0; h < scores.size() && values.choice("selection") == "head"; ++h)
                    expected[h] = chosenBy(scores[h], values, count);
                const auto kept = m_bench.run(std::string(spec) + "@0.05", layer).selection.heads;
                for (std::size_t h = 0; h < scores.size(); ++h) {
                    const std::string list = listText(expected[h]);
                    lines.push_back("layer " + std::to_string(own) + " | " + spec + " | KV head " + std::to_string(h) +
                                    " | " + list);
                    QCOMPARE(QString::fromStdString(listText(kept[h].kept)), QString::fromStdString(list));
                }
            }
        }
        const std::string differs = golden::compare("policies_compactor_sketched.txt", lines);
        QVERIFY2(differs.empty(), differs.c_str());
    }

    void leverageIsThatOfTheKeysBeforeRope() {
        TestLayer layer = TestLayer::random(73, {4, 2, 60, 8});
        layer.plain.preRope = TestLayer::random(74, {4, 2, 60, 8}).plain.keys;
        layer.refresh();
        const auto scores = m_bench.run("leverage:exact@9t", layer).scores.total.data;
        const Numbers expected = kvscope::naive::leverage({blockOf(layer.preRopeKeys, 0, 60)});
        const Numbers after = kvscope::naive::leverage({blockOf(layer.keys, 0, 60)});
        double toBefore = 0, toAfter = 0;
        for (std::size_t i = 0; i < scores.size(); ++i) {
            toBefore = testing::larger(toBefore, std::abs(double{scores[i]} - expected[i]));
            toAfter = std::max(toAfter, std::abs(double{scores[i]} - after[i]));
        }
        QVERIFY(toBefore < 1e-5 && toAfter > 1e-2);
    }

    void sketchesAreReproducibleAndAddUpToTheirColumns() { // C7
        const TestLayer layer = TestLayer::random(75, {4, 2, 90, 16});
        for (const char* kind : {"gaussian", "srht"}) {
            const std::string spec = std::string("leverage,sketch=") + kind + ",sketch_size=5@0.2";
            const auto first = m_bench.run(spec, layer).scores.total.data;
            QCOMPARE(m_bench.run(spec, layer).scores.total.data, first);
            QVERIFY(std::abs(std::accumulate(first.begin(), first.begin() + 90, 0.0) - 5) < 1e-4);
            TestLayer other = layer;
            other.plain.seed = 8;
            QVERIFY(m_bench.run(spec, other).scores.total.data != first);
        }
    }

    // Invariant b: a square sketch, Gaussian or the whole Hadamard matrix, gives exact scores.
    void aSketchAsWideAsTheKeysIsExact() {
        const TestLayer layer = TestLayer::random(76, {4, 2, 90, 8});
        const auto exact = m_bench.run("leverage:exact@0.2", layer).scores.total.data;
        for (const char* kind : {"gaussian", "srht"}) {
            const PolicyOutcome outcome = m_bench.run(std::string("leverage,sketch=") + kind + "@0.2", layer);
            const auto scores = outcome.scores.total.data;
            for (std::size_t i = 0; i < exact.size(); ++i) QVERIFY(std::abs(scores[i] - exact[i]) < 1e-4F);
            QCOMPARE(outcome.notes, std::vector<std::string>{"the sketch has 8 of 64 columns: a key has no more"});
        }
    }

    void keepsExactlyTheBudgetAndWhatIsProtected() {
        const TestLayer layer = TestLayer::random(77, {4, 2, 97, 8});
        for (const HeadSelection& head :
             m_bench.run("compactor,protect_first=4,protect_last=6@0.3", layer).selection.heads) {
            QCOMPARE(head.kept.size(), std::size_t{30}); // ceil(29.1)
            QVERIFY(holds(head.kept, 0, 4) && holds(head.kept, 91, 97));
        }
    }

    void lambdaZeroRanksAsAttention() {
        const TestLayer layer = TestLayer::random(78, {4, 2, 97, 8});
        const PolicyOutcome outcome = m_bench.run("compactor,lambda=0@20t", layer);
        QCOMPARE(outcome.scores.total.data, outcome.scores.parts.at("z_attention").data);
    }

    void joiningHeadsKeepsTheSumAndLetsHeadsDiffer() {
        const TestLayer layer = TestLayer::random(79, {4, 4, 97, 8});
        const PolicyOutcome outcome = m_bench.run("compactor,selection=joint,z_scope=layer@20t", layer);
        QCOMPARE(keptInAll(outcome), std::size_t{80});
        std::set<std::size_t> sizes;
        for (const HeadSelection& head : outcome.selection.heads) sizes.insert(head.kept.size());
        QVERIFY(sizes.size() > 1);
    }

    // C9: round(r (n - first - last) heads) entries, the protected ones among them.
    void compactorVllmKeepsLessThanItsShare() {
        const TestLayer layer = TestLayer::random(80, {4, 2, 300, 8});
        const PolicyOutcome outcome = m_bench.run("compactor:compactor_vllm,page=1@0.5", layer);
        QCOMPARE(keptInAll(outcome), std::size_t{220});
        for (const HeadSelection& head : outcome.selection.heads)
            QVERIFY(holds(head.kept, 0, 16) && holds(head.kept, 236, 300));
        // 0.301 of 440 is 132.4; half of 221 lies between 110 and 111, and Python rounds to the even one.
        QCOMPARE(keptInAll(m_bench.run("compactor:compactor_vllm,page=1@0.301", layer)), std::size_t{132});
        const TestLayer odd = TestLayer::random(80, {4, 1, 301, 8});
        QCOMPARE(keptInAll(m_bench.run("compactor:compactor_vllm,page=1@0.5", odd)), std::size_t{110});
        // Budget below the protected tokens: the earliest of them stay, the others are lost.
        const PolicyOutcome small = m_bench.run("compactor:compactor_vllm,page=1@0.1", layer);
        QCOMPARE(keptInAll(small), std::size_t{44});
        for (const HeadSelection& head : small.selection.heads)
            QVERIFY(holds(head.kept, 0, 16) && head.kept.back() < 300 - 57);
    }

    // That code leaves a sequence alone whose ratio is 1, and its share is of a fraction: tokens are kept as they are
    // given.
    void compactorVllmKeepsAllAtOneAndTokensExactly() {
        const TestLayer layer = TestLayer::random(80, {4, 2, 300, 8});
        for (const char* spec : {"compactor:compactor_vllm@1", "compactor:compactor_vllm,page=1@1",
                                 "compactor:compactor_vllm,page=1@300t"})
            QCOMPARE(keptInAll(m_bench.run(spec, layer)), std::size_t{600});
        for (const int tokens : {1, 90, 150, 299})
            QCOMPARE(keptInAll(m_bench.run("compactor:compactor_vllm,page=1@" + std::to_string(tokens) + "t", layer)),
                     static_cast<std::size_t>(2 * tokens));
        QCOMPARE(keptInAll(m_bench.run("compactor:compactor_vllm,page=1@0.5", layer)),
                 std::size_t{220}); // not those of 150t
    }

    void pagesAreFilledWithTheNextBest() {
        const TestLayer layer = TestLayer::random(81, {4, 2, 300, 8});
        const PolicyOutcome plain = m_bench.run("compactor:compactor_vllm,page=1@0.5", layer);
        const PolicyOutcome paged = m_bench.run("compactor:compactor_vllm,page=32@0.5", layer);
        for (std::size_t h = 0; h < 2; ++h) {
            const auto& some = plain.selection.heads[h].kept;
            const auto& all = paged.selection.heads[h].kept;
            QCOMPARE(all.size(), (some.size() + 31) / 32 * 32);
            QVERIFY(std::includes(all.begin(), all.end(), some.begin(), some.end()));
        }
        const std::size_t added = keptInAll(paged) - keptInAll(plain);
        QVERIFY(added > 0);
        QVERIFY(std::ranges::count(paged.notes, "filling pages of 32 tokens adds " + std::to_string(added) +
                                                    " to the budget, over all KV heads") == 1);
        QVERIFY(std::ranges::none_of(plain.notes, [](const auto& note) { return note.starts_with("filling"); }));
    }

    // C10: kvpress fails on 12 tokens or fewer and keeps 6 of 13 at a half.
    void kvpressOnVeryShortPrompts() {
        const PolicyOutcome none = m_bench.run("compactor:kvpress@0.5", TestLayer::random(82, {2, 1, 12, 4}));
        QCOMPARE(none.selection.heads[0].kept.size(), std::size_t{6});
        QVERIFY(!none.notes.empty());
        QCOMPARE(
            m_bench.run("compactor:kvpress@0.5", TestLayer::random(83, {2, 1, 13, 4})).selection.heads[0].kept.size(),
            std::size_t{6});
        QCOMPARE(m_bench.run("compactor@1t", TestLayer::random(84, {2, 1, 1, 4})).selection.heads[0].kept.size(),
                 std::size_t{1});
    }

    void degenerateKeysGiveFiniteScoresAndTheEarlierToken() { // C3, C15
        for (const double value : {0.0, 0.7}) {
            TestLayer layer =
                TestLayer::ofKeys(std::vector<naive_policies::Vector>(40, naive_policies::Vector(4, value)));
            for (const char* spec : {"compactor,pool_width=1@5t",
                                     "compactor:compactor_vllm,page=1,protect_first=0,"
                                     "protect_last=0@5t",
                                     "leverage:exact@5t", "leverage,centred=true@5t"})
                QCOMPARE(QString::fromStdString(listText(m_bench.run(spec, layer).selection.heads[0].kept)),
                         QString("0-4"));
        }
    }

    void drawnRowsStandForAll() { // Theorem 1
        TestLayer layer = TestLayer::random(85, {2, 2, 200, 6});
        layer.recordSteps = true;
        const PolicyOutcome outcome = m_bench.run("leverage:sampling@60t", layer);
        const Numbers leverage = kvscope::naive::leverage({blockOf(layer.preRopeKeys, 0, 200)});
        for (std::size_t h = 0; h < 2; ++h) {
            const HeadSelection& head = outcome.selection.heads[h];
            QCOMPARE(head.numeratorWeights, head.denominatorWeights);
            double draws = 0;
            for (std::size_t i = 0; i < head.kept.size(); ++i) {
                const double p = leverage[h * 200 + std::size_t(head.kept[i])] / 6; // the sum is the rank
                const double times = double{head.numeratorWeights[i]} * 60 * p;
                QVERIFY(std::abs(times - std::round(times)) < 1e-3 && times > 0.5);
                draws += std::round(times);
            }
            QCOMPARE(draws, 60.0);
        }
        QVERIFY(outcome.log && outcome.log->json().find("\"distortion\":[") != std::string::npos);
        QVERIFY(outcome.log->json().find("\"draws\":[[") != std::string::npos);
    }

    void theLogHoldsWhatTheScoresAreMadeOf() {
        TestLayer layer = TestLayer::random(86, {4, 2, 50, 8});
        QVERIFY(!m_bench.run("compactor@9t", layer).log);
        layer.recordSteps = true;
        const std::string json = m_bench.run("compactor@9t", layer).log->json();
        for (const char* name : {"spectrum", "rank", "leverage", "attention", "z_leverage", "z_attention", "lambda"})
            QVERIFY2(json.find(fmt::format("\"{}\":", name)) != std::string::npos, name);
    }

    void missingQueriesAreRefusedWithARemedy() {
        const TestLayer layer = TestLayer::random(87, {4, 2, 97, 8, 30});
        const QString message = errorText([&] { m_bench.run("compactor@9t", layer); });
        QVERIFY2(message.contains("none before token 67") && message.contains("policy leverage"), qPrintable(message));
    }

    // In blocks the cache has gaps, and a sliding window counts tokens: neighbouring rows may not see each other.
    void aSlidingWindowCountsTokensInBlocks() {
        TestLayer layer = TestLayer::random(84, {2, 2, 192, 8});
        layer.plain.slidingWindow = 12;
        const PolicyOutcome outcome = m_bench.run(
            "compactor,sketch=none,chunk=48,pool_width=1,lambda=0,value_norm=false,prompt_block=64@40t", layer);
        for (std::size_t head = 0; head < 2; ++head) {
            const auto &queries = layer.plain.queries[head], &keys = layer.plain.keys[head];
            std::vector<TokenIndex> cache;
            for (TokenIndex begin = 0; begin < 192; begin += 64) {
                for (TokenIndex token = begin; token < begin + 64; ++token) cache.push_back(token);
                Numbers sums(cache.size(), 0.0);
                for (std::size_t j = 0; j < cache.size(); ++j) {
                    const std::size_t from = j / 48 * 48, to = std::min(cache.size(), from + 48);
                    Numbers weights;
                    for (std::size_t i = from; i < to; ++i) {
                        const auto &q = queries[std::size_t(cache[j])], &k = keys[std::size_t(cache[i])];
                        const bool seen = std::abs(cache[i] - cache[j]) < 12;
                        weights.push_back(seen ? std::exp(std::inner_product(q.begin(), q.end(), k.begin(), 0.0)) : 0);
                    }
                    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
                    for (std::size_t i = from; i < to; ++i) sums[i] += weights[i - from] / total;
                }
                std::vector<TokenIndex> kept;
                for (const TokenIndex row :
                     chosenBy(sums, PolicySpec::parse("compactor").values, std::min<std::int64_t>(40, cache.size())))
                    kept.push_back(cache[std::size_t(row)]);
                cache = kept;
            }
            QCOMPARE(outcome.selection.heads[head].kept, cache);
        }
    }

    void whatCannotWorkInBlocksIsRefused() {
        const TestLayer layer = TestLayer::random(88, {4, 2, 97, 8});
        for (const char* spec :
             {"compactor,selection=joint,prompt_block=16@20t", "leverage:sampling,prompt_block=16@20t"})
            QVERIFY(errorText([&] { m_bench.run(spec, layer); }).contains("blocks cannot continue"));
        QVERIFY(errorText([&] {
                    m_bench.run("leverage,regulariser=clamp,route=qr@20t", layer);
                }).contains("no eigenvalues to clamp"));
        for (const HeadSelection& head : m_bench.run("compactor,prompt_block=16@20t", layer).selection.heads)
            QCOMPARE(head.kept.size(), std::size_t{20});
    }

    void threadsDoNotMatter() {
        const TestLayer layer = TestLayer::random(89, {6, 2, 1500, 8});
        for (const char* spec :
             {"compactor@0.2", "compactor:kvpress@0.2", "compactor:compactor_vllm@0.2", "leverage:sampling@0.2"}) {
            const Selection one = PolicyBench(1).run(spec, layer).selection;
            for (const int threads : {2, 7})
                QVERIFY2(PolicyBench(threads).run(spec, layer).selection.sameLists(one), spec);
        }
    }

    void knobsOfCombineAndSelectLeaveTheFeaturesAlone() { // 0.11
        const ParameterValues values = PolicySpec::parse("compactor").values;
        for (const char* change : {"lambda=1", "pool_width=5", "value_norm=false", "group_rule=max", "z_scope=layer",
                                   "selection=joint", "protect_first=9"}) {
            const ParameterValues changed = PolicySpec::parse(std::string("compactor,") + change).values;
            QVERIFY2(changed.key(Stage::Features) == values.key(Stage::Features) && !(changed == values), change);
        }
    }

private:
    PolicyBench m_bench;
};

KVSCOPE_TEST(CompactorTest)
#include "compactor_test.moc"
