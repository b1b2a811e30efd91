// What a halving costs one query, against numbers worked out by hand and against sums written down once more.
#include "core/policies/balance/balance_errors.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <numeric>

using namespace kvscope;

namespace {

/// Logits ln(w): the query gives row i the weight w_i.
QuerySight sightOf(const std::vector<double>& weights, const std::vector<float>& values, std::int64_t width) {
    QuerySight sight;
    for (const double w : weights) sight.logits.push_back(std::log(w));
    sight.values = {{static_cast<std::int64_t>(weights.size()), width}, values};
    return sight;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max({1.0, std::abs(a), std::abs(b)}); }

} // namespace

class BalanceErrorsTest : public QObject {
    Q_OBJECT

private slots:
    void logitsAreScaledAndCapped() {
        const HostTensor keys{{2, 2}, {1, 2, -3, 4}};
        const std::vector<float> query = {2, 0.5F};
        AttentionRule rule;
        rule.scaling = 0.5;
        const std::vector<double> plain = queryLogits(query, keys, rule);
        QCOMPARE(plain, (std::vector<double>{1.5, -2}));
        rule.softcap = 2;
        const std::vector<double> capped = queryLogits(query, keys, rule);
        QVERIFY(near(capped[0], 2 * std::tanh(0.75)) && near(capped[1], 2 * std::tanh(-1.0)));
    }

    // Weights 1, 2, 3, 4 with signs + - - +: the denominator's halves hold 5 and 5, so they agree; with + + - - they
    // hold 3 and 7, a difference of 4 in 10. With values (1,0), (0,1), (1,0), (0,1): + - - + leaves (1 - 3, -2 + 4),
    // length sqrt 8, of (4, 6), length sqrt 52.
    void discrepancyByHand() {
        const QuerySight sight = sightOf({1, 2, 3, 4}, {1, 0, 0, 1, 1, 0, 0, 1}, 2);
        const BalanceNode even{{0, 1, 2, 3}, {0, 3}, {1, -1, -1, 1}}, uneven{{0, 1, 2, 3}, {0, 1}, {1, 1, -1, -1}};
        QVERIFY(near(halvingDiscrepancy(even, false, sight), 0));
        QVERIFY(near(halvingDiscrepancy(uneven, false, sight), 0.4));
        QVERIFY(near(halvingDiscrepancy(even, true, sight), std::sqrt(8.0 / 52)));
    }

    void discrepancyDoesNotOverflow() {
        QuerySight sight = sightOf({1, 2, 3, 4}, {1, 1, 1, 1}, 1);
        const BalanceNode node{{0, 1, 2, 3}, {0, 1}, {1, 1, -1, -1}};
        const double expected = halvingDiscrepancy(node, true, sight);
        for (double& logit : sight.logits) logit += 5000; // cancels
        QVERIFY(near(halvingDiscrepancy(node, true, sight), expected));
    }

    // The relative error of a halving is what its doubled output misses of the node's own sum.
    void discrepancyIsTheErrorOfTheDoubledHalf() {
        const BalanceStream stream =
            streamOf({.batch = 16, .levels = 2, .steps = StepSize::Manual, .c = 1, .erase = EraseLine::None});
        const QuerySight sight = sight0(stream);
        for (const BalanceTree& tree : stream.trees)
            for (const auto& level : tree.nodes)
                for (const BalanceNode& node : level) {
                    if (tree.kvHead != 0) continue;
                    std::vector<double> missing(tree.numerator ? 4 : 1), whole = missing;
                    const auto add = [&](TokenIndex row, double factor, std::vector<double>& sum) {
                        for (std::size_t c = 0; c < sum.size(); ++c)
                            sum[c] += factor * std::exp(sight.logits[std::size_t(row)]) *
                                      (tree.numerator ? double{sight.values.data[std::size_t(row) * 4 + c]} : 1.0);
                    };
                    for (const TokenIndex row : node.input) {
                        add(row, -1, missing);
                        add(row, 1, whole);
                    }
                    for (const TokenIndex row : node.output) add(row, 2, missing);
                    const auto norm = [](const std::vector<double>& v) {
                        return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
                    };
                    QVERIFY(std::abs(halvingDiscrepancy(node, tree.numerator, sight) - norm(missing) / norm(whole)) <
                            1e-9);
                }
    }

    // What is stored at a cursor, written out once more from the sets.
    void streamErrorsAreThoseOfTheStoredSets() {
        const BalanceStream stream =
            streamOf({.batch = 16, .levels = 2, .steps = StepSize::Manual, .c = 1, .erase = EraseLine::None});
        const QuerySight sight = sight0(stream);
        const std::vector<TokenIndex> cursors = {1, 15, 16, 40, 97};
        const std::vector<StreamErrors> all = streamErrors(stream, 0, cursors, sight);
        for (std::size_t k = 0; k < cursors.size(); ++k) {
            const TokenIndex cursor = cursors[k];
            std::vector<double> exact(4), stored(4);
            double den = 0, storedDen = 0, square = 0, frobenius = 0;
            const auto e = [&](TokenIndex row) { return std::exp(sight.logits[std::size_t(row)]); };
            const auto v = [&](TokenIndex row, std::size_t c) {
                return double{sight.values.data[std::size_t(row) * 4 + c]};
            };
            for (TokenIndex row = 0; row < cursor; ++row) {
                den += e(row);
                square += e(row) * e(row);
                for (std::size_t c = 0; c < 4; ++c) {
                    exact[c] += e(row) * v(row, c);
                    frobenius += v(row, c) * v(row, c);
                }
            }
            for (const BalanceTree& tree : stream.trees) {
                if (tree.kvHead != 0) continue;
                const auto sets = tree.setsAt(cursor);
                for (std::size_t level = 0; level < sets.size(); ++level)
                    for (const TokenIndex row : sets[level]) {
                        const double w = double(1 << level) * e(row);
                        storedDen += tree.numerator ? 0 : w;
                        for (std::size_t c = 0; tree.numerator && c < 4; ++c) stored[c] += w * v(row, c);
                    }
            }
            double num = 0, out = 0, a = 0;
            for (std::size_t c = 0; c < 4; ++c) {
                num += std::pow(stored[c] - exact[c], 2);
                out += std::pow(stored[c] / storedDen - exact[c] / den, 2);
                a += std::pow(exact[c] / den, 2);
            }
            const StreamErrors& errors = all[k];
            QVERIFY(std::abs(errors.numerator - std::sqrt(num) / std::sqrt(square * frobenius)) < 1e-9);
            QVERIFY(std::abs(errors.denominator - std::abs(storedDen - den) / den) < 1e-9);
            QVERIFY(std::abs(errors.output - std::sqrt(out / a)) < 1e-9);
            QVERIFY(std::abs(errors.epsilon - std::sqrt(out) / (std::sqrt(square) / den * std::sqrt(frobenius))) <
                    1e-9);
            QVERIFY(cursor >= 16 || errors.output < 1e-12); // C^0 is exact
        }
        QVERIFY(all.back().output > 1e-3);
    }

    // Logits hundreds apart: what was summed before a larger one vanishes, and nothing becomes NaN.
    void risingLogitsKeepTheSumsFinite() {
        const BalanceStream stream =
            streamOf({.batch = 16, .levels = 2, .steps = StepSize::Manual, .c = 1, .erase = EraseLine::None});
        QuerySight sight = sight0(stream);
        for (std::size_t i = 0; i < sight.logits.size(); ++i) sight.logits[i] = 900.0 * double(i) - 4000;
        const std::vector<TokenIndex> cursors = {3, 20, 97};
        for (const StreamErrors& errors : streamErrors(stream, 0, cursors, sight)) {
            QVERIFY(std::isfinite(errors.output) && std::isfinite(errors.numerator) && std::isfinite(errors.epsilon));
            QVERIFY(errors.output < 1e-9); // the newest pair has all the weight and lies in C^0, or is all that matters
        }
    }

private:
    BalanceStream streamOf(const StreamSettings& settings) {
        const Checkpoint checkpoint;
        return buildBalanceStream(m_bench.inputOf(m_layer, checkpoint), settings, nullptr);
    }

    /// A random query on the keys and values of head 0.
    QuerySight sight0(const BalanceStream& stream) const {
        QuerySight sight;
        const auto n = std::size_t(stream.tokens);
        sight.values = {{stream.tokens, 4},
                        {m_layer.values.data.begin(), m_layer.values.data.begin() + std::ptrdiff_t(n * 4)}};
        for (std::size_t i = 0; i < n; ++i)
            sight.logits.push_back(2 * double{m_layer.keys.data[i * 4]} - double{m_layer.keys.data[i * 4 + 2]});
        return sight;
    }

    static TestLayer makeLayer() {
        TestLayer layer = TestLayer::random(21, {2, 2, 97, 4});
        layer.values = TestLayer::random(22, {2, 2, 97, 4}).keys;
        return layer;
    }

    PolicyBench m_bench;
    TestLayer m_layer = makeLayer();
};

KVSCOPE_TEST(BalanceErrorsTest)
#include "balance_errors_test.moc"
