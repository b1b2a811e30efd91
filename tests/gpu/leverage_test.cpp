// What the engines' cases of leverage do not reach: several tiles and blocks of a head, rows that do not begin at
// multiples of 16 bytes, gaps between heads, NaN rows, pieces, the stop word; in whatever order threads run.
#include "gpu/kernels/leverage.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/larger_error.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;
using namespace kvscope::gpu;

namespace {

/// A call with memory for everything.
struct Leveraged {
    LeverageCall call;
    std::vector<float> sketch, scores;
    std::vector<double> means, grams, directions, scratch;

    Leveraged(const TestRows& rows, std::int64_t k, bool centred) {
        call.rows = rows.device();
        const std::int64_t h = call.rows.heads, n = call.rows.rows, d = call.rows.width;
        for (std::int64_t i = 0; i < d * k; ++i) sketch.push_back(float((i * 37 + 11) % 19 - 9) / 16);
        for (std::int64_t i = 0; i < h * k * k; ++i) directions.push_back(double((i * 23 + 5) % 17 - 8) / 32);
        means.resize(static_cast<std::size_t>(h * k));
        grams.assign(static_cast<std::size_t>(h * k * k), -1);
        scores.assign(static_cast<std::size_t>(h * n), -1);
        call.sketch = sketch.data();
        call.sketches = 1;
        call.columns = k;
        scratch.assign(static_cast<std::size_t>(leverageScratch(call)), std::nan(""));
        call.means = centred ? means.data() : nullptr;
        call.grams = grams.data();
        call.scores = scores.data();
        call.scratch = scratch.data();
    }

    /// In pieces of `most` blocks.
    void run(std::int64_t most) {
        const std::int64_t blocks = leverageBlocks(call.rows);
        const auto each = [&](const auto& pass) {
            for (std::int64_t begin = 0; begin < blocks; begin += most)
                pass(call, begin, std::min(blocks, begin + most), nullptr);
        };
        call.directions = nullptr;
        if (call.means) each(sketchedMeans);
        each(sketchedGrams);
        call.directions = directions.data();
        each(leverageScores);
    }

    /// Largest errors of means, Gram matrices and scores, relative to the largest number.
    double worst(const TestRows& rows) const {
        const std::int64_t h = call.rows.heads, n = call.rows.rows, d = call.rows.width, k = call.columns;
        double most = 0;
        for (std::int64_t head = 0; head < h; ++head) {
            std::vector<long double> x(static_cast<std::size_t>(n * k)), mean(static_cast<std::size_t>(k));
            for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t c = 0; c < k; ++c) {
                    long double& sum = x[std::size_t(i * k + c)];
                    for (std::int64_t e = 0; e < d; ++e)
                        sum += (long double)(rows.wide()[std::size_t((head * n + i) * d + e)]) *
                               sketch[std::size_t(e * k + c)];
                    mean[std::size_t(c)] += sum / n;
                }
            for (std::int64_t c = 0; c < k && call.means; ++c) {
                for (std::int64_t i = 0; i < n; ++i) x[std::size_t(i * k + c)] -= mean[std::size_t(c)];
                most = testing::larger(most, double(std::abs(mean[std::size_t(c)] - means[std::size_t(head * k + c)])));
            }
            for (std::int64_t a = 0; a < k; ++a)
                for (std::int64_t b = 0; b < k; ++b) {
                    long double sum = 0;
                    for (std::int64_t i = 0; i < n; ++i) sum += x[std::size_t(i * k + a)] * x[std::size_t(i * k + b)];
                    const double gram = grams[std::size_t((head * k + a) * k + b)];
                    most = testing::larger(most, double(std::abs(sum - gram)) / double(n));
                }
            for (std::int64_t i = 0; i < n; ++i) {
                long double square = 0;
                for (std::int64_t b = 0; b < k; ++b) {
                    long double sum = 0;
                    for (std::int64_t a = 0; a < k; ++a)
                        sum += x[std::size_t(i * k + a)] * directions[std::size_t((head * k + a) * k + b)];
                    square += sum * sum;
                }
                const float score = scores[std::size_t(head * n + i)];
                most = testing::larger(most, double(std::abs(square - score) / (1 + square)) * 1e-6);
            }
        }
        return most;
    }
};

class LeverageTest : public QObject {
    Q_OBJECT

private slots:
    void passes_data() {
        QTest::addColumn<int>("type");
        QTest::addColumn<int>("heads");
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("width");
        QTest::addColumn<int>("gap");
        QTest::addColumn<int>("columns");
        const int f32 = int(ElementType::Float32), bf16 = int(ElementType::BFloat16), f16 = int(ElementType::Float16);
        QTest::newRow("one row") << bf16 << 1 << 1 << 8 << 0 << 1;
        QTest::newRow("a block and a row") << bf16 << 2 << 129 << 64 << 0 << 64;
        QTest::newRow("several tiles and blocks") << bf16 << 1 << 16500 << 8 << 0 << 5;
        QTest::newRow("gaps, wide") << f16 << 2 << 70 << 136 << 8 << 33;
        QTest::newRow("not straight") << f32 << 3 << 67 << 15 << 7 << 9;
        QTest::newRow("straight floats") << f32 << 1 << 130 << 260 << 0 << 48;
    }

    void passes() {
        QFETCH(int, type);
        QFETCH(int, heads);
        QFETCH(int, rows);
        QFETCH(int, width);
        QFETCH(int, gap);
        QFETCH(int, columns);
        const TestRows data(5, static_cast<ElementType>(type), heads, rows, width, gap, 1, 0.4);
        for (const bool centred : {false, true}) {
            Leveraged whole(data, columns, centred);
            whole.run(1000);
            const double worst = whole.worst(data);
            QVERIFY2(worst < 1e-13 * width, qPrintable(QString::number(worst)));
            if (rows > 1000) continue;
            inEveryOrder([&] {
                Leveraged pieces(data, columns, centred);
                pieces.run(1);
                QVERIFY(sameBits(pieces.grams, whole.grams) && sameBits(pieces.scores, whole.scores));
            });
        }
    }

    /// A row that is NaN has no score and leaves no Gram matrix of its head; other rows keep their squared lengths.
    void notANumber() {
        TestRows data(6, ElementType::BFloat16, 2, 100, 24);
        Leveraged before(data, 7, false);
        before.run(1000);
        data.set(1, 40, 3, std::numeric_limits<float>::quiet_NaN());
        Leveraged after(data, 7, false);
        after.run(1000);
        QVERIFY(std::equal(before.grams.begin(), before.grams.begin() + 49, after.grams.begin()));
        QVERIFY(std::all_of(after.grams.begin() + 49, after.grams.end(), [](double x) { return std::isnan(x); }));
        QVERIFY(std::isnan(after.scores[140]));
        after.scores[140] = before.scores[140];
        QVERIFY(sameBits(after.scores, before.scores));
    }

    void aSetStopWordEndsAPass() {
        const TestRows data(7, ElementType::Float16, 1, 300, 16);
        Leveraged stopped(data, 6, false);
        std::vector<std::int32_t> words{1, 0};
        unsigned seen = 0;
        stopped.call.stop = {words.data(), &seen, 3};
        stopped.call.directions = stopped.directions.data();
        leverageScores(stopped.call, 0, leverageBlocks(stopped.call.rows), nullptr);
        QCOMPARE(words[1], 3);
        QVERIFY(std::all_of(stopped.scores.begin(), stopped.scores.end(), [](float x) { return x == -1; }));
    }
};

} // namespace

KVSCOPE_TEST(LeverageTest)
#include "leverage_test.moc"
