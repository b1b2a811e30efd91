// KeyDiff against its formulas, the worked examples of the papers' reading, and the invariances they imply.
#include "core/policies/policy_spec.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;

namespace {

constexpr double kOneRounding = 1e-6; // scores are O(1) floats

std::vector<TokenIndex> keptOf(const PolicyBench& bench, const std::string& spec, const TestLayer& layer,
                               int head = 0) {
    return bench.run(spec, layer).selection.heads[static_cast<std::size_t>(head)].kept;
}

std::vector<float> scoresOf(const PolicyBench& bench, const std::string& spec, const TestLayer& layer) {
    return bench.run(spec, layer).scores.total.data;
}

void transformKeys(TestLayer& layer,
                   const std::function<naive_policies::Vector(int, const naive_policies::Vector&)>& change) {
    for (auto& head : layer.plain.keys)
        for (std::size_t i = 0; i < head.size(); ++i) head[i] = change(static_cast<int>(i), head[i]);
    layer.refresh();
}

// A rotation in the plane of two coordinates.
naive_policies::Vector rotated(naive_policies::Vector v, std::size_t a, std::size_t b, double angle) {
    const double x = v[a], y = v[b];
    v[a] = std::cos(angle) * x - std::sin(angle) * y;
    v[b] = std::sin(angle) * x + std::cos(angle) * y;
    return v;
}

bool sameLists(const PolicyOutcome& a, const PolicyOutcome& b) { return a.selection.sameLists(b.selection); }

} // namespace

class KeyDiffTest : public QObject {
    Q_OBJECT

private slots:
    void init() { m_seed = 20; }

    // (1,0), (1,0), (0,1): mu = (2/3, 1/3), cosines 0.894, 0.894, 0.447; one token: the third.
    void exampleOfThree() {
        const TestLayer layer = TestLayer::ofKeys({{1, 0}, {1, 0}, {0, 1}});
        const std::vector<float> scores = scoresOf(m_bench, "keydiff@1t", layer);
        QVERIFY(std::abs(scores[0] + 2 / std::sqrt(5.0)) < kOneRounding);
        QCOMPARE(scores[0], scores[1]);
        QVERIFY(std::abs(scores[2] + 1 / std::sqrt(5.0)) < kOneRounding);
        QCOMPARE(keptOf(m_bench, "keydiff@1t", layer), std::vector<TokenIndex>{2});
        QCOMPARE(keptOf(m_bench, "keydiff@2t", layer), (std::vector<TokenIndex>{0, 2})); // tie: the earlier one
    }

    // K1: the two anchors disagree completely on (10,0), (0,1), (0,1).
    void anchorsDisagree() {
        const TestLayer layer = TestLayer::ofKeys({{10, 0}, {0, 1}, {0, 1}});
        const std::vector<float> mean = scoresOf(m_bench, "keydiff@1t", layer);
        QVERIFY(std::abs(mean[0] + 0.9806) < 1e-4 && std::abs(mean[1] + 0.1961) < 1e-4);
        const std::vector<float> unit = scoresOf(m_bench, "keydiff:kvpress@1t", layer);
        QVERIFY(std::abs(unit[0] + 0.4472) < 1e-4 && std::abs(unit[1] + 0.8944) < 1e-4);
        QCOMPARE(keptOf(m_bench, "keydiff@1t", layer), std::vector<TokenIndex>{1});
        QCOMPARE(keptOf(m_bench, "keydiff:kvpress@1t", layer), std::vector<TokenIndex>{0});
    }

    void agreesWithTheOracle_data() {
        QTest::addColumn<QString>("options");
        for (const char* anchor : {"mean", "normalised_mean", "median", "pairwise"})
            for (const char* metric : {"cosine", "dot", "euclidean"})
                QTest::addRow("%s %s", anchor, metric) << QString(",anchor=%1,metric=%2").arg(anchor, metric);
        QTest::newRow("kvpress") << ":kvpress";
        QTest::newRow("sliding window") << ":sliding_window";
        QTest::newRow("window and protection") << ",window_share=0.37,protect_first=3,protect_last=9";
    }

    void agreesWithTheOracle() {
        QFETCH(QString, options);
        for (const LayerShape& shape : {LayerShape{4, 2, 97, 8}, LayerShape{3, 3, 61, 5}, LayerShape{8, 1, 130, 16}}) {
            for (const char* budget : {"@1t", "@7t", "@0.33", "@0.9", "@1"}) {
                const TestLayer layer = TestLayer::random(m_seed++, shape);
                const std::string spec = "keydiff" + options.toStdString() + budget;
                const std::string wrong = difference(m_bench.run(spec, layer), runNaive(spec, layer.plain));
                QVERIFY2(wrong.empty(), (spec + ", seed " + std::to_string(m_seed - 1) + ": " + wrong).c_str());
            }
        }
    }

    void scoresAgreeWithTheOracle() {
        const TestLayer layer = TestLayer::random(m_seed, {4, 2, 97, 8});
        for (const char* spec : {"keydiff@7t", "keydiff:pairwise@7t", "keydiff,metric=euclidean,anchor=median@7t"}) {
            const std::vector<float> scores = scoresOf(m_bench, spec, layer);
            const naive_policies::Result expected = runNaive(spec, layer.plain);
            for (std::size_t h = 0; h < 2; ++h)
                for (std::size_t i = 0; i < 97; ++i)
                    QVERIFY(std::abs(scores[h * 97 + i] - expected.scores[h][i]) <=
                            1e-6 * (1 + std::abs(expected.scores[h][i])));
        }
    }

    // K2, invariant (c): -n ||mu|| cos(mu, k_i) is the pairwise score.
    void pairwiseIsNormalisedMean() {
        const TestLayer layer = TestLayer::random(m_seed, {2, 2, 97, 8});
        const std::vector<float> pairwise = scoresOf(m_bench, "keydiff:pairwise@9t", layer);
        const std::vector<float> unit = scoresOf(m_bench, "keydiff,anchor=normalised_mean@9t", layer);
        for (std::size_t h = 0; h < 2; ++h) {
            const double ratio = double(pairwise[h * 97]) / unit[h * 97]; // n ||mu||
            QVERIFY(ratio > 0 && ratio <= 97);
            for (std::size_t i = h * 97; i < (h + 1) * 97; ++i) QVERIFY(std::abs(pairwise[i] - ratio * unit[i]) < 1e-4);
        }
        QVERIFY(sameLists(m_bench.run("keydiff:pairwise@9t", layer),
                          m_bench.run("keydiff,anchor=normalised_mean@9t", layer)));
    }

    // (a): only directions matter to normalised mean and pairwise; the mean anchor bears a global factor only.
    void scalingKeys() {
        TestLayer layer = TestLayer::random(m_seed, {2, 2, 97, 8});
        const PolicyOutcome unit = m_bench.run("keydiff:kvpress@20t", layer);
        const PolicyOutcome pairwise = m_bench.run("keydiff:pairwise@20t", layer);
        const PolicyOutcome mean = m_bench.run("keydiff@20t", layer);
        TestLayer scaled = layer;
        transformKeys(scaled, [](int i, naive_policies::Vector v) {
            for (double& x : v) x *= std::ldexp(1, i % 7 - 3); // powers of two change no direction, not even in float
            return v;
        });
        QVERIFY(sameLists(unit, m_bench.run("keydiff:kvpress@20t", scaled)));
        QVERIFY(sameLists(pairwise, m_bench.run("keydiff:pairwise@20t", scaled)));
        QVERIFY(!sameLists(mean, m_bench.run("keydiff@20t", scaled)));
        transformKeys(layer, [](int, naive_policies::Vector v) {
            for (double& x : v) x *= 8;
            return v;
        });
        QVERIFY(sameLists(mean, m_bench.run("keydiff@20t", layer)));
    }

    // (b): no variant but the coordinate-wise median looks at axes.
    void rotatingAllKeys() {
        for (const char* options : {"", ":kvpress", ":pairwise", ",metric=dot", ",metric=euclidean"}) {
            TestLayer layer = TestLayer::random(m_seed, {2, 2, 97, 8});
            const std::string spec = std::string("keydiff") + options + "@20t";
            const PolicyOutcome before = m_bench.run(spec, layer);
            transformKeys(
                layer, [](int, const naive_policies::Vector& v) { return rotated(rotated(v, 0, 5, 0.7), 2, 3, -2.1); });
            QVERIFY2(sameLists(before, m_bench.run(spec, layer)), spec.c_str());
        }
    }

    void permutingTokens() {
        for (const char* options : {"", ":pairwise", ",anchor=median,metric=euclidean"}) {
            TestLayer layer = TestLayer::random(m_seed, {1, 1, 97, 8});
            const std::string spec = std::string("keydiff") + options + "@20t";
            std::vector<TokenIndex> before = keptOf(m_bench, spec, layer);
            std::vector<int> order(97);
            for (int i = 0; i < 97; ++i) order[static_cast<std::size_t>(i)] = i * 31 % 97; // 31 and 97 share no factor
            const auto keys = layer.plain.keys[0];
            for (std::size_t i = 0; i < 97; ++i) layer.plain.keys[0][static_cast<std::size_t>(order[i])] = keys[i];
            layer.refresh();
            for (TokenIndex& token : before) token = order[static_cast<std::size_t>(token)];
            std::sort(before.begin(), before.end());
            QCOMPARE(keptOf(m_bench, spec, layer), before);
        }
    }

    // (d): sum over i of <khat_i, mu>/||mu|| = n ||mu||, with mu the mean of unit keys.
    void cosinesAddUpToTheLengthOfTheAnchor() {
        const TestLayer layer = TestLayer::random(m_seed, {1, 1, 97, 8});
        const PolicyOutcome outcome = m_bench.run("keydiff:kvpress@20t", layer);
        double sum = 0, squares = 0;
        for (const float score : outcome.scores.total.data) sum -= score;
        naive_policies::Vector mu(8, 0.0);
        for (const naive_policies::Vector& key : layer.plain.keys[0]) {
            double square = 0;
            for (const double x : key) square += x * x;
            for (std::size_t c = 0; c < 8; ++c) mu[c] += key[c] / std::sqrt(square) / 97;
        }
        for (const double x : mu) squares += x * x;
        QVERIFY(std::abs(sum - 97 * std::sqrt(squares)) < 1e-4);
    }

    // (f), with room for one rounding.
    void cosineScoresAreBounded() {
        for (const char* spec : {"keydiff@5t", "keydiff:kvpress@5t", "keydiff,anchor=median@5t"})
            for (const float score : scoresOf(m_bench, spec, TestLayer::random(m_seed, {2, 2, 97, 3})))
                QVERIFY(std::abs(score) <= 1 + kOneRounding);
    }

    // K4: a zero key has cosine 0, far above the others' -0.8; antipodal keys have mu = 0 and earlier tokens win.
    void zeroKeysAndZeroAnchor() {
        const TestLayer zero = TestLayer::ofKeys({{2, 1}, {2, 1.1}, {0, 0}, {2, 0.9}});
        for (const char* options : {"", ":kvpress", ":pairwise"}) {
            const std::string spec = std::string("keydiff") + options + "@1t";
            QCOMPARE(keptOf(m_bench, spec, zero), std::vector<TokenIndex>{2});
            QCOMPARE(scoresOf(m_bench, spec, zero)[2], 0.0f);
        }
        const TestLayer antipodal = TestLayer::ofKeys({{1, 0}, {-1, 0}, {0, 3}, {0, -3}});
        for (const float score : scoresOf(m_bench, "keydiff@2t", antipodal)) QCOMPARE(score, 0.0f);
        QCOMPARE(keptOf(m_bench, "keydiff@2t", antipodal), (std::vector<TokenIndex>{0, 1}));
    }

    // (e): floor(w N) recent tokens are always kept and marked so; the count is min(n, N).
    // 0.58 of 50 and 0.7 of 90 are whole, although a hair below in binary.
    void slidingWindowIsKept() {
        const TestLayer layer = TestLayer::random(m_seed, {2, 2, 97, 8});
        for (const auto& [share, budget, window] :
             {std::tuple{"0.2", 24, 4}, {"0.58", 50, 29}, {"0.7", 90, 63}, {"0.1", 9, 0}, {"0.3", 10, 3}}) {
            const PolicyOutcome outcome =
                m_bench.run("keydiff,window_share=" + std::string(share) + "@" + std::to_string(budget) + "t", layer);
            for (const HeadSelection& head : outcome.selection.heads) {
                QCOMPARE(static_cast<int>(head.kept.size()), budget);
                QCOMPARE(static_cast<int>(head.protectedTokens.size()), window);
                for (int i = 0; i < window; ++i)
                    QCOMPARE(head.protectedTokens[static_cast<std::size_t>(i)], 97 - window + i);
            }
        }
    }

    void marginIsTheSmallestGap() {
        const TestLayer layer = TestLayer::random(m_seed, {2, 2, 97, 8});
        const PolicyOutcome outcome = m_bench.run("keydiff,protect_first=2@20t", layer);
        const std::vector<float> scores = outcome.scores.total.data;
        for (std::size_t h = 0; h < 2; ++h) {
            const HeadSelection& head = outcome.selection.heads[h];
            float worstKept = 2, bestEvicted = -2;
            for (TokenIndex i = 2; i < 97; ++i) {
                const bool kept = std::binary_search(head.kept.begin(), head.kept.end(), i);
                float& bound = kept ? worstKept : bestEvicted;
                const float score = scores[h * 97 + static_cast<std::size_t>(i)];
                bound = kept ? std::min(bound, score) : std::max(bound, score);
            }
            QCOMPARE(head.margin, worstKept - bestEvicted);
        }
        QCOMPARE(m_bench.run("keydiff@1", layer).selection.heads[0].margin, std::numeric_limits<float>::infinity());
    }

    void partsExplainTheScore() {
        const TestLayer layer = TestLayer::random(m_seed, {2, 2, 97, 8});
        const PolicyOutcome outcome = m_bench.run("keydiff@20t", layer);
        const auto total = outcome.scores.total.data;
        const auto similarity = outcome.scores.parts.at("similarity").data;
        for (std::size_t i = 0; i < total.size(); ++i) QCOMPARE(total[i], -similarity[i]);
        const PolicyOutcome far = m_bench.run("keydiff,metric=euclidean@20t", layer);
        QCOMPARE(far.scores.total.data, far.scores.parts.at("distance").data);
    }

    void labelsNameTheFormula() {
        const auto labelOf = [](const char* spec) {
            return policyById("keydiff").scoreLabel(PolicySpec::parse(spec).values);
        };
        QCOMPARE(labelOf("keydiff"), std::string("score −cos(μ, k)"));
        QCOMPARE(labelOf("keydiff"), policyById("keydiff").card().scoreLabel);
        QCOMPARE(labelOf("keydiff,metric=dot"), std::string("score −dot(μ, k)"));
        QCOMPARE(labelOf("keydiff:pairwise,metric=euclidean"), std::string("score Σ distance(k_j, k)"));
    }

    void threadsChangeNothing() {
        const TestLayer layer = TestLayer::random(m_seed, {4, 2, 512, 16});
        const PolicyBench one(1), three(3);
        for (const char* spec : {"keydiff@100t", "keydiff:pairwise@100t", "keydiff,prompt_block=37@100t"}) {
            const PolicyOutcome a = one.run(spec, layer), b = three.run(spec, layer);
            QVERIFY(sameLists(a, b));
            QCOMPARE(a.scores.total.data, b.scores.total.data);
        }
    }

private:
    PolicyBench m_bench;
    std::uint64_t m_seed = 20;
};

KVSCOPE_TEST(KeyDiffTest)
#include "keydiff_test.moc"
