// The curve of context-calibrated compression against the printed formula, its invariants and hand examples,
// and the fit against a plain search over a grid of (alpha, beta).
#include <QtTest>

#include "core/base/random.h"
#include "core/metrics/calibration.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <cmath>

using namespace kvscope;

namespace {

/// Compactor 3.5 as printed, in long double.
double printedCurve(double k, double r) {
    const long double K = k, R = r;
    return k == 0 ? r : static_cast<double>((std::exp(R * K - K) - std::exp(-K)) / (1 - std::exp(-K)));
}

double naiveLoss(const std::vector<CalibrationTriple>& triples, double alpha, double beta, double weight) {
    double sum = 0;
    for (const CalibrationTriple& t : triples) {
        const double e = printedCurve(alpha * t.contextNll + beta, t.retention) - t.quality;
        sum += e > 0 ? weight * e * e : e * e;
    }
    return sum;
}

struct GridBest {
    double alpha = 0, beta = 0, loss = INFINITY;
};

/// A grid, then finer grids around the best point of the last one.
GridBest gridSearch(const std::vector<CalibrationTriple>& triples, double weight, bool withSlope) {
    GridBest best;
    double alphaAt = 0, betaAt = 0, alphaReach = withSlope ? 20 : 0, betaReach = 40;
    for (int round = 0; round < 14; ++round) {
        for (int i = withSlope ? -15 : 0; i <= (withSlope ? 15 : 0); ++i)
            for (int j = -20; j <= 20; ++j) {
                const double alpha = alphaAt + alphaReach * i / 15, beta = betaAt + betaReach * j / 20;
                const double loss = naiveLoss(triples, alpha, beta, weight);
                if (loss < best.loss) best = {alpha, beta, loss};
            }
        alphaAt = best.alpha;
        betaAt = best.beta;
        alphaReach /= 3;
        betaReach /= 3;
    }
    return best;
}

std::vector<CalibrationTriple> noisyTriples(std::uint64_t seed, double alpha, double beta,
                                            const std::vector<double>& nlls) {
    std::vector<CalibrationTriple> triples;
    for (std::size_t c = 0; c < nlls.size(); ++c)
        for (int i = 1; i <= 9; ++i) {
            const double r = i / 10.0;
            const double noise = 0.04 * gaussianAt({.seed = seed,
                                                    .round = static_cast<std::uint32_t>(c),
                                                    .token = static_cast<std::uint32_t>(i)});
            triples.push_back({"context " + std::to_string(c), r, nlls[c],
                               std::max(0.01, printedCurve(alpha * nlls[c] + beta, r) + noise)});
        }
    return triples;
}

} // namespace

class CalibrationFitTest : public QObject {
    Q_OBJECT

private slots:
    void theCurveIsThePrintedOne() {
        for (const double k : {-20.0, -5.0, -1.0, -0.01, 0.0, 0.3, 2.0, 20.0})
            for (const double r : {0.0, 0.1, 0.5, 0.9, 1.0})
                QVERIFY2(std::abs(calibrationCurve(k, r) - printedCurve(k, r)) < 1e-14,
                         qPrintable(QString("k %1 r %2").arg(k).arg(r)));
    }

    void theCurveNeitherOverflowsNorDividesByZero() {
        for (const double k : {-5000.0, -1e-12, 1e-300, 1e-12, 5000.0})
            for (const double r : {0.0, 0.3, 1.0}) {
                const double f = calibrationCurve(k, r);
                QVERIFY(f >= 0 && f <= 1);
            }
        QVERIFY(std::abs(calibrationCurve(1e-12, 0.3) - 0.3) < 1e-12);
        QCOMPARE(calibrationCurve(-5000, 0.5), 1.0);
        QCOMPARE(calibrationCurve(5000, 0.5), 0.0);
    }

    void invariantsOfTheCurve() {
        double previous = 2;
        for (double k = -18; k <= 18; k += 0.37) {
            QCOMPARE(calibrationCurve(k, 0), 0.0);
            QCOMPARE(calibrationCurve(k, 1), 1.0);
            QVERIFY(calibrationCurve(k, 0.4) < previous); // decreasing in k
            previous = calibrationCurve(k, 0.4);
            QVERIFY(calibrationCurve(k, 0.41) > previous); // increasing in r
            QVERIFY(std::abs(calibrationCurve(k, 0.3) + calibrationCurve(-k, 0.7) - 1) < 1e-13);
            QVERIFY(std::abs(calibrationCurve(k, 0.5) - 1 / (1 + std::exp(k / 2))) < 1e-14);
            for (const double tau : {0.05, 0.5, 0.9, 0.95, 0.999})
                QVERIFY(std::abs(calibrationCurve(k, retentionNeeded(k, tau)) - tau) < 1e-12);
        }
    }

    void handExamples() {
        QVERIFY(std::abs(calibrationCurve(-2 * std::log(3), 0.5) - 0.75) < 1e-15);
        QVERIFY(std::abs(retentionNeeded(-2 * std::log(3), 0.75) - 0.5) < 1e-15);
        QCOMPARE(QString::number(retentionNeeded(-10, 0.95), 'f', 4), QString("0.2995"));
        QCOMPARE(QString::number(retentionNeeded(-5, 0.95), 'f', 4), QString("0.5751"));
        QCOMPARE(retentionNeeded(0, 0.95), 0.95);
        QCOMPARE(retentionNeeded(-40, 1), 1.0);
        QCOMPARE(retentionNeeded(3000, 0), 0.0);
        QVERIFY(retentionNeeded(3000, 0.5) > 0.999);
    }

    void derivativesAreThoseOfTheCurve() {
        for (const double k : {-30.0, -4.0, -1e-3, -1e-5, 0.0, 1e-5, 0.7, 6.0, 30.0})
            for (const double r : {0.05, 0.37, 0.9}) {
                const double h = 1e-5;
                const double byR = (calibrationCurve(k, r + h) - calibrationCurve(k, r - h)) / (2 * h);
                const double byK = (calibrationCurve(k + h, r) - calibrationCurve(k - h, r)) / (2 * h);
                QVERIFY2(std::abs(calibrationSlope(k, r) - byR) < 1e-6 * (1 + std::abs(byR)),
                         qPrintable(QString("r: k %1").arg(k)));
                QVERIFY2(std::abs(calibrationSensitivity(k, r) - byK) < 1e-8, qPrintable(QString("k: k %1").arg(k)));
            }
    }

    void oneMeasurementAtAHalfGivesK() {
        const double y = 0.83;
        const CalibrationFit fit = fitCalibration(std::vector<CalibrationTriple>{{"a", 0.5, 2.0, y}}, 5);
        QVERIFY(std::abs(fit.beta - 2 * std::log(1 / y - 1)) < 1e-6);
        QVERIFY(!fit.slopeKnown);
        QCOMPARE(fit.k(17.0), fit.beta);
    }

    void theFitIsAsGoodAsAGridOneContext() {
        for (const std::uint64_t seed : {1U, 2U, 3U, 4U})
            for (const double weight : {1.0, 5.0, 20.0}) {
                const auto triples = noisyTriples(seed, 0, -7 + 3.0 * static_cast<double>(seed), {2.2});
                const CalibrationFit fit = fitCalibration(triples, weight);
                const GridBest grid = gridSearch(triples, weight, false);
                QVERIFY2(fit.loss <= grid.loss * (1 + 1e-9),
                         qPrintable(QString("seed %1: %2 > %3").arg(seed).arg(fit.loss).arg(grid.loss)));
                QVERIFY(std::abs(fit.beta - grid.beta) < 1e-3);
                QVERIFY(std::abs(naiveLoss(triples, 0, fit.beta, weight) - fit.loss) < 1e-12);
            }
    }

    void theFitIsAsGoodAsAGridSeveralContexts() {
        for (const std::uint64_t seed : {11U, 12U, 13U})
            for (const double weight : {1.0, 5.0}) {
                const auto triples = noisyTriples(seed, 3.5, -14, {1.1, 2.4, 3.0, 3.9});
                const CalibrationFit fit = fitCalibration(triples, weight);
                const GridBest grid = gridSearch(triples, weight, true);
                QVERIFY2(fit.loss <= grid.loss * (1 + 1e-6),
                         qPrintable(QString("seed %1: %2 > %3").arg(seed).arg(fit.loss).arg(grid.loss)));
                QVERIFY(fit.slopeKnown);
                QVERIFY(std::abs(fit.alpha - 3.5) < 1.5);
                QVERIFY(std::abs(naiveLoss(triples, fit.alpha, fit.beta, weight) - fit.loss) < 1e-10);
                QCOMPARE(fit.contexts, 4);
                QCOMPARE(fit.triples, 36);
            }
    }

    void exactTriplesAreRecovered() {
        std::vector<CalibrationTriple> triples;
        for (const double nll : {0.5, 1.0, 4.0})
            for (const double r : {0.1, 0.25, 0.6})
                triples.push_back({std::to_string(nll), r, nll, printedCurve(2 * nll - 9, r)});
        const CalibrationFit fit = fitCalibration(triples, 4);
        QVERIFY(std::abs(fit.alpha - 2) < 1e-6 && std::abs(fit.beta + 9) < 1e-6);
        QVERIFY(fit.loss < 1e-16);
    }

    // Under-estimated r* means f above y: a large weight pushes the curve down and r* up.
    void theWeightKeepsTheCurveBelowThePoints() {
        const auto triples = noisyTriples(5, 0, -4, {2});
        double previous = 0;
        for (const double weight : {1.0, 3.0, 20.0}) {
            const double needed = retentionNeeded(fitCalibration(triples, weight).beta, 0.95);
            QVERIFY(needed > previous);
            previous = needed;
        }
    }

    void bothEndsSayNothing() {
        auto triples = noisyTriples(6, 0, -4, {2});
        const CalibrationFit fit = fitCalibration(triples, 5);
        triples.push_back({"context 0", 1, 2, 1.3});
        triples.push_back({"context 0", 0, 2, 0.2});
        triples.push_back({"full only", 1, 7, 1});
        QCOMPARE(fitCalibration(triples, 5).beta, fit.beta);
        QCOMPARE(fitCalibration(triples, 5).triples, 9);
        QVERIFY(!fitCalibration(triples, 5).slopeKnown);
    }

    void qualityAboveOneEndsAtTheEdge() {
        const std::vector<CalibrationTriple> triples = {{"a", 0.3, 2, 1.2}, {"a", 0.6, 2, 1.1}};
        const CalibrationFit fit = fitCalibration(triples, 5);
        QVERIFY(fit.atEdge || calibrationCurve(fit.beta, 0.3) > 1 - 1e-6);
        QVERIFY(fit.beta >= -kMostCurvature);
    }

    void degenerateTriplesAreRefused() {
        using List = std::vector<CalibrationTriple>;
        QVERIFY(errorText([] { fitCalibration(List{}, 5); }).contains("no triples"));
        QVERIFY(errorText([] { fitCalibration(List{{"a", 1, 2, 1}}, 5); }).contains("between retention 0 and 1"));
        QVERIFY(errorText([] { fitCalibration(List{{"a", 1.5, 2, 1}}, 5); }).contains("retention 1.5"));
        QVERIFY(errorText([] { fitCalibration(List{{"a", NAN, 2, 1}}, 5); }).contains("retention nan"));
        QVERIFY(errorText([] { fitCalibration(List{{"a", 0.5, 2, 0}}, 5); }).contains("quality 0"));
        QVERIFY(errorText([] { fitCalibration(List{{"a", 0.5, INFINITY, 0.5}}, 5); }).contains("infinite NLL"));
        QVERIFY(errorText([] {
                    fitCalibration(List{{"a", 0.5, 2, 0.5}, {"b", 0.5, NAN, 0.5}}, 5);
                }).contains("'b' has no NLL"));
        QVERIFY(errorText([] {
                    fitCalibration(List{{"a", 0.5, 2, 0.5}, {"a", 0.6, 3, 0.5}}, 5);
                }).contains("several NLLs"));
        // Rows at both ends say nothing about k, but their context's k follows from its NLL.
        const List two = {{"a", 0.2, 1, 0.7}, {"a", 0.5, 1, 0.9}, {"b", 0.2, 2, 0.6}, {"b", 0.5, 2, 0.8}};
        const auto withRow = [&](const CalibrationTriple& row) {
            List all = {row};
            all.insert(all.end(), two.begin(), two.end());
            return errorText([&] { fitCalibration(all, 5); });
        };
        QVERIFY(withRow({"a", 1, 1, 1}).isEmpty());
        QVERIFY(withRow({"a", 1, 9, 1}).contains("'a' has several NLLs"));
        QVERIFY(withRow({"c", 1, NAN, 1}).contains("'c' has no NLL"));
        QVERIFY(errorText([] { fitCalibration(List{{"a", 0.5, 2, 0.5}}, 0); }).contains("weight 0"));
    }

    void equalLossesOfContextsDetermineKAlone() {
        const std::vector<CalibrationTriple> triples = {{"a", 0.5, 2, 0.8}, {"b", 0.5, 2, 0.8}};
        const CalibrationFit fit = fitCalibration(triples, 5);
        QVERIFY(!fit.slopeKnown);
        QCOMPARE(fit.alpha, 0.0);
        QCOMPARE(fit.contexts, 2);
    }

    void theBandHoldsTheCurveAndNarrowsWithLessNoise() {
        const auto triples = noisyTriples(8, 2, -8, {1, 2, 3});
        const CalibrationFit fit = fitCalibration(triples, 1);
        const auto fits = bootstrapCalibration(triples, fit, 400, 3);
        QCOMPARE(fits.size(), std::size_t{400});
        const CalibrationBand needed = retentionBand(fits, 2, 0.95);
        const double own = retentionNeeded(fit.k(2), 0.95);
        QVERIFY(needed.low < own && own < needed.high);
        std::vector<CalibrationTriple> exact = triples;
        for (CalibrationTriple& t : exact) t.quality = printedCurve(2 * t.contextNll - 8, t.retention);
        const auto quiet = bootstrapCalibration(exact, fitCalibration(exact, 1), 50, 3);
        const CalibrationBand none = retentionBand(quiet, 2, 0.95);
        QVERIFY(none.high - none.low < 1e-6);
    }

    // 5-95 % of a bootstrap around noisy data should hold the truth in about 9 of 10 draws. 60 draws: fewer than 42
    // has probability 6e-6 at 0.9 (binomial), more than 59 is possible.
    void theBandCoversTheTruthAboutNineTimesInTen() {
        int covered = 0;
        for (std::uint64_t seed = 100; seed < 160; ++seed) {
            auto triples = noisyTriples(seed, 0, -5, {2});
            const auto again = noisyTriples(seed + 1000, 0, -5, {2}); // twice as many points
            triples.insert(triples.end(), again.begin(), again.end());
            const auto fits = bootstrapCalibration(triples, fitCalibration(triples, 1), 200, seed);
            const CalibrationBand band = retentionBand(fits, 2, 0.9);
            const double truth = retentionNeeded(-5, 0.9);
            covered += band.low <= truth && truth <= band.high;
        }
        QVERIFY2(covered >= 42, qPrintable(QString("covered %1 of 60").arg(covered)));
    }

    // A row that is drawn every time has no spread: no interval is better than one of no width.
    void aContextOfOneRowHasNoBand() {
        const std::vector<CalibrationTriple> one = {{"a", 0.3, 2, 0.8}};
        QVERIFY(bootstrapCalibration(one, fitCalibration(one, 5), 50, 3).empty());
        const std::vector<CalibrationTriple> two = {
            {"a", 0.3, 2, 0.8}, {"a", 0.5, 2, 0.9}, {"b", 0.3, 3, 0.7}, {"b", 1, 3, 1}};
        QVERIFY(bootstrapCalibration(two, fitCalibration(two, 5), 50, 3).empty());
        std::vector<CalibrationTriple> enough = two;
        enough.back().retention = 0.6;
        QCOMPARE(bootstrapCalibration(enough, fitCalibration(enough, 5), 50, 3).size(), std::size_t{50});
        QVERIFY(std::isnan(retentionBand({}, 2, 0.9).low));
    }

    void resamplesAreTheSameForTheSameSeed() {
        const auto triples = noisyTriples(9, 2, -8, {1, 3});
        const CalibrationFit fit = fitCalibration(triples, 5);
        const auto a = bootstrapCalibration(triples, fit, 10, 7), b = bootstrapCalibration(triples, fit, 10, 7);
        const auto c = bootstrapCalibration(triples, fit, 10, 8);
        QCOMPARE(a[4].alpha, b[4].alpha);
        QVERIFY(a[4].alpha != c[4].alpha);
        const std::vector<CalibrationTriple> one = {{"a", 0.5, 2, 0.8}, {"a", 1, 2, 1}, {"b", 0.5, 3, 0.7}};
        QVERIFY(bootstrapCalibration(one, fitCalibration(one, 5), 10, 7).empty());
    }

    void theMisfitOfHandPoints() {
        const auto points = [](std::vector<std::pair<double, double>> pairs) {
            std::vector<CalibrationTriple> triples;
            for (const auto& [retention, quality] : pairs) triples.push_back({"a", retention, NAN, quality});
            return triples;
        };
        // On the diagonal: -0.1 and 0.1 beside points that differ by as much from their mean.
        const CalibrationMisfit half = misfitOf(points({{0, 0.9}, {0.2, 0.3}, {0.6, 0.5}, {1, 0.1}}), 0, 1);
        QVERIFY(std::abs(half.rms - 0.1) < 1e-12 && std::abs(half.spread - 0.1) < 1e-12);
        QVERIFY(std::abs(half.explained()) < 1e-9 && half.isPoor());
        // 0.05 beside a spread of 0.25: 1 - 1/25 of the variance.
        const CalibrationMisfit near = misfitOf(points({{0.2, 0.15}, {0.6, 0.65}}), 0, 1);
        QVERIFY(std::abs(near.explained() - 0.96) < 1e-9 && !near.isPoor());
        const CalibrationMisfit level = misfitOf(points({{0.25, 0.5}, {0.75, 0.5}}), 0, 1);
        QVERIFY(std::isnan(level.explained()) && level.isPoor());
        // The mean of three times 0.1 is not 0.1 in binary.
        QVERIFY(std::isnan(misfitOf(points({{0.2, 0.1}, {0.4, 0.1}, {0.6, 0.1}}), 0, 1).explained()));
        QVERIFY(
            !misfitOf(points({{0.5, 0.99}, {0.7, 1.005}}), -10, 1).isPoor()); // explains nothing, and misses by nothing
        const CalibrationMisfit none = misfitOf(points({{1, 1}}), 0, 1);
        QVERIFY(std::isnan(none.rms) && !none.isPoor());
    }

    // The curve's loss and the level line's are both those of the weighted fit.
    void theVerdictComparesLikeWithLike() {
        const std::vector<CalibrationTriple> two = {{"a", 0.2, NAN, 0.3},
                                                    {"a", 0.6, NAN, 0.5}}; // the diagonal misses by -0.1 and 0.1
        const CalibrationMisfit plain = misfitOf(two, 0, 1), heavy = misfitOf(two, 0, 5);
        QVERIFY(std::abs(plain.loss - 0.02) < 1e-12 && std::abs(plain.levelLoss - 0.02) < 1e-12); // level 0.4
        QVERIFY(std::abs(heavy.loss - 0.06) < 1e-12);
        QVERIFY(std::abs(heavy.levelLoss - 0.04 * 5 / 6) <
                1e-12); // level 1/3, 1/30 above the lower and 1/6 below the higher
        // Above its points everywhere by 0.1: less than a quarter of a level line's loss, but not where being above
        // weighs five times.
        const std::vector<CalibrationTriple> below = {{"a", 0.3, NAN, 0.2}, {"a", 0.5, NAN, 0.4}, {"a", 0.8, NAN, 0.7}};
        QVERIFY(!misfitOf(below, 0, 1).isPoor() && misfitOf(below, 0, 5).isPoor());
        // A curve fitted for w is not called poor for what w makes it do.
        const std::vector<CalibrationTriple> asymmetric = {
            {"a", 0.1, NAN, 0.28}, {"a", 0.3, NAN, 0.9}, {"a", 0.5, NAN, 0.75}, {"a", 0.8, NAN, 0.98}};
        for (const double weight : {1.0, 5.0, 20.0}) {
            const CalibrationFit fit = fitCalibration(asymmetric, weight);
            const CalibrationMisfit misfit = misfitOf(asymmetric, fit.beta, weight);
            QVERIFY(std::abs(misfit.loss - fit.loss) < 1e-12);
            double least = INFINITY;
            for (double level = 0; level <= 1; level += 1e-5) {
                double loss = 0;
                for (const CalibrationTriple& t : asymmetric)
                    loss += (level > t.quality ? weight : 1) * (level - t.quality) * (level - t.quality);
                least = std::min(least, loss);
            }
            QVERIFY2(misfit.levelLoss <= least && least - misfit.levelLoss < 1e-6,
                     qPrintable(QString("w %1: %2, %3").arg(weight).arg(misfit.levelLoss).arg(least)));
        }
        // Contexts that differ among each other have levels of their own.
        const std::vector<CalibrationTriple> contexts = {
            {"a", 0.2, 1, 0.1}, {"a", 0.6, 1, 0.3}, {"b", 0.2, 2, 0.7}, {"b", 0.6, 2, 0.9}};
        QVERIFY(std::abs(misfitOf(contexts, 0, 1).levelLoss - 0.04) < 1e-12);
    }

    void quantilesOfHandNumbers() {
        std::vector<double> numbers;
        for (int i = 0; i <= 100; ++i) numbers.push_back(100 - i);
        QCOMPARE(bandOf(numbers).low, 5.0);
        QCOMPARE(bandOf(numbers).high, 95.0);
        QVERIFY(std::isnan(bandOf({}).low));
        QCOMPARE(bandOf({3}).high, 3.0);
    }
};

KVSCOPE_TEST(CalibrationFitTest)
#include "calibration_fit_test.moc"
