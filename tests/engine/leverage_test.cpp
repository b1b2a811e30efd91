// The laws of Compactor 3.1 to 3.3 on the engine: what leverage and attention inside chunks must be for any
// keys, and the examples that can be done by hand.
#include "core/engine/score_arithmetic.h"
#include "tests/bench/engine_check/engine_case.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <numeric>
#include <random>

using namespace kvscope;
using namespace kvscope::check;

namespace {

constexpr LeverageRoute kRoutes[] = {LeverageRoute::Svd, LeverageRoute::Qr, LeverageRoute::Gram,
                                     LeverageRoute::Cholesky};

LeverageRequest by(LeverageRoute route, bool centred = false, std::int64_t chunk = 0) {
    LeverageRequest request;
    request.route = route;
    request.centred = centred;
    request.chunk = chunk;
    return request;
}

bool near(const std::vector<float>& a, const std::vector<float>& b, double allowed = 1e-5) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!(std::abs(double{a[i]} - double{b[i]}) <= allowed)) return false;
    return true;
}

double sumOf(const std::vector<float>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

naive::Block permuted(const naive::Block& rows, const std::vector<std::size_t>& order) {
    naive::Block out = rows;
    const auto d = static_cast<std::size_t>(rows.width);
    for (std::size_t i = 0; i < order.size(); ++i)
        std::copy_n(rows.numbers.begin() + static_cast<std::ptrdiff_t>(order[i] * d), d,
                    out.numbers.begin() + static_cast<std::ptrdiff_t>(i * d));
    return out;
}

} // namespace

class LeverageTest : public QObject {
    Q_OBJECT

    std::unique_ptr<Engine> m_engine = makeCpuEngine(2);

    std::vector<float> leverageOf(const naive::Block& rows, LeverageRequest request = {}) const {
        request.rows = uploadRows(*m_engine, rows);
        return m_engine->leverage(request, {}).scores.data;
    }

    /// Fast scores are within `share` of the exact ones and not equal to them, so that the fast path was taken; with
    /// `share` 0 they have the same bits. The number of threads changes nothing.
    void compareFast(const naive::Block& rows, LeverageRequest request, double share) const {
        const std::vector<float> exact = leverageOf(rows, request);
        std::vector<float> first;
        for (const std::string& set : testing::availableSets())
            for (const int threads : {1, 3}) {
                const auto fast = makeCpuEngine(threads, set, Arithmetic::Fast);
                request.rows = uploadRows(*fast, rows);
                const Leverage leverage = fast->leverage(request, {});
                const std::vector<float>& scores = leverage.scores.data;
                if (threads == 1) first = scores;
                QVERIFY2(scores == first, "the number of threads changes scores");
                QCOMPARE(scores == exact, share == 0);
                for (std::size_t i = 0; i < exact.size(); ++i) {
                    QVERIFY(scores[i] >= 0 && scores[i] <= 1 + 1e-6F);
                    QVERIFY(std::abs(double{scores[i]} - double{exact[i]}) <= share * double{exact[i]} + 1e-7);
                }
            }
    }

    std::vector<float> chunkSums(const naive::Block& q, const naive::Block& k, std::int64_t chunk) const {
        AttentionChunksInput in{uploadRows(*m_engine, q), uploadRows(*m_engine, k), {1, 0, 0, {0}}, chunk};
        return m_engine->attentionChunkSums(in, {}).data;
    }

private slots:
    void handExample() {
        const naive::Block rows{1, 3, 2, {1, 0, 0, 1, 0, 1}};
        for (const LeverageRoute route : kRoutes) {
            QVERIFY(near(leverageOf(rows, by(route)), {1, 0.5F, 0.5F}));
            QVERIFY(near(leverageOf(rows, by(route, true)), {2.F / 3, 1.F / 6, 1.F / 6}));
        }
    }

    void liesBetweenZeroAndOneAndAddsUpToTheRank() {
        const naive::Block rows = randomBlock(101, 1, 200, 16, 1, 1);
        for (const LeverageRoute route : kRoutes) {
            const auto scores = leverageOf(rows, by(route));
            QVERIFY(std::all_of(scores.begin(), scores.end(), [](float x) { return x >= 0 && x <= 1; }));
            QVERIFY(std::abs(sumOf(scores) - 16) < 1e-4);
        }
        naive::Block flat = rows;
        for (std::size_t i = 0; i < flat.numbers.size(); i += 16) flat.numbers[i + 5] = 2 * flat.numbers[i]; // exactly
        for (const LeverageRoute route : kRoutes) QVERIFY(std::abs(sumOf(leverageOf(flat, by(route))) - 15) < 1e-4);
    }

    void ridgeAddsUpToTheShrunkenRank() {
        const naive::Block rows = randomBlock(102, 1, 120, 8, 1, 1);
        LeverageRequest request;
        request.regulariser = Regulariser::Ridge;
        request.strength = 7;
        request.rows = uploadRows(*m_engine, rows);
        for (const LeverageRoute route : kRoutes) {
            request.route = route;
            const Leverage leverage = m_engine->leverage(request, {});
            double expected = 0;
            for (const float s : leverage.spectrum.data)
                expected += double{s} * double{s} / (double{s} * double{s} + 7);
            QVERIFY(std::abs(sumOf(leverage.scores.data) - expected) < 1e-4);
        }
    }

    void anyInvertibleMatrixChangesNothing() {
        const naive::Block rows = randomBlock(103, 2, 150, 12, 1, 0.7);
        const auto exact = leverageOf(rows);
        const naive::Block square = randomBlock(104, 2, 12, 12);
        LeverageRequest request;
        request.sketch = {Shape{2, 12, 12}, square.numbers};
        for (const LeverageRoute route : kRoutes) {
            request.route = route;
            QVERIFY(near(leverageOf(rows, request), exact));
        }
        naive::Block scaled = rows;
        for (float& x : scaled.numbers) x *= 1024;
        QVERIFY(near(leverageOf(scaled), exact));
    }

    void followsPermutationsAndHalvesOnDuplication() {
        const naive::Block rows = randomBlock(105, 1, 90, 7);
        const auto scores = leverageOf(rows);
        std::vector<std::size_t> order(90);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), std::mt19937(5));
        const auto shuffled = leverageOf(permuted(rows, order));
        for (std::size_t i = 0; i < 90; ++i) QVERIFY(std::abs(shuffled[i] - scores[order[i]]) < 1e-6F);
        naive::Block twice{1, 180, 7, rows.numbers};
        twice.numbers.insert(twice.numbers.end(), rows.numbers.begin(), rows.numbers.end());
        const auto halves = leverageOf(twice);
        for (std::size_t i = 0; i < 180; ++i) QVERIFY(std::abs(2 * halves[i] - scores[i % 90]) < 1e-5F);
    }

    void isOneOnlyForTheRowThatHoldsUpTheRank() {
        naive::Block rows = randomBlock(106, 1, 40, 6);
        for (std::size_t i = 0; i < 40; ++i) rows.numbers[i * 6 + 5] = i == 17 ? 3.F : 0.F;
        for (const LeverageRoute route : kRoutes) {
            const auto scores = leverageOf(rows, by(route));
            for (std::size_t i = 0; i < 40; ++i) QCOMPARE(scores[i] > 0.999F, i == 17);
        }
    }

    void centredPlusOneOverNIsLeverageWithAColumnOfOnes() { // C2
        const naive::Block rows = randomBlock(107, 1, 60, 5, 1, 2);
        naive::Block ones{1, 60, 6, {}};
        for (std::size_t i = 0; i < 60; ++i) {
            ones.numbers.push_back(1);
            ones.numbers.insert(ones.numbers.end(), rows.numbers.begin() + std::ptrdiff_t(i * 5),
                                rows.numbers.begin() + std::ptrdiff_t(i * 5 + 5));
        }
        const auto with = leverageOf(ones), centred = leverageOf(rows, by(LeverageRoute::Gram, true));
        for (std::size_t i = 0; i < 60; ++i) QVERIFY(std::abs(centred[i] + 1.F / 60 - with[i]) < 1e-5F);
    }

    void shortCentredChunksAreFlat() { // C3, and the 8-token tail that gave infinities
        const naive::Block rows = randomBlock(108, 2, 72, 16);
        for (const LeverageRoute route : kRoutes) {
            const auto scores = leverageOf(rows, by(route, true, 64));
            for (std::size_t i = 64; i < 72; ++i) QVERIFY(std::abs(scores[i] - 7.F / 8) < 1e-6F);
            const HostTensor z = standardise({Shape{2, 72}, scores}, {.jointly = true, .chunk = 64});
            QVERIFY(std::all_of(z.data.begin(), z.data.end(), [](float x) { return std::isfinite(x); }));
            QCOMPARE(z.data[70], 0.F);
        }
        QCOMPARE(leverageOf(randomBlock(109, 1, 65, 4), by(LeverageRoute::Gram, true, 64))[64], 0.F); // a tail of one
    }

    void rotatingEveryRowDifferentlyChangesIt() { // (f): why the keys must be those before RoPE
        naive::Block rows = randomBlock(110, 1, 50, 2, 1, 3);
        const auto before = leverageOf(rows);
        for (std::size_t i = 0; i < 50; ++i) {
            const double angle = 0.4 * double(i), x = rows.numbers[2 * i], y = rows.numbers[2 * i + 1];
            rows.numbers[2 * i] = float(x * std::cos(angle) - y * std::sin(angle));
            rows.numbers[2 * i + 1] = float(x * std::sin(angle) + y * std::cos(angle));
        }
        QVERIFY(!near(leverageOf(rows), before, 1e-2));
    }

    void aNarrowSketchAddsUpToItsColumns() { // C7
        LeverageRequest request;
        request.sketch = {Shape{1, 32, 6}, randomBlock(111, 1, 32, 6).numbers};
        QVERIFY(std::abs(sumOf(leverageOf(randomBlock(112, 1, 400, 32), request)) - 6) < 1e-4);
    }

    void reportsSpectrumAndRank() {
        LeverageRequest request;
        request.rows = m_engine->upload({Shape{1, 3, 2}, {3, 0, 0, 4, 0, 0}});
        for (const LeverageRoute route : kRoutes) {
            request.route = route;
            const Leverage leverage = m_engine->leverage(request, {});
            QVERIFY(near(leverage.spectrum.data, {4, 3}));
            QCOMPARE(leverage.rank, std::vector<std::int64_t>{2});
        }
        for (const LeverageRoute route : kRoutes) { // scores do not need it
            LeverageRequest scores = request;
            scores.route = request.route = route;
            scores.wantsSpectrum = false;
            const Leverage without = m_engine->leverage(scores, {}), with = m_engine->leverage(request, {});
            QVERIFY(without.spectrum.empty() && !with.spectrum.empty());
            QVERIFY(without.scores.data == with.scores.data);
            QCOMPARE(without.rank, with.rank);
        }
        request.chunk = 2;
        QVERIFY(m_engine->leverage(request, {}).spectrum.empty());
    }

    void allRowsHaveNoDistortionAndHalfOfThemHalf() {
        const naive::Block rows = randomBlock(113, 1, 30, 4);
        const Tensor t = uploadRows(*m_engine, rows);
        WeightedSet all, doubled, none;
        for (TokenIndex i = 0; i < 30; ++i) {
            all.numerator.push_back(i);
            doubled.numeratorWeights.push_back(2);
        }
        doubled.numerator = all.numerator;
        QVERIFY(m_engine->spectralDistortion(t, std::vector{all}, {})[0] < 1e-9);
        QVERIFY(std::abs(m_engine->spectralDistortion(t, std::vector{doubled}, {})[0] - 1) < 1e-9);
        QVERIFY(std::abs(m_engine->spectralDistortion(t, std::vector{none}, {})[0] - 1) < 1e-9);
    }

    void chunkExampleByHand() { // rows (e, 1)/(e + 1) and (1, e)/(e + 1)
        const naive::Block unit{1, 2, 2, {1, 0, 0, 1}};
        QVERIFY(near(chunkSums(unit, unit, 2), {1, 1}));
        const naive::Block same{1, 2, 2, {1, 0, 1, 0}};
        const float e = std::exp(1.F);
        QVERIFY(near(chunkSums(same, unit, 2), {2 * e / (e + 1), 2 / (e + 1)}));
    }

    void aFullChunkAddsUpToItsQueries() {
        const auto sums = chunkSums(randomBlock(114, 1, 96, 8), randomBlock(115, 1, 96, 8), 32);
        for (int chunk = 0; chunk < 3; ++chunk)
            QVERIFY(std::abs(std::accumulate(sums.begin() + 32 * chunk, sums.begin() + 32 * chunk + 32, 0.0) - 32) <
                    1e-4);
    }

    void insideAChunkOrderAndACommonVectorDoNotMatter() {
        const naive::Block q = randomBlock(116, 1, 20, 6), k = randomBlock(117, 1, 20, 6);
        const auto sums = chunkSums(q, k, 10);
        const std::vector<std::size_t> order = {3, 1, 0, 2, 9, 8, 7, 6, 5, 4, 10, 12, 11, 13, 14, 19, 18, 17, 16, 15};
        const auto shuffled = chunkSums(permuted(q, order), permuted(k, order), 10);
        naive::Block moved = k;
        for (std::size_t i = 0; i < moved.numbers.size(); ++i)
            moved.numbers[i] += i < 60 ? 0.5F : -1.F; // one vector for each chunk
        const auto shifted = chunkSums(q, moved, 10);
        for (std::size_t i = 0; i < 20; ++i) {
            QVERIFY(std::abs(shuffled[i] - sums[order[i]]) < 1e-5F);
            QVERIFY(std::abs(shifted[i] - sums[i]) < 1e-5F);
        }
    }

    // Rows of a cache with a gap: a window counts the tokens between them. Two groups that lie further apart than the
    // window are two chunks, whatever the number of rows, and zero keys are seen from both.
    void aWindowCountsTokensWhereRowsHaveGaps() {
        const naive::Block q = randomBlock(121, 2, 80, 12), k = randomBlock(122, 1, 80, 12);
        std::vector<TokenIndex> tokens(80);
        for (int row = 0; row < 80; ++row) tokens[static_cast<std::size_t>(row)] = row < 40 ? row : 1000 + row;
        const auto fast = makeCpuEngine(2, {}, Arithmetic::Fast);
        const auto sums = [&](const Engine& e, int window, std::int64_t chunk, const RowPositions& positions) {
            AttentionChunksInput in{uploadRows(e, q), uploadRows(e, k), {0.5, 0, window, {0, 0}}, chunk};
            in.positions = positions;
            return e.attentionChunkSums(in, {}).data;
        };
        for (const int window : {64, 300}) {
            QVERIFY(sums(*m_engine, window, 80, {tokens}) == sums(*m_engine, 0, 40, {}));
            QVERIFY(near(sums(*fast, window, 80, {tokens}), sums(*m_engine, 0, 40, {}), 2e-4));
        }
        std::vector<TokenIndex> gapless(80);
        std::iota(gapless.begin(), gapless.end(), 500);
        QVERIFY(sums(*m_engine, 7, 80, {gapless}) == sums(*m_engine, 7, 80, {}));
        QVERIFY(sums(*m_engine, 7, 33, {gapless}) == sums(*m_engine, 7, 33, {}));

        AttentionChunksInput padded{uploadRows(*m_engine, q), uploadRows(*m_engine, k), {0.5, 0, 64, {0, 0}}, 85, 5};
        padded.positions = {tokens};
        const auto withZeros = m_engine->attentionChunkSums(padded, {}).data;
        const auto zeroTotal = [&](std::size_t head) { // what 80 softmax rows gave to the zero keys
            return 80 - std::accumulate(withZeros.begin() + static_cast<std::ptrdiff_t>(head * 80),
                                        withZeros.begin() + static_cast<std::ptrdiff_t>(head * 80 + 80), 0.0);
        };
        for (std::size_t head = 0; head < 2; ++head) QVERIFY(zeroTotal(head) > 1);
    }

    // Several parts, a width between two steps of lanes, one sketch for all heads and one for each.
    void fastLeverageStaysCloseWhateverTheShape() {
        const naive::Block rows = randomBlock(123, 2, 2101, 24, 1, 4);
        for (const LeverageRoute route : {LeverageRoute::Gram, LeverageRoute::Cholesky})
            for (const std::int64_t width : {1, 16, 20})
                for (const bool centred : {false, true})
                    for (const std::int64_t chunk : {0, 300}) {
                        LeverageRequest request = by(route, centred, chunk);
                        const std::int64_t sketches = centred ? 2 : 1;
                        request.sketch = {Shape{sketches, 24, width}, randomBlock(124, sketches, 24, width).numbers};
                        request.regulariser = centred ? Regulariser::Ridge : Regulariser::None;
                        request.strength = 0.01;
                        compareFast(rows, request, 1e-3);
                    }
    }

    // A sketch of dependent columns, and rows whose mean hides what distinguishes them: floats would not do.
    void fastLeverageIsExactWhereFloatsAreTooCoarse() {
        const naive::Block rows = randomBlock(125, 1, 700, 24);
        LeverageRequest request = by(LeverageRoute::Cholesky);
        naive::Block sketch = randomBlock(126, 1, 24, 9);
        for (std::size_t i = 0; i < 24; ++i) sketch.numbers[9 * i + 4] = sketch.numbers[9 * i];
        request.sketch = {Shape{1, 24, 9}, sketch.numbers};
        compareFast(rows, request, 0);
        request = by(LeverageRoute::Gram, true);
        request.sketch = {Shape{1, 24, 9}, randomBlock(127, 1, 24, 9).numbers};
        compareFast(randomBlock(128, 1, 700, 24, 1, 1e5), request, 0);
        for (const LeverageRoute route :
             {LeverageRoute::Svd, LeverageRoute::Qr}) { // do not square the condition number
            request.route = route;
            compareFast(rows, request, 0);
        }
    }

    void fastModeSaysSoAndStaysClose() {
        const auto fast = makeCpuEngine(2, {}, Arithmetic::Fast);
        QVERIFY(fast->arithmetic().find("outside the index contract") != std::string::npos);
        QCOMPARE(m_engine->arithmetic(), std::string("exact index contract"));
        const naive::Block q = randomBlock(119, 4, 333, 40), k = randomBlock(120, 2, 333, 40);
        const auto sums = [&](const Engine& e, double softcap) {
            AttentionChunksInput in{uploadRows(e, q), uploadRows(e, k), {1, softcap, 0, {0, 0, 1, 1}}, 64, 5, 7};
            return e.attentionChunkSums(in, {}).data;
        };
        for (const double softcap : {0.0, 5.0}) {
            QVERIFY(near(sums(*fast, softcap), sums(*m_engine, softcap), 2e-4));
            QVERIFY(sums(*fast, softcap) != sums(*m_engine, softcap)); // else it would not be another mode
        }
    }
};

KVSCOPE_TEST(LeverageTest)
#include "leverage_test.moc"
