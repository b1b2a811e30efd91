// What must hold for any input: laws of the primitives, borders, refusals and cancelling.
#include "core/base/error.h"
#include "tests/bench/engine_check/engine_case.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <atomic>
#include <cmath>
#include <numeric>
#include <stop_token>

using namespace kvscope;
using namespace kvscope::check;

namespace {

const float kNaN = std::nanf("");

std::vector<float> similarityOf(const Engine& e, HostTensor keys, const HostTensor& anchor, SimilarityMetric metric) {
    return e.similarity(e.upload(std::move(keys)), anchor, metric, {}).data;
}

} // namespace

class PropertiesTest : public QObject {
    Q_OBJECT

    std::unique_ptr<Engine> m_engine = makeCpuEngine();

private slots:
    void anUnknownInstructionSetIsRefused() { QVERIFY_THROWS_EXCEPTION(Error, makeCpuEngine(1, "v9")); }

    void rowsShareAndGatherCopies() {
        const Tensor t = m_engine->upload({Shape{2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}});
        const HostTensor part = m_engine->download(m_engine->rows(t, 1, 3));
        QVERIFY(part.shape == (Shape{2, 2, 2}));
        QCOMPARE(part.data, (std::vector<float>{2, 3, 4, 5, 8, 9, 10, 11}));
        QCOMPARE(m_engine->download(m_engine->rows(m_engine->rows(t, 1, 3), 1, 2)).data,
                 (std::vector<float>{4, 5, 10, 11}));
        QCOMPARE(m_engine->download(m_engine->gatherRows(m_engine->rows(t, 1, 3), {{1, 0}, {0, 0}})).data,
                 (std::vector<float>{4, 5, 2, 3, 8, 9, 8, 9}));
        QVERIFY(m_engine->download(m_engine->rows(t, 1, 1)).empty());
    }

    /// K1: the two anchors disagree completely on these keys.
    void meanAndNormalisedMeanDisagreeOnUnequalLengths() {
        const HostTensor keys{Shape{1, 3, 2}, {10, 0, 0, 1, 0, 1}};
        const Tensor t = m_engine->upload(keys);
        const auto mean =
            m_engine->similarity(t, m_engine->anchor(t, AnchorKind::Mean, {}), SimilarityMetric::Cosine, {});
        const auto normalised =
            m_engine->similarity(t, m_engine->anchor(t, AnchorKind::NormalisedMean, {}), SimilarityMetric::Cosine, {});
        QVERIFY(std::abs(mean.data[0] - 0.98F) < 0.005F && std::abs(mean.data[1] - 0.20F) < 0.005F);
        QVERIFY(std::abs(normalised.data[0] - 0.45F) < 0.005F && std::abs(normalised.data[1] - 0.89F) < 0.005F);
    }

    void zeroVectorsHaveCosineZero() { // K4: a zero key, and mu = 0 of antipodal keys
        QCOMPARE(
            similarityOf(*m_engine, {Shape{1, 2, 2}, {0, 0, 3, 4}}, {Shape{1, 2}, {3, 4}}, SimilarityMetric::Cosine),
            (std::vector<float>{0, 1}));
        const Tensor antipodal = m_engine->upload({Shape{1, 2, 2}, {1, 2, -1, -2}});
        const HostTensor mu = m_engine->anchor(antipodal, AnchorKind::NormalisedMean, {});
        QCOMPARE(mu.data, (std::vector<float>{0, 0}));
        QCOMPARE(m_engine->similarity(antipodal, mu, SimilarityMetric::Cosine, {}).data, (std::vector<float>{0, 0}));
    }

    void tinyAndHugeKeysKeepTheirCosine() { // squares far outside the range of float
        QCOMPARE(similarityOf(*m_engine, {Shape{1, 2, 2}, {1e-30F, 0, 1e30F, 1e30F}}, {Shape{1, 2}, {1e-30F, 0}},
                              SimilarityMetric::Cosine),
                 (std::vector<float>{1, static_cast<float>(std::sqrt(0.5))}));
    }

    /// K2: pairwise sums are n ||mu|| cos(mu, k).
    void pairwiseSumsAreTheNormalisedMeanInDisguise() {
        const naive::Block keys = randomBlock(71, 2, 500, 24, 1, 0.5);
        const Tensor t = uploadRows(*m_engine, keys);
        const HostTensor mu = m_engine->anchor(t, AnchorKind::NormalisedMean, {});
        const auto norms = m_engine->rowNorms(m_engine->upload({Shape{1, 2, 24}, mu.data}), {});
        const auto sums = m_engine->pairwiseSums(t, SimilarityMetric::Cosine, {}).data;
        const auto cosines = m_engine->similarity(t, mu, SimilarityMetric::Cosine, {}).data;
        for (std::size_t i = 0; i < sums.size(); ++i)
            QVERIFY(std::abs(sums[i] - 500 * norms.data[i / 500] * cosines[i]) < 2e-3F);
    }

    void columnSumsOfAHeadAddUpToItsQueries() {
        const naive::Block keys = randomBlock(72, 1, 3000, 16), queries = randomBlock(73, 2, 45, 16);
        const auto sums = m_engine->attentionColumnSums(
            {uploadRows(*m_engine, queries), uploadRows(*m_engine, keys), 2955, {}, {1, 0, 0, {0, 0}}}, {});
        for (int h = 0; h < 2; ++h)
            QVERIFY(std::abs(std::accumulate(sums.data.begin() + h * 3000, sums.data.begin() + (h + 1) * 3000, 0.0) -
                             45) < 1e-4);
    }

    /// NaN must not be lost on the way to the place that refuses it.
    void notANumberReachesTheScores() {
        const auto cosine =
            similarityOf(*m_engine, {Shape{1, 2, 2}, {kNaN, 1, 1, 1}}, {Shape{1, 2}, {1, 1}}, SimilarityMetric::Cosine);
        QVERIFY(std::isnan(cosine[0]) && !std::isnan(cosine[1]));
        const Tensor keys = m_engine->upload({Shape{1, 3, 1}, {1, kNaN, 1}});
        const Tensor query = m_engine->upload({Shape{1, 1, 1}, {1}});
        const auto sums = m_engine->attentionColumnSums({query, keys, 2, {}, {1, 0, 0, {0}}}, {});
        QVERIFY(std::isnan(sums.data[0]));
    }

    void aStandstillCloudHasNoVariance() {
        const PrincipalAxes axes =
            m_engine->principalAxes(m_engine->upload({Shape{1, 40, 24}, std::vector<float>(960, 2.5F)}), 0, 3, {});
        QCOMPARE(axes.totalVariance, 0.0);
        QCOMPARE(axes.explainedVariance, (std::vector<double>{0, 0, 0}));
    }

    // The keys lie on a line or in a plane of 64 dimensions, so the axes beyond explain nothing.
    void axesOfFewDimensionsExplainAll() {
        const auto spread = randomBlock(75, 1, 40, 2).numbers;
        for (const int rank : {1, 2})
            for (const int rows : {2, 3, 40}) {
                std::vector<float> keys(static_cast<std::size_t>(rows) * 64);
                for (int row = 0; row < rows; ++row)
                    for (int c = 0; c < 64; ++c)
                        keys[static_cast<std::size_t>(64 * row + c)] =
                            spread[static_cast<std::size_t>(2 * row + (c + c / 7) % rank)] *
                            static_cast<float>(1 + c % 5);
                const PrincipalAxes axes =
                    m_engine->principalAxes(m_engine->upload({Shape{1, rows, 64}, keys}), 0, 4, {});
                const auto& shares = axes.explainedVariance;
                const double within = rank == 1 ? shares[0] : shares[0] + shares[1];
                QVERIFY2(std::abs(within - 1) < 1e-9, qPrintable(QString("rank %1, %2 rows").arg(rank).arg(rows)));
                QVERIFY(shares[2] < 1e-9 && shares[3] < 1e-9);
            }
    }

    void projectionMeasuresAlongTheAxes() {
        naive::Block keys = randomBlock(74, 1, 800, 32);
        for (std::size_t i = 0; i < keys.numbers.size(); ++i) keys.numbers[i] *= 1 + static_cast<float>(i % 32);
        const Tensor t = uploadRows(*m_engine, keys);
        const PrincipalAxes axes = m_engine->principalAxes(t, 0, 2, {});
        const HostTensor points = m_engine->project(t, 0, axes);
        for (int a = 0; a < 2; ++a) {
            double sum = 0, squares = 0;
            for (int i = 0; i < 800; ++i) {
                const double x = double{points.data[static_cast<std::size_t>(2 * i + a)]};
                sum += x;
                squares += x * x;
            }
            QVERIFY(std::abs(sum / 800) < 1e-4);
            const double share = squares / 799 / axes.totalVariance;
            QVERIFY(std::abs(share - axes.explainedVariance[static_cast<std::size_t>(a)]) < 1e-6);
        }
    }

    void aStopRequestEndsLongWork() {
        std::stop_source stop;
        std::atomic<int> reports = 0;
        const Checkpoint checkpoint(stop.get_token(), [&](double done, double total) {
            QVERIFY(done <= total);
            if (++reports == 3) stop.request_stop();
        });
        const Tensor keys = uploadRows(*m_engine, randomBlock(75, 1, 20000, 16));
        QVERIFY_THROWS_EXCEPTION(Cancelled, m_engine->pairwiseSums(keys, SimilarityMetric::Dot, checkpoint));
        QVERIFY(reports < 10);
    }
};

KVSCOPE_TEST(PropertiesTest)
#include "properties_test.moc"
