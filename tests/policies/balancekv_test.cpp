// Blocked BalanceKV against hand examples and a second reading of the algorithm in plain loops, its laws, its weights
// and its borders.
#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "core/engine/engine.h"
#include "core/policies/balance/balance_needle.h"
#include "core/policies/balance/balance_rounds.h"
#include "core/policies/policy_spec.h"
#include "tests/bench/engine_check/engine_case.h"
#include "tests/policies/naive_balance.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/error_message.h"
#include "tests/support/golden.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

using namespace kvscope;

namespace {

using Signs = std::vector<std::int8_t>;

TestLayer layerOf(int tokens, std::uint64_t seed = 5) {
    TestLayer layer = TestLayer::random(seed, {4, 2, tokens, 8});
    HostTensor other = TestLayer::random(seed + 100, {4, 2, tokens, 8}).keys;
    layer.values = other; // values that are not the keys
    return layer;
}

double sumOf(const std::vector<float>& weights, const HeadSelection& head, TokenIndex first, TokenIndex end) {
    double sum = 0;
    for (std::size_t i = 0; i < head.kept.size(); ++i)
        sum += head.kept[i] >= first && head.kept[i] < end ? double{weights[i]} : 0;
    return sum;
}

Signs signsOf(const char* text) {
    Signs signs;
    for (; *text; ++text) signs.push_back(*text == '+' ? 1 : *text == '-' ? -1 : 0);
    return signs;
}

} // namespace

class BalanceKvTest : public QObject {
    Q_OBJECT

private slots:
    // The hand examples of 1.4: which places stay, with which weights.
    void weightedHalvingByHand() {
        const auto check = [](const char* signs, std::vector<std::size_t> places, std::vector<double> weights) {
            const Half half = halve(signsOf(signs), Halving::Weighted);
            QCOMPARE(half.places, places);
            QCOMPARE(half.weights, weights);
        };
        check("+--+", {1, 2}, {2, 2});
        check("++--", {0, 1}, {2, 2});
        check("+---", {0, 3}, {2, 1});
        check("++-", {0}, {2}); // c = 2: evicts -, although + is the majority
        check("++", {1}, {1});  // minus never gets there: c = 0
        check("+", {}, {});
        check("", {}, {});
    }

    void otherHalvingsByHand() {
        const auto places = [](const char* signs, Halving halving) { return halve(signsOf(signs), halving).places; };
        using Places = std::vector<std::size_t>;
        QCOMPARE(places("+-+++-", Halving::Unweighted), (Places{1, 5, 0}));   // topped up by the earliest +
        QCOMPARE(places("+-----", Halving::Unweighted), (Places{1, 2, 3}));   // truncated at its end
        QCOMPARE(places("+-----", Halving::SmallerGroup), (Places{0, 1, 2})); // B12
        QCOMPARE(places("+-+-", Halving::SmallerGroup), (Places{0, 2}));      // ties: +
        QCOMPARE(halve(signsOf("+-+-"), Halving::Unweighted).weights, (std::vector<double>{2, 2}));
        // B18: protected, then +, then -, with weights 1, 2, 0.
        const Half guarded = halveGuarded(signsOf("-+-0--"));
        QCOMPARE(guarded.places, (Places{3, 1, 0}));
        QCOMPARE(guarded.weights, (std::vector<double>{1, 2, 0}));
        QCOMPARE(halveGuarded(signsOf("0000+")).places, (Places{0, 1})); // the latest protected ones are lost
    }

    // B7: the weights of one weighted round sum to c + 1, the mass to n.
    void weightsSumToCPlusOneAndMassToN() {
        for (unsigned bits = 0; bits < 256; ++bits) {
            Signs signs;
            for (unsigned i = 0; i < 8; ++i) signs.push_back(bits >> i & 1 ? 1 : -1);
            const Half half = halve(signs, Halving::Weighted);
            QCOMPARE(half.places.size(), std::size_t{4});
            std::int64_t plus = 0, minus = 0;
            std::size_t c = 0;
            for (std::size_t i = 0; i < 8; ++i) {
                (signs[i] > 0 ? plus : minus) += 1;
                if ((signs[i] > 0 ? plus : minus) == 4) c = i;
            }
            const double sum = std::accumulate(half.weights.begin(), half.weights.end(), 0.0);
            const bool both = plus == 4;
            if (both) QCOMPARE(sum, double(c + 1));
            for (const double weight : half.weights) QVERIFY(weight == 1 || weight == 2);
        }
    }

    void agreesWithTheOracle() {
        for (const int tokens : {97, 131, 64})
            for (const char* options :
                 {"", "shift=block_mean", "temp=1,gamma=0.01,shift=none", "halving=unweighted,value_constant=0",
                  "halving=smaller_group,beta=1", "gamma=0", "same_weights=true,temp=1", "partial_subset=latest"})
                for (const char* size : {"rounds=1,block=16", "rounds=3,block=10", "rounds=2,block=256"})
                    compare(std::string("balancekv,sink=5,recent=9,") + size + (*options ? "," : "") + options,
                            layerOf(tokens));
    }

    void needlesAgreeWithTheOracle() {
        for (const char* options : {"rounds=2,block=16", "rounds=1,block=40,needle_dilation=0"})
            for (int layer : {0, 1, 3})
                for (const char* needle :
                     {"needle=detection_layer", "needle=own_layer", "needle=own_layer,needle_threshold=0.2"}) {
                    TestLayer test = layerOf(120);
                    for (auto& head : test.plain.keys)
                        for (std::size_t i = 0; i < head.size(); ++i)
                            for (double& x : head[i]) x = i % 37 == 11 ? -x : x;
                    const HostTensor values = test.values;
                    test.refresh();
                    test.values = values;
                    test.plain.layer = layer;
                    compare(std::string("balancekv,sink=3,recent=4,same_weights=true,") + options + "," + needle, test);
                }
    }

    // A slot of weight 0 is a stored key and value all the same.
    void aSlotWithoutWeightIsStored() {
        const TestLayer layer = TestLayer::ofCapture(
            *openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5"), LayerIndex(0), 995);
        std::size_t without = 0;
        for (const HeadSelection& head :
             m_bench
                 .run("balancekv:needle_paper,sink=8,recent=8,block=64,needle_dilation=0,needle_threshold=0.05@0.5",
                      layer)
                 .selection.heads) {
            if (std::ranges::count(head.numeratorWeights, 0.0F) == 0) continue;
            ++without;
            QCOMPARE(head.storedKeys, std::ssize(head.kept));
            QCOMPARE(head.storedValues, std::ssize(head.kept));
        }
        QVERIFY(without > 0);
    }

    // The oracle's lists on real keys and values, written down; the engine's are the same to the last token and weight.
    void goldenListsOnASample() {
        const TestLayer layer = TestLayer::ofCapture(
            *openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5"), LayerIndex(2), 995);
        std::vector<std::string> lines = {"# needle-1k, layer 2, cut 995 | policy | head | kept tokens (0-based)"};
        for (const char* variant : {"paper", "notebook", "notebook_unweighted", "longbench", "needle_paper"}) {
            const std::string spec = std::string("balancekv:") + variant + ",sink=2,recent=2,rounds=5";
            compare(spec, layer);
            const auto expected = naive_policies::balanceRounds(PolicySpec::parse(spec).values, layer);
            for (std::size_t h = 0; h < expected.size(); ++h)
                lines.push_back(spec + " | KV head " + std::to_string(h) + " | " + listText(expected[h].kept));
        }
        const std::string differs = golden::compare("policies_balancekv.txt", lines);
        QVERIFY2(differs.empty(), differs.c_str());
    }

    // (a), 0.4: every budget is met exactly, sinks and recents included; nested floors with explicit rounds.
    void everyBudgetIsMet() {
        const TestLayer layer = layerOf(97);
        for (int budget = 1; budget <= 97; ++budget) {
            const auto outcome =
                m_bench.run("balancekv,sink=4,recent=6,block=16@" + std::to_string(budget) + "t", layer);
            for (const HeadSelection& head : outcome.selection.heads) {
                QCOMPARE(head.kept.size(), std::size_t(budget));
                QVERIFY(std::is_sorted(head.kept.begin(), head.kept.end()));
                QCOMPARE(std::set<TokenIndex>(head.kept.begin(), head.kept.end()).size(), head.kept.size());
            }
        }
        for (int rounds = 0, left = 87; rounds <= 6; ++rounds, left /= 2)
            QCOMPARE(m_bench.run("balancekv,sink=4,recent=6,rounds=" + std::to_string(rounds), layer)
                         .selection.heads[1]
                         .kept.size(),
                     std::size_t(10 + left));
    }

    // Table 5: keeping 1 - alpha halves 2 alpha and leaves the rest exact.
    void lowCompressionHalvesOnlyTwoAlpha() {
        const auto head =
            m_bench.run("balancekv,sink=0,recent=0,halving=unweighted@90t", layerOf(100)).selection.heads[0];
        QCOMPARE(std::count(head.numeratorWeights.begin(), head.numeratorWeights.end(), 2.0F), std::ptrdiff_t{10});
        QCOMPARE(std::count(head.numeratorWeights.begin(), head.numeratorWeights.end(), 1.0F), std::ptrdiff_t{80});
        QCOMPARE(sumOf(head.denominatorWeights, head, 0, 100), 100.0);
        const auto earliest =
            m_bench.run("balancekv,sink=0,recent=0,partial_subset=earliest@90t", layerOf(100)).selection.heads[0];
        for (std::size_t i = 0; i < earliest.kept.size(); ++i)
            QCOMPARE(earliest.denominatorWeights[i], earliest.kept[i] < 20 ? 2.0F : 1.0F);
    }

    // (b): what a round keeps was there before.
    void roundsAreNested() {
        std::vector<TokenIndex> before;
        for (int rounds = 4; rounds >= 0; --rounds) {
            const auto kept = m_bench.run("balancekv:longbench,rounds=" + std::to_string(rounds), layerOf(300))
                                  .selection.heads[0]
                                  .kept;
            QVERIFY(std::includes(kept.begin(), kept.end(), before.begin(), before.end()));
            before = kept;
        }
    }

    // (d): full blocks do not see a constant added to all keys; the padded one does (B9).
    void translationChangesFullBlocksOnly() {
        TestLayer layer = layerOf(64), moved = layer;
        for (float& x : moved.keys.data) x += 3;
        const std::string spec = "balancekv:notebook,sink=0,recent=0,rounds=1,gamma=0.1,temp=1,block=";
        QVERIFY(m_bench.run(spec + "16", layer).selection.sameLists(m_bench.run(spec + "16", moved).selection));
        QVERIFY(!m_bench.run(spec + "50", layer).selection.sameLists(m_bench.run(spec + "50", moved).selection));
        const std::string all = "balancekv,sink=0,recent=0,rounds=1,gamma=0.1,temp=1,block=50";
        QVERIFY(m_bench.run(all, layer).selection.sameLists(m_bench.run(all, moved).selection));
    }

    // (e): gamma = 0 tosses coins.
    void gammaZeroIgnoresKeysAndValues() {
        const auto a = m_bench.run("balancekv,gamma=0,sink=4,recent=4@40t", layerOf(97, 1));
        const auto b = m_bench.run("balancekv,gamma=0,sink=4,recent=4@40t", layerOf(97, 2));
        QVERIFY(a.selection.sameLists(b.selection));
    }

    // (f), B21: nothing between sinks and recents.
    void noRoundsAndShortPromptsAreExact() {
        for (const char* spec : {"balancekv,sink=4,recent=4,rounds=0", "balancekv,rounds=2", "balancekv@97t"}) {
            const HeadSelection head = m_bench.run(spec, layerOf(97)).selection.heads[0];
            QCOMPARE(listText(head.kept), std::string("0-96"));
            QVERIFY(std::all_of(head.numeratorWeights.begin(), head.numeratorWeights.end(),
                                [](float w) { return w == 1; }));
        }
        QCOMPARE(m_bench.run("balancekv:longbench,rounds=2", layerOf(40)).selection.heads[0].kept.size(),
                 std::size_t{40});
        for (const char* spec : {"balancekv,sink=0,recent=0,rounds=1", "balancekv,sink=0,recent=0@1t", "balancekv@1t"})
            for (const int tokens : {1, 2, 3}) (void)m_bench.run(spec, layerOf(tokens));
    }

    // Sinks and recents that take the whole budget leave nothing to balance: no walk decides, and the result says so.
    void sinksAndRecentsCanTakeTheWholeBudget() {
        for (const char* spec : {"balancekv@0.25", "balancekv,sink=40,recent=20@60t",
                                 "uniform:sign_sort,protect_first=40,protect_last=20@60t"}) {
            const PolicyOutcome outcome = m_bench.run(spec, layerOf(400));
            for (const HeadSelection& head : outcome.selection.heads) {
                QVERIFY(std::isinf(head.margin));
                QCOMPARE(head.kept, head.protectedTokens);
            }
            QVERIFY2(!outcome.notes.empty() && outcome.notes.back().find("take the whole budget") != std::string::npos,
                     spec);
        }
        QVERIFY(m_bench.run("balancekv,sink=40,recent=20@61t", layerOf(400)).notes.empty());
        QVERIFY(m_bench.run("balancekv@1", layerOf(400)).notes.empty()); // everything is kept
    }

    // 1.1 (a): the signs of the first tokens do not depend on later ones.
    void prefixesKeepTheirSigns() {
        const BalanceLog longer =
            logOf("balancekv,sink=0,recent=0,block=256,shift=none,rounds=1,gamma=0.001", layerOf(90));
        const TestLayer whole = layerOf(90);
        TestLayer prefix = whole;
        for (auto& head : prefix.plain.keys) head.resize(40);
        prefix.refresh();
        HostTensor values{{2, 40, 8}, {}};
        for (int h = 0; h < 2; ++h)
            values.data.insert(values.data.end(), whole.values.data.begin() + h * 720,
                               whole.values.data.begin() + h * 720 + 320);
        prefix.values = values;
        const BalanceLog shorter = logOf("balancekv,sink=0,recent=0,block=256,shift=none,rounds=1,gamma=0.001", prefix);
        for (std::size_t w = 0; w < 2; ++w)
            QCOMPARE(Signs(longer.walks[w].signs.begin(), longer.walks[w].signs.begin() + 40), shorter.walks[w].signs);
    }

    // The log is what happened: p = 1/2 - gamma y, imbalance, Q_j by its definition.
    void theLogAddsUp() {
        const TestLayer layer = layerOf(60);
        const BalanceLog log = logOf("balancekv,sink=2,recent=3,block=20,gamma=0.01,rounds=2", layer);
        QCOMPARE(log.walks.size(), std::size_t{2 * (3 + 2)});
        QCOMPARE(log.sets.size(), std::size_t{6});
        for (const BalanceWalkLog& walk : log.walks) {
            std::int64_t imbalance = 0;
            double fair = 0;
            for (std::size_t i = 0; i < walk.signs.size(); ++i) {
                QCOMPARE(walk.probabilities[i], 0.5 - 0.01 * walk.products[i]);
                QVERIFY(i == 0 || (walk.signs[i] == 1) == (walk.walk.uniforms[i] < walk.probabilities[i]));
                imbalance += walk.signs[i];
                QCOMPARE(walk.imbalance[i], imbalance);
                QVERIFY(walk.quadratic[i] > -1e-9 * walk.fairCoins[i]); // M is positive semidefinite
                QVERIFY(walk.fairCoins[i] > fair);
                fair = walk.fairCoins[i];
            }
            QCOMPARE(walk.signs[0], std::int8_t{1});
        }
        QVERIFY(log.json().find("\"sum_M_jj\"") != std::string::npos);
    }

    // Greedy balancing beats coins: its discrepancy stays below that of gamma = 0 (B1).
    void gammaFourBalances() {
        double greedy = 0, coins = 0;
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
            const TestLayer layer = layerOf(200, seed);
            for (const BalanceWalkLog& walk : logOf("balancekv,sink=0,recent=0,rounds=1,block=50", layer).walks)
                greedy += walk.quadratic.back();
            for (const BalanceWalkLog& walk : logOf("balancekv,sink=0,recent=0,rounds=1,block=50,gamma=0", layer).walks)
                coins += walk.quadratic.back();
        }
        QVERIFY2(greedy < 0.85 * coins, qPrintable(QString("%1 against %2").arg(greedy).arg(coins)));
    }

    void failIsRepeatedOrRefused() {
        const PolicyOutcome mild =
            m_bench.run("balancekv,sink=0,recent=0,rounds=1,block=8,temp=0,gamma=0.0005,on_overflow=fail", layerOf(40));
        for (const HeadSelection& head : mild.selection.heads) QCOMPARE(head.kept.size(), std::size_t{20});
        const QString refused =
            errorText([&] { (void)m_bench.run("balancekv,sink=0,recent=0,rounds=1,on_overflow=fail", layerOf(97)); });
        QVERIFY2(refused.contains("FAIL") && refused.contains("on_overflow=clip"), qPrintable(refused));
    }

    void hugeAndZeroKeysAreHandled() {
        for (const double factor : {0.0, 1e3, 1e15}) {
            TestLayer layer = layerOf(70);
            for (float& x : layer.keys.data) x = float(x * factor);
            QCOMPARE(m_bench.run("balancekv,sink=0,recent=0,rounds=2,temp=1", layer).selection.heads[0].kept.size(),
                     std::size_t{17});
        }
        TestLayer broken = layerOf(70);
        broken.keys.data[100] = std::nanf("");
        QVERIFY_THROWS_EXCEPTION(Error, m_bench.run("balancekv,sink=0,recent=0,rounds=1", broken));
    }

    // 1.5: of many +e and one -e, the odd one and its neighbours are protected; equal keys protect none.
    void needlesByHand() {
        HostTensor keys{{1, 128, 2}, {}};
        for (int i = 0; i < 128; ++i) keys.data.insert(keys.data.end(), {i == 60 ? -1.0F : 1.0F, 0.0F});
        const Tensor tensor = m_bench.engine().upload(keys);
        const NeedleMask mask = findNeedles(m_bench.engine(), tensor, 128, 0, 25, {});
        QVERIFY(std::abs(mask.rho[0][60] - (1 - 127.0) / 128) < 1e-6);
        for (int i = 0; i < 128; ++i) {
            QCOMPARE(int(mask.raw[0][std::size_t(i)]), int(i == 60));
            QCOMPARE(int(mask.dilated[0][std::size_t(i)]), int(std::abs(i - 60) <= 25));
        }
        keys.data[120] = 1;
        const NeedleMask equal = findNeedles(m_bench.engine(), m_bench.engine().upload(keys), 128, 0, 25, {});
        QCOMPARE(std::count(equal.raw[0].begin(), equal.raw[0].end(), char{1}), std::ptrdiff_t{0});
        QVERIFY(std::abs(equal.rho[0][7] - 1) < 1e-6);
    }

    /// Blocks of any length, a short last one among them.
    void needleProductsAreTheOracles() {
        for (const auto& [rows, block] : {std::pair{100, 32}, {5, 8}, {1, 1}}) {
            const kvscope::naive::Block keys = check::randomBlock(84, 3, rows, 11, 1, 0.2);
            const Tensor tensor = check::uploadRows(m_bench.engine(), keys);
            const NeedleMask mask = findNeedles(m_bench.engine(), tensor, block, 0, 25, {});
            const kvscope::naive::Numbers expected = kvscope::naive::blockMeanProducts(keys, block);
            std::vector<float> got;
            for (const std::vector<double>& head : mask.rho)
                for (const double rho : head) got.push_back(static_cast<float>(rho - 1e-8));
            QVERIFY(check::errorOf(got, expected) <= 2 * check::kOneRounding);
        }
    }

    void sameListsForAnyThreads() {
        const TestLayer layer = layerOf(700);
        const Selection expected = PolicyBench(1).run("balancekv:longbench@0.3", layer).selection;
        for (const int threads : {2, 7})
            QVERIFY(PolicyBench(threads).run("balancekv:longbench@0.3", layer).selection.sameLists(expected));
    }

private:
    BalanceLog logOf(const std::string& spec, const TestLayer& layer) {
        const PolicyOutcome outcome = m_bench.runWithSteps(spec, layer);
        return dynamic_cast<const BalanceLog&>(*outcome.log);
    }

    void compare(const std::string& spec, const TestLayer& layer) {
        const Selection selection = m_bench.run(spec, layer).selection;
        const auto expected = naive_policies::balanceRounds(PolicySpec::parse(spec).values, layer);
        for (std::size_t h = 0; h < expected.size(); ++h) {
            QVERIFY2(
                selection.heads[h].kept == expected[h].kept,
                (spec + " keeps " + listText(selection.heads[h].kept) + ", the oracle " + listText(expected[h].kept))
                    .c_str());
            QVERIFY2(selection.heads[h].numeratorWeights == expected[h].numerator, spec.c_str());
            QVERIFY2(selection.heads[h].denominatorWeights == expected[h].denominator, spec.c_str());
        }
    }

    PolicyBench m_bench;
};

KVSCOPE_TEST(BalanceKvTest)
#include "balancekv_test.moc"
