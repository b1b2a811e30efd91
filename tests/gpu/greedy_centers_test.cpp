// The k-center kernels against the CPU engine: the same picks, radii and leads to the last bit, with equal rows, ends
// before the count, continued runs and more rows than one block takes.
#include "core/engine/engine.h"
#include "gpu/kernels/center_steps.h"
#include "gpu/kernels/greedy_centers.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;
using namespace kvscope::gpu;

namespace {

/// The outputs of a run on the emulated device.
struct Run {
    std::vector<std::int32_t> order, centre, found;
    std::vector<double> radius, closest, distances;
};

Run runOnDevice(const DeviceRows& keys, std::int32_t count, const std::vector<std::int32_t>& first,
                const Run* known = nullptr, std::int32_t knownCount = 0) {
    const auto places = static_cast<std::size_t>(keys.heads * count),
               rows = static_cast<std::size_t>(keys.heads * keys.rows);
    Run run{std::vector<std::int32_t>(places, -1),
            std::vector<std::int32_t>(rows, -1),
            std::vector<std::int32_t>(first.size(), -1),
            std::vector<double>(places, -1),
            std::vector<double>(places, -1),
            std::vector<double>(rows, -1)};
    if (known) { // a longer list of each head: the strides differ
        run.distances = known->distances;
        run.centre = known->centre;
        run.found = known->found;
        for (std::int64_t h = 0; h < keys.heads; ++h)
            for (std::int32_t i = 0; i < knownCount; ++i) {
                const auto to = static_cast<std::size_t>(h * count + i),
                           from = static_cast<std::size_t>(h * knownCount + i);
                run.order[to] = known->order[from];
                run.radius[to] = known->radius[from];
                run.closest[to] = known->closest[from];
            }
    }
    std::vector<double> scratch((centersScratchBytes(keys) + 7) / 8);
    greedyCenters({.keys = keys,
                   .count = count,
                   .known = knownCount,
                   .first = first.data(),
                   .order = run.order.data(),
                   .radius = run.radius.data(),
                   .closest = run.closest.data(),
                   .distances = run.distances.data(),
                   .centre = run.centre.data(),
                   .found = run.found.data(),
                   .scratch = scratch.data()},
                  nullptr);
    return run;
}

template <class T> std::vector<T> part(const std::vector<T>& all, std::int64_t begin, std::size_t count) {
    return {all.begin() + begin, all.begin() + begin + static_cast<std::ptrdiff_t>(count)};
}

class GreedyCentersTest : public QObject {
    Q_OBJECT

private slots:
    void mergingFarthestRowsHasNoOrder() {
        const Farthest a{4, -1, 7}, b{4, -1, 3}, c{9, 2, 11}, none;
        for (const Farthest& all : {farthestOf(farthestOf(a, b), c), farthestOf(a, farthestOf(c, b)),
                                    farthestOf(farthestOf(none, c), farthestOf(b, a))}) {
            QCOMPARE(all.distance, 9.0);
            QCOMPARE(all.runnerUp, 4.0);
            QCOMPARE(all.row, std::int64_t{11});
        }
        QCOMPARE(farthestOf(a, b).row, std::int64_t{3});
        QCOMPARE(farthestOf(a, none).runnerUp, -1.0);
    }

    void picksWhatTheCpuEnginePicks_data() {
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("width");
        QTest::addColumn<int>("count");
        QTest::addColumn<int>("type");
        QTest::newRow("one row") << 1 << 3 << 1 << 0;
        QTest::newRow("two rows") << 2 << 8 << 2 << 0;
        QTest::newRow("all of a block") << 128 << 16 << 128 << 1;
        QTest::newRow("a tail in every loop") << 389 << 29 << 40 << 0;
        QTest::newRow("several steps of 16 bytes") << 280 << 264 << 25 << 1;
        QTest::newRow("half precision") << 300 << 64 << 33 << 2;
    }

    void picksWhatTheCpuEnginePicks() {
        QFETCH(int, rows);
        QFETCH(int, width);
        QFETCH(int, count);
        QFETCH(int, type);
        TestRows keys(static_cast<unsigned>(rows + count), static_cast<ElementType>(type), 3, rows, width, 3);
        makeTies(keys, rows, width);
        const std::vector<std::int32_t> first = {0, rows / 2, rows - 1};
        const auto expected = m_engine->greedyCenters(upload(keys, rows, width), request(count, first), {});
        inEveryOrder([&] { compare(runOnDevice(keys.device(), count, first), expected, rows, count); });
    }

    /// Points of a small grid: most rows are as far from one centre as from another, and many are equal.
    void tiesGoToTheEarlierCentre() {
        TestRows keys(8, ElementType::Float32, 3, 150, 4);
        for (std::int64_t i = 0; i < 3 * 150 * 4; ++i)
            keys.set(i / 600, i / 4 % 150, i % 4, std::round(keys.wide()[static_cast<std::size_t>(i)] * 2));
        const std::vector<std::int32_t> first = {0, 70, 149};
        const auto expected = m_engine->greedyCenters(upload(keys, 150, 4), request(30, first), {});
        inEveryOrder([&] { compare(runOnDevice(keys.device(), 30, first), expected, 150, 30); });
    }

    void continuesAnEarlierRun() {
        TestRows keys(77, ElementType::Float32, 3, 333, 12);
        makeTies(keys, 333, 12);
        const std::vector<std::int32_t> first = {5, 300, 11};
        const auto expected = m_engine->greedyCenters(upload(keys, 333, 12), request(50, first), {});
        const Run part = runOnDevice(keys.device(), 17, first);
        compare(runOnDevice(keys.device(), 50, first, &part, 17), expected, 333, 50);
    }

    /// Four places only: the run ends after four centres, whatever was asked for.
    void endsWhenEveryRowIsACentre() {
        TestRows keys(1, ElementType::Float32, 1, 200, 2);
        for (std::int64_t r = 0; r < 200; ++r) {
            keys.set(0, r, 0, static_cast<float>(r % 2));
            keys.set(0, r, 1, static_cast<float>(r / 2 % 2));
        }
        const Run run = runOnDevice(keys.device(), 9, {6});
        QCOMPARE(run.found[0], 4);
        QCOMPARE(part(run.order, 0, 4), (std::vector<std::int32_t>{6, 1, 0, 3}));
        QCOMPARE(run.radius[3], 0.0);
        QCOMPARE(run.order[4], -1); // nothing is written behind the end
        QCOMPARE(run.radius[4], -1.0);
    }

    void notANumberShowsInTheRadius() {
        TestRows keys(1, ElementType::Float32, 1, 20, 4);
        keys.set(0, 7, 1, std::numeric_limits<float>::quiet_NaN());
        QVERIFY(!std::isfinite(runOnDevice(keys.device(), 2, {0}).radius[0]));
    }

private:
    static void makeTies(TestRows& keys, std::int64_t rows, std::int64_t width) {
        for (std::int64_t c = 0; rows > 20 && c < width; ++c) {
            keys.set(1, 19, c, keys.wide()[static_cast<std::size_t>((rows + 4) * width + c)]);
            keys.set(2, 11, c, 3);
            keys.set(2, 12, c, -3);
        }
    }

    Tensor upload(const TestRows& keys, std::int64_t rows, std::int64_t width) const {
        return m_engine->upload({{keys.device().heads, rows, width}, keys.wide()});
    }

    static CentersRequest request(std::int32_t count, const std::vector<std::int32_t>& first) {
        CentersRequest request;
        request.count = count;
        request.first = first;
        request.compareAll = true;
        return request;
    }

    static void compare(const Run& run, const std::vector<GreedyCenters>& expected, std::int64_t rows,
                        std::int64_t count) {
        for (std::size_t h = 0; h < expected.size(); ++h) {
            const auto head = static_cast<std::int64_t>(h);
            const std::size_t found = expected[h].order.size(), n = static_cast<std::size_t>(rows);
            QCOMPARE(run.found[h], static_cast<std::int32_t>(found));
            QVERIFY(part(run.order, head * count, found) == expected[h].order);
            QVERIFY(sameBits(part(run.radius, head * count, found), expected[h].radius));
            QVERIFY(sameBits(part(run.closest, head * count, found), expected[h].closest));
            QVERIFY(sameBits(part(run.distances, head * rows, n), expected[h].distances));
            QVERIFY(part(run.centre, head * rows, n) == expected[h].centre);
        }
    }

    std::unique_ptr<Engine> m_engine = makeCpuEngine(1);
};

} // namespace

KVSCOPE_TEST(GreedyCentersTest)
#include "greedy_centers_test.moc"
