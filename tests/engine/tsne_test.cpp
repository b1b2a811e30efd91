// t-SNE: shares of the perplexity asked for, a gradient that finite differences confirm, a cost that falls, planted
// clusters that come apart, and the same picture from every number of threads and every instruction set.
#include "core/base/error.h"
#include "core/engine/tsne.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <random>
#include <stop_token>

using namespace kvscope;

namespace {

/// Gaussian clouds of width 1 whose centres lie `apart` from each other on axes of their own; row i belongs to i %
/// clouds.
HostTensor clouds(unsigned seed, std::int64_t n, std::int64_t d, std::int64_t count, double apart) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    HostTensor rows{{n, d}, {}};
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t c = 0; c < d; ++c)
            rows.data.push_back(static_cast<float>(normal(random) + (c == i % count ? apart : 0)));
    return rows;
}

double squaredDistance(const HostTensor& rows, std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t c = 0; c < rows.shape[1]; ++c) {
        const double difference = double(rows.data[std::size_t(i * rows.shape[1] + c)]) -
                                  double(rows.data[std::size_t(j * rows.shape[1] + c)]);
        sum += difference * difference;
    }
    return sum;
}

/// p_ij of the papers by plain loops, dense.
std::vector<std::vector<double>> naiveShares(const HostTensor& rows, double perplexity) {
    const auto n = static_cast<std::size_t>(rows.shape[0]);
    std::vector<std::vector<double>> conditional(n, std::vector<double>(n)), joint = conditional;
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<std::pair<double, std::size_t>> others;
        for (std::size_t j = 0; j < n; ++j)
            if (j != i) others.push_back({squaredDistance(rows, std::int64_t(i), std::int64_t(j)), j});
        std::sort(others.begin(), others.end());
        others.resize(std::min(others.size(), static_cast<std::size_t>(std::max(10.0, 3 * perplexity))));
        double low = 1e-12, high = 1e12; // of beta, on a logarithmic scale
        for (int step = 0; step < 300; ++step) {
            const double beta = std::sqrt(low * high);
            double total = 0, entropy = 0;
            for (const auto& [distance, j] : others) total += std::exp(-beta * (distance - others.front().first));
            for (const auto& [distance, j] : others) {
                const double p = std::exp(-beta * (distance - others.front().first)) / total;
                conditional[i][j] = p;
                entropy -= p > 0 ? p * std::log2(p) : 0;
            }
            (std::exp2(entropy) > perplexity ? low : high) = beta;
        }
    }
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) joint[i][j] = (conditional[i][j] + conditional[j][i]) / (2 * double(n));
    return joint;
}

/// KL(a P || Q) up to the terms that no point changes, which for a = 1 is the divergence itself.
double naiveCost(const std::vector<std::vector<double>>& p, const std::vector<double>& y, double exaggeration) {
    const std::size_t n = p.size();
    const auto weight = [&](std::size_t i, std::size_t j) {
        return 1 / (1 + std::pow(y[2 * i] - y[2 * j], 2) + std::pow(y[2 * i + 1] - y[2 * j + 1], 2));
    };
    double total = 0, cost = 0, sum = 0;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) total += i == j ? 0 : weight(i, j);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
            if (p[i][j] > 0) {
                cost += exaggeration * p[i][j] * (std::log(p[i][j]) - std::log(weight(i, j)));
                sum += p[i][j];
            }
    return cost + sum * std::log(total);
}

std::vector<double> randomPoints(unsigned seed, std::size_t n, double width) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<double> points; // floats, as the kernel reads them
    for (std::size_t c = 0; c < 2 * n; ++c) points.push_back(double(normal(random) * float(width)));
    return points;
}

double affinityOf(const TsneAffinities& affinities, std::size_t i, std::size_t j) {
    for (auto at = affinities.begin[i]; at < affinities.begin[i + 1]; ++at)
        if (std::size_t(affinities.column[std::size_t(at)]) == j) return affinities.affinity[std::size_t(at)];
    return 0;
}

} // namespace

class TsneTest : public QObject {
    Q_OBJECT

private slots:
    void sharesAreThoseOfThePapers() {
        for (const auto& [n, d, perplexity] : {std::tuple{40, 3, 5.0}, {61, 8, 12.5}, {100, 5, 33.0}}) {
            const HostTensor rows = clouds(unsigned(n), n, d, 2, 4);
            const auto expected = naiveShares(rows, perplexity);
            const TsneAffinities affinities = tsneAffinities(rows, perplexity, {}, {});
            double total = 0;
            for (std::size_t i = 0; i < std::size_t(n); ++i)
                for (std::size_t j = 0; j < std::size_t(n); ++j) {
                    const double p = affinityOf(affinities, i, j);
                    QVERIFY2(
                        std::abs(p - expected[i][j]) < 1e-9,
                        qPrintable(
                            QString("n %1, pair %2 %3: %4, not %5").arg(n).arg(i).arg(j).arg(p).arg(expected[i][j])));
                    QCOMPARE(affinityOf(affinities, j, i), p);
                    total += p;
                }
            QVERIFY(std::abs(total - 1) < 1e-12);
        }
    }

    void nearestRowsComeByDistanceAndIndex() {
        HostTensor rows{{20, 1}, {}};
        for (int i = 0; i < 20; ++i) rows.data.push_back(float(i / 2)); // pairs of equal rows
        const TsneAffinities affinities = tsneAffinities(rows, 2, {}, {});
        const std::vector<std::int32_t> first(affinities.nearest.begin(), affinities.nearest.begin() + 5),
            fifth(affinities.nearest.begin() + 50, affinities.nearest.begin() + 55);
        QCOMPARE(first, (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
        QCOMPARE(fifth, (std::vector<std::int32_t>{4, 2, 3, 6, 7}));
    }

    // Central differences of a cost written from the definition; also what an exaggeration does to it.
    void gradientIsThatOfTheCost() {
        const HostTensor rows = clouds(7, 48, 6, 3, 5);
        const auto p = naiveShares(rows, 8);
        const TsneAffinities affinities = tsneAffinities(rows, 8, {}, {});
        for (const double width : {1e-2, 1.0, 20.0})
            for (const double exaggeration : {1.0, 12.0}) {
                std::vector<double> points = randomPoints(11, 48, width);
                const TsneGradient slope = tsneGradient(affinities, points, exaggeration, {});
                if (exaggeration == 1) QVERIFY(std::abs(slope.divergence - naiveCost(p, points, 1)) < 1e-6);
                double largest = 0;
                for (const double g : slope.gradient) largest = std::max(largest, std::abs(g));
                for (std::size_t c = 0; c < points.size(); c += 5) {
                    const double step = 1e-4, old = points[c];
                    points[c] = old + step;
                    const double above = naiveCost(p, points, exaggeration);
                    points[c] = old - step;
                    const double below = naiveCost(p, points, exaggeration);
                    points[c] = old;
                    const double expected = (above - below) / (2 * step);
                    QVERIFY2(std::abs(slope.gradient[c] - expected) < 2e-6 * largest + 1e-9,
                             qPrintable(QString("width %1, a %2, coordinate %3: %4, not %5")
                                            .arg(width)
                                            .arg(exaggeration)
                                            .arg(c)
                                            .arg(slope.gradient[c])
                                            .arg(expected)));
                }
            }
    }

    // Half of the points in a clump, from the width of a random start to more than an embedding spreads. A grid of more
    // nodes has no smaller spacing, so points that are far from each other are off most.
    void gridIsCloseToAllPairs() {
        const std::size_t n = 2000;
        const TsneAffinities affinities = tsneAffinities(clouds(13, n, 4, 3, 5), 20, {}, {});
        for (const double width : {1e-4, 0.3, 2.0, 5.0, 9.0, 16.0, 25.0, 60.0}) {
            std::vector<double> points = randomPoints(17, n, width);
            for (std::size_t c = 0; c < n; ++c) points[c] = 0.1 * points[c] + 2 * width;
            const TsneGradient all = tsneGradient(affinities, points, 0, {}); // without attraction
            const TsneGradient grid = tsneGradient(affinities, points, 0, {}, TsneRepulsion::Grid);
            double error = 0, size = 0, mean[2] = {};
            for (std::size_t c = 0; c < 2 * n; ++c) mean[c % 2] += (grid.gradient[c] - all.gradient[c]) / double(n);
            for (std::size_t c = 0; c < 2 * n; ++c) { // what moves all points alike is taken away in every step
                error += std::pow(grid.gradient[c] - all.gradient[c] - mean[c % 2], 2);
                size += std::pow(all.gradient[c], 2);
            }
            error = std::sqrt(error / size);
            const double divergence = grid.divergence - all.divergence;
            const QString what = QString("width %1: %2, divergence %3").arg(width).arg(error).arg(divergence);
            QVERIFY2(error > 0 && error < (width < 30 ? 0.01 : 0.03) && std::abs(divergence) < 1e-3, qPrintable(what));
        }
    }

    void nearestRowsAreFoundWhereFloatsAreCoarse_data() {
        QTest::addColumn<double>("factor");
        QTest::addColumn<double>("offset");
        QTest::addColumn<double>("outlier");
        QTest::newRow("usual") << 1.0 << 0.0 << 0.0;
        QTest::newRow("far from the origin") << 1e-3 << 1000.0 << 0.0;
        QTest::newRow("beside one far away") << 1.0 << 0.0 << 1e6;
        QTest::newRow("huge") << 1e37 << 0.0 << 0.0;
        QTest::newRow("tiny") << 1e-37 << 0.0 << 0.0;
        QTest::newRow("below floats' range beside one") << 1e-30 << 0.0 << 1.0;
    }

    void nearestRowsAreFoundWhereFloatsAreCoarse() {
        QFETCH(double, factor);
        QFETCH(double, offset);
        QFETCH(double, outlier);
        const std::int64_t n = 700;
        HostTensor rows = clouds(31, n, 12, 4, 3);
        for (float& x : rows.data) x = static_cast<float>(double(x) * factor + offset);
        for (std::int64_t c = 0; c < 12; ++c) {
            for (std::int64_t i = 0; i < 40; ++i)
                rows.data[std::size_t(600 + i) * 12 + std::size_t(c)] = rows.data[std::size_t(c)];
            if (outlier > 0) rows.data[std::size_t(12 * 50 + c)] = static_cast<float>(outlier);
        }
        const TsneAffinities affinities = tsneAffinities(rows, 3, {}, {}); // looks for ten, all of which are checked
        for (std::int64_t i = 0; i < n; ++i) {
            std::vector<std::pair<double, std::int32_t>> others;
            for (std::int64_t j = 0; j < n; ++j)
                if (j != i) others.push_back({squaredDistance(rows, i, j), std::int32_t(j)});
            std::sort(others.begin(), others.end());
            for (std::size_t k = 0; k < 10; ++k)
                QCOMPARE(affinities.nearest[std::size_t(i) * 10 + k], others[k].second);
        }
    }

    void costFallsOnceTheExaggerationIsOver() {
        const TsneAffinities affinities = tsneAffinities(clouds(3, 300, 16, 5, 6), 20, {}, {});
        std::vector<double> costs;
        const Embedding last = tsne(affinities, {.perplexity = 20, .iterations = 600, .seed = 5, .snapshotEvery = 50},
                                    {}, {}, [&](const Embedding& seen) {
                                        QCOMPARE(seen.iteration, int(costs.size() + 1) * 50);
                                        QVERIFY(std::isnan(seen.neighboursKept));
                                        costs.push_back(seen.divergence);
                                    });
        costs.push_back(last.divergence);
        QCOMPARE(costs.size(), std::size_t{12});
        for (std::size_t i = 5; i < costs.size(); ++i) // from iteration 250 to 300 and on
            QVERIFY2(costs[i] < costs[i - 1] + 1e-3,
                     qPrintable(QString("%1 after %2").arg(costs[i]).arg(costs[i - 1])));
        QVERIFY(last.divergence < 0.5 * costs.front());
    }

    // Clouds 12 widths apart: every point's nearest point is of its own cloud, as no random picture would have it.
    void plantedClustersComeApart() {
        const std::int64_t n = 400, count = 5;
        const TsneAffinities affinities = tsneAffinities(clouds(21, n, 24, count, 12), 30, {}, {});
        const Embedding picture = tsne(affinities, {.iterations = 500, .seed = 1}, {}, {});
        double within = 0, between = 1e9, mean[2] = {};
        for (std::int64_t i = 0; i < n; ++i) {
            mean[0] += double(picture.points.data[std::size_t(2 * i)]) / double(n);
            mean[1] += double(picture.points.data[std::size_t(2 * i + 1)]) / double(n);
            double own = 1e9, other = 1e9;
            for (std::int64_t j = 0; j < n; ++j) {
                const double distance = std::sqrt(squaredDistance(picture.points, i, j));
                if (j != i && i % count == j % count) own = std::min(own, distance);
                if (i % count != j % count) other = std::min(other, distance);
            }
            within = std::max(within, own);
            between = std::min(between, other);
        }
        QVERIFY2(within < between, qPrintable(QString("%1 within, %2 between").arg(within).arg(between)));
        QVERIFY(std::abs(mean[0]) < 1e-3 && std::abs(mean[1]) < 1e-3);
        QVERIFY2(picture.neighboursKept > 0.3 && picture.neighboursKept <= 1,
                 qPrintable(QString::number(picture.neighboursKept)));
    }

    void neighboursKeptIsTheMeanOverAllRows() {
        const std::int64_t n = 300;
        HostTensor rows = clouds(41, n, 3, 2, 4);
        for (std::int64_t i = 0; i < 60; ++i) rows.data[std::size_t(i)] = rows.data[0]; // rows that are equal
        const TsneAffinities affinities = tsneAffinities(rows, 10, {}, {});
        const Embedding picture = tsne(affinities, {.perplexity = 10, .iterations = 60}, {}, {});
        int kept = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            std::vector<std::pair<double, std::int32_t>> others;
            for (std::int64_t j = 0; j < n; ++j)
                if (j != i) others.push_back({squaredDistance(picture.points, i, j), std::int32_t(j)});
            std::sort(others.begin(), others.end());
            const auto first = affinities.nearest.begin() + i * 10;
            for (std::size_t k = 0; k < 10; ++k) kept += int(std::count(first, first + 10, others[k].second));
        }
        QCOMPARE(picture.neighboursKept, double(kept) / double(10 * n));
    }

    // A plane needs no unfolding, so its neighbours stay; a single step from a random start keeps about 10 in 200.
    void neighboursKeptCountsNeighbours() {
        const TsneAffinities affinities = tsneAffinities(clouds(2, 200, 2, 1, 0), 10, {}, {});
        const double unfolded = tsne(affinities, {.perplexity = 10, .iterations = 500}, {}, {}).neighboursKept;
        const double random = tsne(affinities, {.perplexity = 10, .iterations = 1}, {}, {}).neighboursKept;
        QVERIFY2(unfolded > 0.6, qPrintable(QString::number(unfolded)));
        QVERIFY2(random < 0.25, qPrintable(QString::number(random)));
    }

    void pictureDependsOnTheSeedAlone() {
        const HostTensor rows = clouds(9, 333, 10, 4, 3);
        const TsneRequest request{.iterations = 120, .seed = 3};
        const TsneAffinities affinities = tsneAffinities(rows, 30, {1, "v2"}, {});
        const Embedding one = tsne(affinities, request, {1, "v2"}, {});
        for (const TsneWorkers& workers : {TsneWorkers{1, ""}, {2, ""}, {7, ""}, {3, "v2"}}) {
            const TsneAffinities again = tsneAffinities(rows, 30, workers, {});
            QCOMPARE(again.affinity, affinities.affinity);
            QCOMPARE(again.column, affinities.column);
            const Embedding other = tsne(again, request, workers, {});
            QVERIFY2(other.points.data == one.points.data,
                     qPrintable(QString("%1 threads, %2").arg(workers.threads).arg(workers.instructionSet.c_str())));
            QCOMPARE(other.divergence, one.divergence);
        }
        QVERIFY(tsne(affinities, {.iterations = 120, .seed = 4}, {}, {}).points.data != one.points.data);
    }

    void moreRowsThanPairsAllowAreInterpolated() {
        const HostTensor rows = clouds(19, kMostExactTsneRows + 1, 3, 4, 40);
        const TsneRequest request{.iterations = 90, .seed = 3};
        const TsneAffinities affinities = tsneAffinities(rows, 10, {}, {});
        const Embedding one = tsne(affinities, request, {1, "v2"}, {});
        QVERIFY(one.repulsion == TsneRepulsion::Grid);
        QVERIFY2(one.neighboursKept > 0.1, qPrintable(QString::number(one.neighboursKept)));
        for (const TsneWorkers& workers : {TsneWorkers{1, ""}, {2, ""}, {3, "v2"}}) {
            const Embedding other = tsne(affinities, request, workers, {});
            QVERIFY2(other.points.data == one.points.data,
                     qPrintable(QString("%1 threads, %2").arg(workers.threads).arg(workers.instructionSet.c_str())));
            QCOMPARE(other.divergence, one.divergence);
        }
        QVERIFY(tsne(tsneAffinities(clouds(19, 300, 3, 4, 40), 10, {}, {}), request, {}, {}).repulsion ==
                TsneRepulsion::Exact);
    }

    void tooManyPointsAreRefusedWithARemedy() {
        const auto refusal = [](const HostTensor& rows, double perplexity) {
            return errorText([&] { (void)tsneAffinities(rows, perplexity, {}, {}); });
        };
        const QString tooMany = refusal({{65537, 1}, std::vector<float>(65537)}, 30);
        QVERIFY2(tooMany.contains("65536 points") && tooMany.contains("65537") && tooMany.contains("method=pca"),
                 qPrintable(tooMany));
        const QString tooFew = refusal(clouds(1, 90, 2, 1, 0), 30);
        QVERIFY2(tooFew.contains("90 neighbours") && tooFew.contains("below 30"), qPrintable(tooFew));
        QVERIFY(refusal(clouds(1, 91, 2, 1, 0), 30).isEmpty());
        HostTensor broken = clouds(1, 100, 2, 1, 0);
        broken.data[33] = NAN;
        QVERIFY(refusal(broken, 10).contains("row 16 is not finite"));
    }

    // Rows that are all the same have equal shares, and nothing divides by zero.
    void equalRowsAreNoTrouble() {
        const TsneAffinities affinities = tsneAffinities({{50, 3}, std::vector<float>(150, 2.5F)}, 10, {}, {});
        const Embedding picture = tsne(affinities, {.perplexity = 10, .iterations = 100}, {}, {});
        for (const float x : picture.points.data) QVERIFY(std::isfinite(x));
    }

    void stopsWhenAsked() {
        const TsneAffinities affinities = tsneAffinities(clouds(5, 200, 4, 2, 3), 20, {}, {});
        std::stop_source stop;
        int reports = 0;
        const Checkpoint checkpoint(stop.get_token(), [&](double, double) {
            if (++reports == 10) stop.request_stop();
        });
        QVERIFY_THROWS_EXCEPTION(Cancelled, (void)tsne(affinities, {.iterations = 1000}, {}, checkpoint));
        QCOMPARE(reports, 10);
        QVERIFY_THROWS_EXCEPTION(Cancelled, (void)tsneAffinities(clouds(5, 200, 4, 2, 3), 20, {}, checkpoint));
    }
};

KVSCOPE_TEST(TsneTest)
#include "tsne_test.moc"
