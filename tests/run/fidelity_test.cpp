// The measures against naive double loops, and the identities that they obey.
#include "core/metrics/fidelity.h"
#include "tests/run/counting_engine.h"
#include "tests/run/naive_attention.h"
#include "tests/support/random_capture.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <memory>
#include <random>
#include <set>

using namespace kvscope;

namespace {

// Outputs are rounded to float once: a relative error near 1 is off by some 1e-7, and the logarithms of the mass by the
// spacing of floats near them.
constexpr double kTolerance = 3e-6;

struct Case {
    naive::Layer layer;
    TokenIndex cut = 0;
    std::vector<WeightedSet> kept;
    bool seen = false;

    std::int64_t kvHeads() const { return layer.keys.shape[0]; }
};

HostTensor lastRows(const HostTensor& tensor, std::int64_t count) {
    HostTensor last{{tensor.shape[0], count, tensor.shape[2]}, {}};
    for (std::int64_t h = 0; h < tensor.shape[0]; ++h) {
        const auto end = tensor.data.begin() + (h + 1) * tensor.shape[1] * tensor.shape[2];
        last.data.insert(last.data.end(), end - count * tensor.shape[2], end);
    }
    return last;
}

Case makeCase(unsigned seed, std::int64_t n, TokenIndex cut, std::int64_t evaluationQueries) {
    const auto capture = makeRandomCapture(seed, n, 1, 4, 2, 8);
    Case c;
    c.layer.keys = capture->read(LayerIndex(0), TensorRole::Keys, {});
    c.layer.values = capture->read(LayerIndex(0), TensorRole::Values, {});
    c.layer.queries = lastRows(capture->read(LayerIndex(0), TensorRole::Queries, {}), evaluationQueries);
    c.layer.firstQuery = static_cast<TokenIndex>(n - evaluationQueries);
    const LayerInfo& info = capture->info().layers.front();
    c.layer.rule = {info.scaling, 0, 0, info.gqaGroupOf};
    c.cut = cut;
    return c;
}

/// Random kept sets; with weights on `weighted` heads.
void keepRandomly(Case& c, unsigned seed, double share, bool weighted, bool perQueryHead = false) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform;
    c.kept.assign(static_cast<std::size_t>(perQueryHead ? c.layer.queries.shape[0] : c.kvHeads()), {});
    for (WeightedSet& set : c.kept)
        for (TokenIndex token = 0; token < c.cut; ++token) {
            if (uniform(random) >= share) continue;
            set.numerator.push_back(token);
            if (weighted) {
                set.numeratorWeights.push_back(static_cast<float>(1 << (random() % 3)));
                set.denominatorWeights.push_back(static_cast<float>(1 << (random() % 3)));
            }
        }
}

FidelityInput inputOf(const Engine& engine, const Case& c) {
    return {engine.upload(c.layer.queries),
            engine.upload(c.layer.keys),
            engine.upload(c.layer.values),
            c.layer.firstQuery,
            c.cut,
            c.seen,
            c.layer.rule};
}

Fidelity measured(const Engine& engine, const Case& c) {
    const FidelityInput input = inputOf(engine, c);
    return measureFidelity(engine, input, exactAttention(engine, input, {}), c.kept, {});
}

naive::Outcome expected(const Case& c, std::int64_t queryHead, std::int64_t query) {
    const bool own = std::cmp_greater(c.kept.size(), c.kvHeads());
    const WeightedSet& set = c.kept[static_cast<std::size_t>(
        own ? queryHead : c.layer.rule.gqaGroupOf[static_cast<std::size_t>(queryHead)])];
    std::vector<double> w(static_cast<std::size_t>(c.cut)), u(w);
    std::vector<bool> kept(w.size());
    for (std::size_t i = 0; i < set.numerator.size(); ++i) {
        const auto token = static_cast<std::size_t>(set.numerator[i]);
        kept[token] = set.numeratorWeights.empty() || set.numeratorWeights[i] != 0;
        w[token] += set.numeratorWeights.empty() ? 1 : set.numeratorWeights[i];
        if (set.denominator.empty()) u[token] += set.denominatorWeights.empty() ? 1 : set.denominatorWeights[i];
    }
    for (std::size_t i = 0; i < set.denominator.size(); ++i)
        u[static_cast<std::size_t>(set.denominator[i])] +=
            set.denominatorWeights.empty() ? 1 : set.denominatorWeights[i];
    return naive::attend(c.layer, queryHead, query, c.cut, w, u, kept);
}

void compareWithNaive(const Case& c, const Fidelity& fidelity) {
    std::int64_t skipped = 0;
    for (std::int64_t h = 0; h < c.layer.queries.shape[0]; ++h) {
        double errors = 0, masses = 0, count = 0;
        for (std::int64_t q = 0; q < c.layer.queries.shape[1]; ++q) {
            const naive::Outcome outcome = expected(c, h, q);
            const auto at = static_cast<std::size_t>(h * c.layer.queries.shape[1] + q);
            const double error = fidelity.outputError.data[at], mass = fidelity.retainedMass.data[at];
            QVERIFY2(
                std::abs(mass - outcome.mass) <= kTolerance,
                qPrintable(QString("head %1 query %2: mass %3, not %4").arg(h).arg(q).arg(mass).arg(outcome.mass)));
            masses += outcome.mass;
            if (outcome.nothingLeft) {
                QVERIFY(std::isnan(error) && mass == 0);
                ++skipped;
                continue;
            }
            const double truth = naive::distance(outcome.output, outcome.exact) / naive::norm(outcome.exact);
            QVERIFY2(std::abs(error - truth) <= kTolerance * std::max(1.0, truth),
                     qPrintable(QString("head %1 query %2: %3, not %4").arg(h).arg(q).arg(error).arg(truth)));
            errors += truth;
            count += 1;
        }
        const auto head = static_cast<std::size_t>(h);
        QVERIFY(count == 0 ||
                std::abs(fidelity.meanOutputError[head] - errors / count) <= kTolerance * (1 + errors / count));
        const auto queries = static_cast<double>(c.layer.queries.shape[1]);
        QVERIFY(std::abs(fidelity.meanRetainedMass[head] - masses / queries) <= kTolerance);
    }
    QCOMPARE(fidelity.skipped, skipped);
}

void compareWithNaive(const Engine& engine, const Case& c) { compareWithNaive(c, measured(engine, c)); }

using Families = std::vector<std::vector<WeightedSet>>;

/// Families of which each contains the ones of smaller shares, as random as keepRandomly's.
Families nestedRandomly(Case c, unsigned seed, bool perQueryHead, const std::vector<double>& shares) {
    Families families;
    for (const double share : shares) {
        keepRandomly(c, seed, share, false, perQueryHead);
        families.push_back(c.kept);
    }
    return families;
}

} // namespace

class FidelityTest : public QObject {
    Q_OBJECT

private:
    std::unique_ptr<Engine> m_engine = makeCpuEngine();

private slots:
    void againstNaiveLoops_data() {
        QTest::addColumn<double>("share");
        QTest::addColumn<bool>("weighted");
        QTest::addColumn<double>("softcap");
        QTest::addColumn<int>("window");
        QTest::newRow("plain") << 0.3 << false << 0.0 << 0;
        QTest::newRow("few") << 0.05 << false << 0.0 << 0;
        QTest::newRow("none kept") << 0.0 << false << 0.0 << 0;
        QTest::newRow("weighted") << 0.3 << true << 0.0 << 0;
        QTest::newRow("softcap") << 0.3 << false << 1.5 << 0;
        QTest::newRow("sliding window over the cut") << 0.3 << false << 0.0 << 20;
        QTest::newRow("sliding window after the cut") << 0.3 << true << 0.0 << 3;
        QTest::newRow("none kept, sinks") << 0.0 << false << 0.0 << -3;
        QTest::newRow("weighted, sinks") << 0.3 << true << 1.5 << -20;
    }

    void againstNaiveLoops() {
        QFETCH(double, share);
        QFETCH(bool, weighted);
        QFETCH(double, softcap);
        QFETCH(int, window);
        for (unsigned seed = 1; seed <= 3; ++seed) {
            qInfo() << "seed" << seed;
            Case c = makeCase(seed, 60, 45, 13); // two queries after the cut were not captured
            c.layer.rule.softcap = softcap;
            c.layer.rule.slidingWindow = std::abs(window);
            if (window < 0) c.layer.rule.sinks = {0.5F, 3, -4, 6};
            keepRandomly(c, seed, share, weighted);
            compareWithNaive(*m_engine, c);
        }
    }

    void queryHeadsWithSetsOfTheirOwn() {
        for (const bool weighted : {false, true}) {
            Case c = makeCase(9, 60, 45, 13);
            keepRandomly(c, 9, 0.2, weighted, true);
            QCOMPARE(c.kept.size(), std::size_t{4});
            compareWithNaive(*m_engine, c);
        }
    }

    void nestedFamiliesAreComputedTogether_data() {
        QTest::addColumn<bool>("perQueryHead");
        QTest::addColumn<int>("window");
        QTest::newRow("sets of KV heads") << false << 0;
        QTest::newRow("sets of query heads") << true << 0;
        QTest::newRow("sliding window") << false << 20;
        QTest::newRow("sinks") << true << -60;
    }

    // A family of other tokens and one with weights are left to be compared alone.
    void nestedFamiliesAreComputedTogether() {
        QFETCH(bool, perQueryHead);
        QFETCH(int, window);
        Case c = makeCase(21, 60, 45, 13);
        c.layer.rule.slidingWindow = std::abs(window);
        if (window < 0) c.layer.rule.sinks = {0.5F, 3, -4, 6};
        Families families = nestedRandomly(c, 3, perQueryHead, {0.7, 0, 0.2, 0.4});
        families.push_back(nestedRandomly(c, 4, perQueryHead, {0.5}).front());
        keepRandomly(c, 3, 0.4, true, perQueryHead);
        families.push_back(c.kept);
        const CountingEngine engine;
        const FidelityInput input = inputOf(engine, c);
        const ExactAttention exact = exactAttention(engine, input, {}, nestedFamilies(families));
        QCOMPARE(exact.nested.size(), std::size_t{4});
        QCOMPARE(exact.overNested.size(), std::size_t{4});
        for (std::size_t i = 0; i < families.size(); ++i) {
            c.kept = families[i];
            compareWithNaive(c, measureFidelity(engine, input, exact, c.kept, {}));
            QCOMPARE(engine.count("kept attention"), i < 4 ? 0 : i == 4 ? 1 : 3);
        }
    }

    // The largest weights are e^-1000 of those of evicted tokens, or less.
    void nestedFamiliesMayHaveHardlyAnyWeight() {
        Case c = makeCase(22, 60, 45, 13);
        const Families families = nestedRandomly(c, 3, false, {0.1, 0.9});
        for (std::int64_t h = 0; h < c.kvHeads(); ++h)
            for (TokenIndex token = 45; token < 60; ++token) // no other weight is large, either
                for (std::int64_t i = 0; i < 8; ++i)
                    c.layer.keys.data[static_cast<std::size_t>((h * 60 + token) * 8 + i)] =
                        c.layer.keys.data[static_cast<std::size_t>(
                            (h * 60 + families[0][static_cast<std::size_t>(h)].numerator.front()) * 8 + i)];
        c.layer.rule.scaling = 3000;
        const CountingEngine engine;
        const FidelityInput input = inputOf(engine, c);
        const ExactAttention exact = exactAttention(engine, input, {}, nestedFamilies(families));
        QVERIFY(exact.overNested.at(0).logDenominator.empty());
        const ExactAttention alone = exactAttention(engine, input, {});
        for (const std::vector<WeightedSet>& family : families) {
            const Fidelity fidelity = measureFidelity(engine, input, exact, family, {});
            const Fidelity expected = measureFidelity(engine, input, alone, family, {});
            for (std::size_t i = 0; i < fidelity.outputError.data.size(); ++i) {
                QVERIFY(std::abs(fidelity.outputError.data[i] - expected.outputError.data[i]) <= kTolerance);
                QVERIFY(std::abs(fidelity.retainedMass.data[i] - expected.retainedMass.data[i]) <= kTolerance);
            }
        }
    }

    void seenQueriesSkipWhatSeesNothing() {
        Case c = makeCase(5, 40, 40, 40); // cut none: every query evaluates, and only tokens from 10 on are kept
        c.seen = true;
        keepRandomly(c, 5, 0.5, false);
        for (WeightedSet& set : c.kept) std::erase_if(set.numerator, [](TokenIndex token) { return token < 10; });
        compareWithNaive(*m_engine, c);
        const Fidelity fidelity = measured(*m_engine, c);
        QVERIFY(fidelity.skipped >= 4 * 10);
        QVERIFY(fidelity.seenQueries);
    }

    // A query has an output, 0 perhaps, where it sees something of the denominator's sample.
    void seenQueriesSkipWhatHasNoDenominator() {
        Case c = makeCase(13, 12, 12, 12);
        c.seen = true;
        c.kept.assign(2, {{2}, {}, {8}, {}});
        c.kept[1] = {{8}, {}, {2}, {}};
        const Fidelity fidelity = measured(*m_engine, c);
        for (std::size_t h = 0; h < 4; ++h)
            for (std::size_t q = 0; q < 8; ++q) {
                const std::size_t at = h * 12 + q;
                const float error = fidelity.outputError.data[at], mass = fidelity.retainedMass.data[at];
                const bool outputs = c.layer.rule.gqaGroupOf[h] == 1 && q >= 2; // z = 0
                QVERIFY(outputs ? error == 1 : std::isnan(error));
                QVERIFY(std::abs(mass - expected(c, std::int64_t(h), std::int64_t(q)).mass) <= kTolerance);
            }
        QCOMPARE(fidelity.skipped, 2 * 8 + 2 * 2);
    }

    void differentSetsForNumeratorAndDenominator() {
        Case c = makeCase(6, 50, 30, 20);
        keepRandomly(c, 6, 0.4, false);
        Case other = c;
        keepRandomly(other, 7, 0.5, false);
        for (std::size_t h = 0; h < c.kept.size(); ++h) {
            c.kept[h].denominator = other.kept[h].numerator;
            c.kept[h].denominatorWeights.assign(c.kept[h].denominator.size(), 2);
        }
        const Fidelity fidelity = measured(*m_engine, c);
        for (std::int64_t q = 0; q < 20; ++q) {
            const naive::Outcome outcome = expected(c, 1, q);
            const auto at = static_cast<std::size_t>(20 + q);
            const double truth = naive::distance(outcome.output, outcome.exact) / naive::norm(outcome.exact);
            QVERIFY(std::abs(fidelity.outputError.data[at] - truth) <= kTolerance * std::max(1.0, truth));
            QVERIFY(std::abs(fidelity.retainedMass.data[at] - outcome.mass) <= kTolerance);
        }
    }

    // Two samples, given as lists with repetitions or as weights on their union, are one estimator (HeadSelection).
    void twoSamplesAreWeightsOnTheirUnion() {
        Case lists = makeCase(12, 40, 20, 12);
        lists.kept.assign(2, {{2, 5, 5, 9}, {1, 2, 3, 4}, {3, 5, 17}, {7, 1, 2}});
        Case united = lists;
        united.kept.assign(2, {{2, 3, 5, 9, 17}, {1, 0, 5, 4, 0}, {}, {0, 7, 1, 0, 2}});
        const Fidelity a = measured(*m_engine, lists), b = measured(*m_engine, united);
        QCOMPARE(b.retainedMass.data, a.retainedMass.data);
        for (std::size_t at = 0; at < a.outputError.data.size(); ++at)
            QVERIFY(std::abs(a.outputError.data[at] - b.outputError.data[at]) <= kTolerance * a.outputError.data[at]);
        compareWithNaive(*m_engine, united);
    }

    void keepingAllCostsNothing() {
        Case c = makeCase(8, 50, 30, 20);
        keepRandomly(c, 8, 2, false);
        const Fidelity fidelity = measured(*m_engine, c);
        for (const float error : fidelity.outputError.data) QCOMPARE(error, 0.0F);
        for (const float mass : fidelity.retainedMass.data) QCOMPARE(mass, 1.0F);
        QCOMPARE(fidelity.skipped, 0);
    }

    // ||a - z|| = (1 - m) ||abar_evicted - z|| for renormalised eviction.
    void distanceIsLostMassTimesDistanceToTheEvicted() {
        Case c = makeCase(9, 60, 45, 15);
        keepRandomly(c, 9, 0.3, false);
        const Fidelity fidelity = measured(*m_engine, c);
        for (std::int64_t h = 0; h < 4; ++h)
            for (std::int64_t q = 0; q < 15; ++q) {
                const naive::Outcome outcome = expected(c, h, q);
                const auto at = static_cast<std::size_t>(h * 15 + q);
                const double left = fidelity.outputError.data[at] * naive::norm(outcome.exact);
                const double right =
                    (1 - fidelity.retainedMass.data[at]) * naive::distance(outcome.evicted, outcome.output);
                QVERIFY(std::abs(left - right) <= 10 * kTolerance);
            }
    }

    void zeroOutputIsSkipped() {
        Case c = makeCase(10, 30, 20, 10);
        std::fill(c.layer.values.data.begin(), c.layer.values.data.begin() + 30 * 8, 0.0F); // KV head 0
        keepRandomly(c, 10, 0.5, false);
        const Fidelity fidelity = measured(*m_engine, c);
        QCOMPARE(fidelity.skipped, 2 * 10); // two query heads read KV head 0
        QVERIFY(std::isnan(fidelity.meanOutputError[0]) && std::isnan(fidelity.meanOutputError[1]));
        QVERIFY(fidelity.meanOutputError[2] > 0);
        QVERIFY(fidelity.meanRetainedMass[0] > 0); // the mass does not divide by the output
    }

    void meansLeaveOutNaN() {
        const std::vector<double> none = {NAN, NAN}, some = {1, NAN, 3};
        QVERIFY(std::isnan(meanOfNumbers(none)) && std::isnan(meanOfNumbers({})));
        QCOMPARE(meanOfNumbers(some), 2.0);
    }

    void jaccardAgainstSets() {
        QCOMPARE(jaccard({}, {}), 1.0);
        std::mt19937 random(11);
        for (int round = 0; round < 200; ++round) {
            std::set<TokenIndex> a, b, both, either;
            for (unsigned i = random() % 20; i > 0; --i) a.insert(static_cast<TokenIndex>(random() % 25));
            for (unsigned i = random() % 20; i > 0; --i) b.insert(static_cast<TokenIndex>(random() % 25));
            for (TokenIndex t = 0; t < 25; ++t) {
                if (a.contains(t) && b.contains(t)) both.insert(t);
                if (a.contains(t) || b.contains(t)) either.insert(t);
            }
            const std::vector<TokenIndex> x(a.begin(), a.end()), y(b.begin(), b.end());
            const double truth =
                either.empty() ? 1 : static_cast<double>(both.size()) / static_cast<double>(either.size());
            QCOMPARE(jaccard(x, y), truth);
            QCOMPARE(jaccard(y, x), truth);
        }
    }
};

KVSCOPE_TEST(FidelityTest)
#include "fidelity_test.moc"
