// Farthest-first centres and one-pass clusters: the plain algorithm's picks, whatever is skipped, and their properties.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "tests/support/naive/naive_clusters.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace kvscope;

namespace {

/// Around a few directions, with some equal rows, so that ties happen.
naive::Block randomKeys(unsigned seed, std::int64_t heads, std::int64_t n, std::int64_t d) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    naive::Block keys{heads, n, d, {}};
    for (std::int64_t i = 0; i < heads * n; ++i) {
        const float shift = static_cast<float>(random() % 4);
        for (std::int64_t c = 0; c < d; ++c)
            keys.numbers.push_back(std::round(8 * (normal(random) * 0.5F + shift)) / 8);
    }
    for (std::int64_t c = 0; n > 5 && c < d; ++c)
        keys.numbers[static_cast<std::size_t>(5 * d + c)] = keys.numbers[static_cast<std::size_t>(d + c)];
    return keys;
}

Tensor upload(const Engine& engine, const naive::Block& keys) {
    return engine.upload({{keys.heads, keys.rows, keys.width}, keys.numbers});
}

CentersRequest centres(std::int64_t count, std::vector<TokenIndex> first) {
    CentersRequest request;
    request.count = count;
    request.first = std::move(first);
    request.compareAll = true;
    return request;
}

std::vector<int> asInts(const std::vector<std::int32_t>& list) { return {list.begin(), list.end()}; }

bool near(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](double x, double y) { return std::abs(x - y) <= 1e-12 * (1 + std::abs(y)); });
}

} // namespace

class ClustersTest : public QObject {
    Q_OBJECT

private slots:
    void picksWhatThePlainAlgorithmPicks() {
        for (unsigned seed = 1; seed <= 12; ++seed) {
            const std::int64_t n = seed < 4 ? seed : 23 * seed, d = seed % 3 ? 7 : 16;
            const naive::Block keys = randomKeys(seed, 2, n, d);
            const auto first = static_cast<TokenIndex>(seed % n);
            const auto count = std::max<std::int64_t>(1, n - seed / 2);
            const auto runs = m_engine->greedyCenters(upload(*m_engine, keys), centres(count, {0, first}), {});
            for (std::int64_t h = 0; h < 2; ++h) {
                const naive::Centers expected = naive::greedyCenters(keys, h, count, h == 0 ? 0 : first);
                const GreedyCenters& run = runs[static_cast<std::size_t>(h)];
                QCOMPARE(asInts(run.order), expected.order);
                QVERIFY(near(run.radius, expected.radius));
                QVERIFY(near(run.closest, expected.closest));
                QCOMPARE(asInts(run.centre), expected.cell);
            }
        }
    }

    // Distances to centres after the first 8,192 are not stored. Whole numbers: all squared distances are exact.
    void picksTheSameBehindTheStoredDistances() {
        constexpr std::int64_t kRows = 12'000, kWidth = 3;
        constexpr int kCount = 8'600;
        std::mt19937 random(77);
        naive::Block keys{1, kRows, kWidth, {}};
        for (std::int64_t i = 0; i < kRows * kWidth; ++i) keys.numbers.push_back(static_cast<float>(random() % 200));
        std::vector<int> order = {5}, cell(kRows, 0);
        std::vector<float> nearest(kRows, std::numeric_limits<float>::infinity());
        for (;;) {
            const float* centre = keys.numbers.data() + order.back() * kWidth;
            for (std::int64_t row = 0; row < kRows; ++row) {
                float distance = 0;
                for (int c = 0; c < kWidth; ++c) {
                    const float apart = keys.numbers[static_cast<std::size_t>(row * kWidth + c)] - centre[c];
                    distance += apart * apart;
                }
                if (distance < nearest[row]) nearest[row] = distance, cell[row] = static_cast<int>(order.size()) - 1;
            }
            if (order.size() == kCount) break;
            order.push_back(static_cast<int>(std::ranges::max_element(nearest) - nearest.begin()));
        }
        const GreedyCenters run = m_engine->greedyCenters(upload(*m_engine, keys), centres(kCount, {5}), {})[0];
        QCOMPARE(asInts(run.order), order);
        QCOMPARE(asInts(run.centre), cell);
    }

    // Keys 0, 1, 10: start at 0, then 10, then 1; radii 10, 1, 0.
    void handExample() {
        const naive::Block keys{1, 3, 1, {0, 1, 10}};
        const GreedyCenters run = m_engine->greedyCenters(upload(*m_engine, keys), centres(3, {0}), {})[0];
        QCOMPARE(asInts(run.order), (std::vector<int>{0, 2, 1}));
        QCOMPARE(run.radius, (std::vector<double>{10, 1, 0}));
        QCOMPARE(run.closest, (std::vector<double>{9, 1, 0}));
    }

    void aLongerRunContinuesAShorterOne() {
        const naive::Block keys = randomKeys(77, 2, 300, 12);
        const Tensor tensor = upload(*m_engine, keys);
        const auto whole = m_engine->greedyCenters(tensor, centres(200, {3, 4}), {});
        CentersRequest request = centres(0, {3, 4});
        request.compareAll = false;
        std::vector<GreedyCenters> run;
        for (const std::int64_t count : {1, 2, 50, 50, 199, 200}) {
            request.count = count;
            request.known = run;
            run = m_engine->greedyCenters(tensor, request, {});
            QVERIFY(std::equal(run[1].order.begin(), run[1].order.end(), whole[1].order.begin()));
            QVERIFY(std::equal(run[0].radius.begin(), run[0].radius.end(), whole[0].radius.begin()));
        }
        QCOMPARE(run[0].order, whole[0].order);
        QCOMPARE(run[0].closest, whole[0].closest);
    }

    void radiusFallsAndCentresAreApart() {
        const naive::Block keys = randomKeys(9, 1, 400, 16);
        const GreedyCenters run = m_engine->greedyCenters(upload(*m_engine, keys), centres(120, {0}), {})[0];
        QVERIFY(std::is_sorted(run.radius.rbegin(), run.radius.rend()));
        for (std::size_t row = 0; row < run.distances.size(); ++row)
            QVERIFY(std::sqrt(run.distances[row]) <= run.radius.back());
        const naive::Block picked = [&] {
            naive::Block block{1, 120, 16, {}};
            for (const TokenIndex row : run.order)
                block.numbers.insert(block.numbers.end(), keys.numbers.begin() + row * 16,
                                     keys.numbers.begin() + row * 16 + 16);
            return block;
        }();
        // With a radius just below the last one every centre is a cluster of its own.
        QCOMPARE(naive::streamClusters(picked, 0, run.radius.back() * 0.999).representatives.size(), std::size_t{120});
    }

    void equalKeysEndTheWalk() {
        const naive::Block keys{1, 6, 2, {1, 2, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2}};
        const GreedyCenters run = m_engine->greedyCenters(upload(*m_engine, keys), centres(5, {0}), {})[0];
        QCOMPARE(asInts(run.order), (std::vector<int>{0, 2}));
        QCOMPARE(run.radius.back(), 0.0);
    }

    void clustersAreThoseOfOnePass() {
        for (unsigned seed = 1; seed <= 8; ++seed) {
            const naive::Block keys = randomKeys(seed, 2, 40 * seed + 1, 9);
            const std::vector<double> radii = {0.25 * seed, 1.5};
            const auto result = m_engine->streamClusters(upload(*m_engine, keys), radii, keys.rows, {});
            for (std::int64_t h = 0; h < 2; ++h) {
                const StreamClusters& got = result[static_cast<std::size_t>(h)];
                const naive::Clusters expected = naive::streamClusters(keys, h, radii[static_cast<std::size_t>(h)]);
                QCOMPARE(asInts(got.representatives), expected.representatives);
                QCOMPARE(asInts(got.cluster), expected.cluster);
                QVERIFY(near(got.distances, expected.distances));
                QVERIFY(near({got.margin}, {expected.margin}));
                QVERIFY(!got.full);
            }
        }
    }

    // 0, 0.1, 5, 5.2 with radius 0.5: {0, 0.1} and {5, 5.2}; one cluster is not enough.
    void handClusters() {
        const naive::Block keys{1, 4, 1, {0, 0.1F, 5, 5.2F}};
        const std::vector<double> radius = {0.5};
        const Tensor tensor = upload(*m_engine, keys);
        const StreamClusters two = m_engine->streamClusters(tensor, radius, 4, {})[0];
        QCOMPARE(asInts(two.cluster), (std::vector<int>{0, 0, 1, 1}));
        QCOMPARE(asInts(two.representatives), (std::vector<int>{0, 2}));
        QVERIFY(m_engine->streamClusters(tensor, radius, 1, {})[0].full);
        QVERIFY(!m_engine->streamClusters(tensor, radius, 2, {})[0].full);
    }

    void threadsAndInstructionSetsAgree() {
        const naive::Block keys = randomKeys(31, 3, 500, 33);
        const std::vector<double> radii = {2, 3, 4};
        const auto centresHere = m_engine->greedyCenters(upload(*m_engine, keys), centres(300, {0, 1, 2}), {});
        const auto clustersHere = m_engine->streamClusters(upload(*m_engine, keys), radii, 500, {});
        for (const int threads : {1, 2, 7}) {
            const auto other = makeCpuEngine(threads, threads == 2 ? "v2" : "");
            const auto c = other->greedyCenters(upload(*other, keys), centres(300, {0, 1, 2}), {});
            const auto s = other->streamClusters(upload(*other, keys), radii, 500, {});
            for (std::size_t h = 0; h < 3; ++h) {
                QCOMPARE(c[h].order, centresHere[h].order);
                QCOMPARE(c[h].radius, centresHere[h].radius);
                QCOMPARE(s[h].distances, clustersHere[h].distances);
            }
        }
    }

    void refusesWhatHasNoDistance() {
        naive::Block keys = randomKeys(2, 1, 20, 4);
        keys.numbers[30] = std::nanf("");
        const std::vector<double> radius = {1};
        QVERIFY_THROWS_EXCEPTION(Error, (void)m_engine->greedyCenters(upload(*m_engine, keys), centres(5, {0}), {}));
        QVERIFY_THROWS_EXCEPTION(Error, (void)m_engine->streamClusters(upload(*m_engine, keys), radius, 20, {}));
    }

private:
    std::unique_ptr<Engine> m_engine = makeCpuEngine();
};

KVSCOPE_TEST(ClustersTest)
#include "clusters_test.moc"
