// The theorems' demands against numbers worked out by hand, and the inequalities they promise on small examples.
#include "core/metrics/theory.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace kvscope;

namespace {

TheoryNorms smallNorms() { // r = 2, e^{2 r^2 / sqrt d} = e^2 with d = 16
    return {1024, 16, 16, 0.25, 2, 2};
}

TheoryDemand demand(const TheoryNorms& norms, const TheoryTargets& targets, const std::string& theorem,
                    const std::string& quantity) {
    for (const TheoryDemand& one : theoryDemands(norms, targets))
        if (one.theorem == theorem && one.quantity == quantity) return one;
    return {};
}

bool near(double got, double expected) { return std::abs(got - expected) <= 1e-9 * std::abs(expected); }

} // namespace

class TheoryTest : public QObject {
    Q_OBJECT

private slots:
    void balanceByHand() {
        TheoryTargets targets;
        targets.epsilon = 0.5;
        targets.batch = 64;
        const TheoryDemand t = demand(smallNorms(), targets, "BalanceKV Thm 3.4", "batch t");
        QVERIFY(near(t.demanded, 8 * std::exp(2.0))); // sqrt 16 e^2 / 0.5 = 59.1
        QVERIFY(t.met());
        QVERIFY(near(demand(smallNorms(), targets, "BalanceKV Thm 3.4", "levels T").demanded, 7 - 2 / std::log(2.0)));
        targets.delta = 1024 / std::exp(2.0);
        QVERIFY(near(demand(smallNorms(), targets, "BalanceKV Algorithm 2", "c").demanded, 60));
        QVERIFY(near(demand(smallNorms(), targets, "BalanceKV Thm 3.2", "memory of any algorithm").demanded, 4));
    }

    // Norms that all differ, so that a formula that reads another one gives another number.
    void everyFormulaReadsItsOwnNorm() {
        TheoryNorms norms{100, 16, 9, 0.5, 1, 2}; // query 1, key 2: r = 2
        TheoryTargets targets;
        targets.epsilon = 0.01;
        targets.delta = 0.1;
        QVERIFY(near(demand(norms, targets, "BalanceKV Thm 3.4", "batch t").demanded, 3 * std::exp(4.0) / 0.01));
        QVERIFY(near(demand(norms, targets, "BalanceKV Algorithm 2", "c").demanded, 30 * std::log(1000.0)));
        // 1/eps^2 = 10^4 is more than d e^{2 r^2 / sqrt d} = 16 e^4 = 874.
        QVERIFY(
            near(demand(norms, targets, "BalanceKV Thm 3.2", "memory of any algorithm").demanded, 16 * std::exp(4.0)));
        targets.clusterDiameter = 3;
        QVERIFY(
            near(demand(norms, targets, "SubGen Thm 1", "slots t").demanded, 1e4 * std::exp(3.0) * std::log(100.0)));
        norms.queryNorm = 5;
        QVERIFY(near(demand(norms, targets, "BalanceKV Thm 3.4", "batch t").demanded, 3 * std::exp(25.0) / 0.01));
        norms.tokens = 7; // fewer rows than columns: the rank is theirs
        QVERIFY(near(demand(norms, targets, "Compactor Thm 2", "sketch k").demanded,
                     12e4 * (7 * std::log(4200.0) + std::log(20.0))));
    }

    // What a theorem leaves open or cannot be, beside its number.
    void rowsSayWhatLimitsThem() {
        TheoryTargets targets;
        targets.epsilon = 0.5;
        const TheoryNorms norms{995, 64, 64, 0.125, 8, 8};
        const TheoryDemand memory = demand(smallNorms(), targets, "BalanceKV Thm 3.2", "memory of any algorithm");
        QVERIFY(!memory.isSetting && memory.unit == " bits" && !memory.met()); // a lower bound for every algorithm
        QVERIFY(!demand(norms, targets, "BalanceKV Thm 3.4", "levels T").isSetting);
        const auto caveat = [&](const char* theorem, const char* quantity) {
            return demand(norms, targets, theorem, quantity).caveat;
        };
        QCOMPARE(caveat("BalanceKV Thm 3.4", "batch t"),
                 std::string("constants and logarithms are 1; the prompt has only 995 tokens"));
        QCOMPARE(caveat("SubGen Thm 1", "reservoir s"), std::string("constant 1"));
        QCOMPARE(caveat("Compactor Thm 2", "sketch k"),
                 std::string("more columns than the keys' d = 64, where a sketch is exact (C5)"));
        QCOMPARE(caveat("BalanceKV Algorithm 2", "c"), std::string()); // its constant is the paper's
    }

    // K6: the proof bounds |k.q| by M, so that an M below 1 counts as 1.
    void shortKeysDoNotTightenTheLemma() {
        QVERIFY(near(leastCosineOfWeight(0.9, 3, 0.2), leastCosineOfWeight(0.9, 3, 1)));
        QVERIFY(leastCosineOfWeight(0.9, 3, 4) < leastCosineOfWeight(0.9, 3, 1));
        QVERIFY(near(leastCosineOfWeight(0.9, 3, 4), (std::log(0.75) + std::log(10.0)) / 8 - 1));
    }

    // The paper's own norms (Table 3: keys 15.6, d = 128) demand e^{2 r^2 / sqrt d} = 4.8e18 and no level at all (B1).
    void publishedNormsDoNotCompress() {
        const TheoryNorms norms{16384, 128, 128, 1 / std::sqrt(128.0), 15, 15.6};
        const double t = demand(norms, {}, "BalanceKV Thm 3.4", "batch t").demanded;
        QVERIFY(std::abs(t / (std::sqrt(128.0) * 4.8e18 / 0.1) - 1) < 0.02);
        QVERIFY(demand(norms, {}, "BalanceKV Thm 3.4", "levels T").demanded < 0);
        QVERIFY(std::isnan(demand(norms, {}, "BalanceKV Thm 3.2", "memory of any algorithm").demanded)); // r^2 > d
    }

    void subGenByHand() {
        TheoryTargets targets;
        targets.epsilon = 0.1;
        targets.clusterDiameter = 2;
        targets.clusterSlots = 10;
        const TheoryDemand t = demand(smallNorms(), targets, "SubGen Thm 1", "slots t"); // scaled query 0.5
        QVERIFY(near(t.demanded, 100 * std::exp(2.0) * std::log(1024.0)));
        QVERIFY(!t.met());
        QVERIFY(near(demand(smallNorms(), targets, "SubGen Thm 1", "reservoir s").demanded, 1600));
    }

    // C5: beyond 5,700 for rank 128 even at eps = delta = 1.
    void sketchDemandIsBeyondTheDimension() {
        TheoryTargets targets;
        targets.epsilon = targets.delta = 1;
        const TheoryNorms norms{16384, 128, 128, 0.1, 1, 1};
        QVERIFY(demand(norms, targets, "Compactor Thm 2", "sketch k").demanded > 5700);
        targets.delta = 128 / std::exp(1.0);
        QVERIFY(near(demand(norms, targets, "Compactor Thm 1", "sampled rows k").demanded, 128));
    }

    void boundsByHand() {
        const LeverageRatioBounds bounds = leverageRatioBounds(2, 1, 0.5);
        QVERIFY(near(bounds.high, 12) && near(bounds.low, 1.0 / 12));
    }

    // Thm 3.2 is a statement about any three unit directions with cosines a < 0 and b > 0.
    void cosineBoundHoldsForAllDirections() {
        std::mt19937 random(7);
        std::normal_distribution<double> normal;
        int tried = 0;
        for (int round = 0; round < 2000; ++round) {
            double x[3][4] = {}, length[3] = {};
            for (int v = 0; v < 3; ++v) {
                for (double& c : x[v]) c = normal(random), length[v] += c * c;
            }
            const auto cosine = [&](int u, int v) {
                double product = 0;
                for (int c = 0; c < 4; ++c) product += x[u][c] * x[v][c];
                return product / std::sqrt(length[u] * length[v]);
            };
            if (cosine(0, 2) >= 0 || cosine(1, 2) <= 0) continue;
            ++tried;
            QVERIFY(cosine(0, 1) <= largestCosineToMean(cosine(0, 2), cosine(1, 2)) + 1e-12);
        }
        QVERIFY(tried > 200);
    }

    // Theorem C.1: a key of attention weight w among n others of squared norm below M.
    void weightForcesACosine() {
        std::mt19937 random(8);
        std::normal_distribution<double> normal;
        for (int round = 0; round < 500; ++round) {
            std::vector<std::array<double, 3>> keys(6);
            double largest = 0, all = 0;
            for (auto& key : keys) {
                for (double& c : key) c = 0.7 * normal(random);
                largest = std::max(largest, key[0] * key[0] + key[1] * key[1] + key[2] * key[2]);
                all += std::exp(key[0]); // the query is the first axis
            }
            const double m = std::max(1.0, largest) * 1.0001; // the proof needs M above 1 (K6)
            const double norm = std::sqrt(keys[0][0] * keys[0][0] + keys[0][1] * keys[0][1] + keys[0][2] * keys[0][2]);
            const double least = leastCosineOfWeight(std::exp(keys[0][0]) / all, 5, m);
            QVERIFY(keys[0][0] / norm >= least - 1e-12);
        }
        QVERIFY(near(leastCosineOfWeight(0.5, 1, 1), -1.0)); // ln(1/2) - ln(1/2) = 0
    }
};

KVSCOPE_TEST(TheoryTest)
#include "theory_test.moc"
