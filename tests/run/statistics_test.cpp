// The small statistics against hand-computed numbers and exhaustive search.
#include "core/engine/engine.h"
#include "core/metrics/statistics.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace kvscope;

namespace {

std::vector<float> randomRows(unsigned seed, std::size_t count) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> rows(count);
    for (float& x : rows) x = normal(random);
    return rows;
}

/// ln det of a symmetric positive matrix by Gaussian elimination.
double logDeterminant(std::vector<std::vector<double>> m) {
    double sum = 0;
    for (std::size_t p = 0; p < m.size(); ++p) {
        sum += std::log(m[p][p]);
        for (std::size_t r = p + 1; r < m.size(); ++r)
            for (std::size_t c = m.size(); c-- > p;) m[r][c] -= m[r][p] / m[p][p] * m[p][c];
    }
    return sum;
}

/// K K^T, or K^T K, plus ridge on the diagonal.
std::vector<std::vector<double>> gram(const std::vector<float>& rows, std::size_t n, std::size_t d, bool ofRows,
                                      double ridge) {
    const std::size_t size = ofRows ? n : d;
    std::vector<std::vector<double>> g(size, std::vector<double>(size));
    for (std::size_t a = 0; a < size; ++a)
        for (std::size_t b = 0; b < size; ++b) {
            for (std::size_t i = 0; i < (ofRows ? d : n); ++i)
                g[a][b] +=
                    ofRows ? double{rows[a * d + i]} * rows[b * d + i] : double{rows[i * d + a]} * rows[i * d + b];
            g[a][b] += a == b ? ridge : 0;
        }
    return g;
}

double cosineSumByDefinition(const std::vector<float>& rows, std::int64_t d, const std::vector<TokenIndex>& kept) {
    double sum = 0;
    for (const TokenIndex i : kept)
        for (const TokenIndex j : kept) {
            double product = 0, a = 0, b = 0;
            for (std::int64_t c = 0; c < d; ++c) {
                const double x = rows[std::size_t(i * d + c)], y = rows[std::size_t(j * d + c)];
                product += x * y, a += x * x, b += y * y;
            }
            sum += product / std::sqrt(a * b);
        }
    return sum;
}

} // namespace

class StatisticsTest : public QObject {
    Q_OBJECT

private slots:
    // Quantiles of a table; a power law without noise is found, one with noise as often as its interval says.
    void studentQuantiles() {
        for (const auto& [degrees, quantile] :
             {std::pair(1, 12.706), {2, 4.303}, {5, 2.571}, {10, 2.228}, {11, 2.201}, {20, 2.086}, {60, 2.000}})
            QVERIFY2(std::abs(studentQuantile95(degrees) - quantile) < 6e-4, std::to_string(degrees).c_str());
    }

    void powerLawsByHand() {
        const std::vector<double> x = {1, 2, 4, 8}, y = {12, 6, 3, 1.5};
        const PowerLaw exact = fitPowerLaw(x, y);
        QVERIFY(std::abs(exact.exponent + 1) < 1e-12 && std::abs(exact.factor - 12) < 1e-9 &&
                exact.halfInterval < 1e-9);
        // ln y over ln x in units of ln 2: 0, 1, 1, 2 over 0, 1, 2, 3. Slope 3/5; residuals -0.1, 0.3, -0.3, 0.1, so
        // s^2 = 0.2 / 2 and the slope's error sqrt(0.1 / 5).
        const std::vector<double> bent = {1, 2, 2, 4};
        const PowerLaw law = fitPowerLaw(x, bent);
        QVERIFY(std::abs(law.exponent - 0.6) < 1e-12);
        QVERIFY(std::abs(law.halfInterval - 4.3027 * std::sqrt(0.02)) < 1e-4);
        QCOMPARE(law.points, 4);
        const PowerLaw some = fitPowerLaw(std::vector<double>{1, 0, 2, NAN, 4}, std::vector<double>{1, 5, 4, 3, 16});
        QVERIFY(std::abs(some.exponent - 2) < 1e-12);
        QCOMPARE(some.points, 3);
        QVERIFY(std::isnan(fitPowerLaw(std::vector<double>{2, 2}, std::vector<double>{1, 3}).exponent));
        QVERIFY(std::isnan(fitPowerLaw({}, {}).exponent));
    }

    // 2,000 noisy laws: 95 % of the intervals hold the truth. 94 to 96 % is two standard deviations; 93.3 to 96.7 false
    // in one of two thousand runs, and the seed is fixed.
    void intervalsOfPowerLawsHoldTheTruth() {
        std::mt19937 random(5);
        std::normal_distribution<double> noise(0, 0.3);
        int held = 0;
        for (int trial = 0; trial < 2000; ++trial) {
            std::vector<double> x, y;
            for (int i = 0; i < 7; ++i) {
                x.push_back(std::exp(0.3 * i));
                y.push_back(std::exp(2 - 0.5 * 0.3 * i + noise(random)));
            }
            const PowerLaw law = fitPowerLaw(x, y);
            held += std::abs(law.exponent + 0.5) <= law.halfInterval ? 1 : 0;
        }
        QVERIFY2(held > 1866 && held < 1934, std::to_string(held).c_str());
    }

    void summaryByHand() {
        const std::vector<double> numbers = {2, NAN, 4, 6};
        const Summary summary = summaryOf(numbers);
        QCOMPARE(summary.count, 3);
        QCOMPARE(summary.mean, 4.0);
        QCOMPARE(summary.deviation, 2.0);                                                 // sqrt((4 + 0 + 4) / 2)
        QVERIFY(std::abs(summary.halfInterval() - 4.302653 * 2 / std::sqrt(3.0)) < 1e-3); // two degrees of freedom
        QVERIFY(std::isnan(summaryOf({}).mean) && std::isnan(summaryOf({}).halfInterval()));
        const Summary one = summaryOf(std::vector<double>{3});
        QVERIFY(one.mean == 3 && std::isnan(one.halfInterval()));
        QVERIFY(std::isnan(one.deviation) && std::isnan(summaryOf({}).deviation)); // unknown, which 0 would deny
    }

    // {1, 3} and {8}: mean 4, squares 9 + 1 + 16, deviation sqrt(13).
    void summariesMergeAsTheirNumbersDo() {
        const Summary pair = summaryOf(std::vector<double>{1, 3}), one = summaryOf(std::vector<double>{8});
        for (const Summary& both : {merged(pair, one), merged(one, pair)}) {
            QCOMPARE(both.count, 3);
            QVERIFY(std::abs(both.mean - 4) < 1e-12 && std::abs(both.deviation - std::sqrt(13.0)) < 1e-12);
        }
        QVERIFY(merged({}, pair).mean == 2 && merged(pair, {}).count == 2);
    }

    void tiesGetTheMeanOfTheirRanks() {
        const std::vector<double> numbers = {5, 1, 5, 0, 5};
        QCOMPARE(averageRanks(numbers), (std::vector<double>{4, 2, 4, 1, 4}));
    }

    void spearmanByHand() {
        const std::vector<double> x = {1, 2, 3, 4}, rising = {10, 100, 1000, 10000}, falling = {4, 3, 2, 1},
                                  flat = {7, 7, 7, 7};
        QCOMPARE(spearman(x, rising), 1.0);
        QCOMPARE(spearman(x, falling), -1.0);
        QVERIFY(std::isnan(spearman(x, flat)));
        // Without ties rho = 1 - 6 sum d^2 / (n (n^2 - 1)): ranks 1 2 3 4 against 2 1 4 3 give 1 - 24 / 60.
        QVERIFY(std::abs(spearman(x, std::vector<double>{2, 1, 4, 3}) - 0.6) < 1e-12);
        // Pearson of the ranks 1.5 1.5 3 4 and 1 2 3 4: 4.5 / sqrt(4.5 * 5).
        QVERIFY(std::abs(spearman(std::vector<double>{1, 1, 2, 3}, x) - 4.5 / std::sqrt(22.5)) < 1e-12);
        QCOMPARE(spearman(std::vector<double>{1, NAN, 2, 3}, std::vector<double>{1, -50, 2, 3}), 1.0);
    }

    void logDeterminantOfFewRowsIsThatOfTheirGram() {
        const std::vector<float> rows = randomRows(1, 5 * 12);
        const auto engine = makeCpuEngine(1);
        const HostTensor s = engine->singularValues(engine->upload({{1, 5, 12}, rows}), {}, {});
        const LogDeterminant result = pseudoLogDeterminant(s.data, 5);
        QCOMPARE(result.count, 5);
        QVERIFY(std::abs(result.value - logDeterminant(gram(rows, 5, 12, true, 0))) < 1e-5);
        QVERIFY(std::abs(ridgeLogDeterminant(s.data, 0.5) - logDeterminant(gram(rows, 5, 12, false, 0.5))) < 1e-5);
    }

    void repeatedRowsDoNotCount() {
        std::vector<float> rows = randomRows(2, 4 * 6);
        std::copy_n(rows.begin(), 6, rows.begin() + 6); // rank 3
        const auto engine = makeCpuEngine(1);
        const HostTensor s = engine->singularValues(engine->upload({{1, 4, 6}, rows}), {}, {});
        QCOMPARE(pseudoLogDeterminant(s.data, 4).count, 3);
        QCOMPARE(pseudoLogDeterminant(std::vector<float>{0, 0}, 2).count, 0);
    }

    void cosineSumIsTheDoubleSum() {
        const std::vector<float> rows = randomRows(3, 20 * 4);
        const std::vector<TokenIndex> kept = {1, 4, 5, 11, 19};
        const UnitRows unit = unitRows(rows.data(), 20, 4);
        QVERIFY(std::abs(cosineSumOf(unit, kept) - cosineSumByDefinition(rows, 4, kept)) < 1e-9);
    }

    void exchangeNeverRisesAndStaysAboveTheMinimum() {
        for (unsigned seed = 0; seed < 20; ++seed) {
            const std::vector<float> rows = randomRows(100 + seed, 9 * 3);
            const UnitRows unit = unitRows(rows.data(), 9, 3);
            const std::vector<TokenIndex> kept = {0, 1, 2, 3};
            double least = 1e9;
            for (TokenIndex a = 0; a < 9; ++a)
                for (TokenIndex b = a + 1; b < 9; ++b)
                    for (TokenIndex c = b + 1; c < 9; ++c)
                        for (TokenIndex e = c + 1; e < 9; ++e)
                            least = std::min(least, cosineSumByDefinition(rows, 3, {a, b, c, e}));
            const double exchanged = exchangedCosineSum(unit, kept);
            QVERIFY2(exchanged <= cosineSumOf(unit, kept) + 1e-9 && exchanged >= least - 1e-9,
                     qPrintable(QString::number(seed)));
        }
    }

    // Three equal keys and their opposites: the minimum keeps one of each.
    void exchangeFindsOpposites() {
        const std::vector<float> rows = {1, 0, 1, 0, 1, 0, -1, 0, -1, 0};
        QVERIFY(std::abs(exchangedCosineSum(unitRows(rows.data(), 5, 2), {0, 1})) < 1e-12);
        QCOMPARE(exchangedCosineSum(unitRows(rows.data(), 5, 2), {}), 0.0);
        QVERIFY(std::abs(exchangedCosineSum(unitRows(rows.data(), 5, 2), {0, 1, 2, 3, 4}) - 1) < 1e-12); // no choice
    }
};

KVSCOPE_TEST(StatisticsTest)
#include "statistics_test.moc"
