// Leverage on LibTorch solves heads and chunks in batches: whatever shares a batch with a head, and wherever the
// batches are cut, its scores, ranks and spectrum are those of the CPU engine and of the head alone.
#include "gpu/engine_factory.h"
#include "tests/bench/engine_check/engine_case.h"
#include "tests/parity/torch_offer.h"
#include "tests/support/larger_error.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace kvscope;
using namespace kvscope::check;

namespace {

/// Two columns that say the same.
void weaken(naive::Block& rows, std::int64_t head) {
    for (std::int64_t r = 0; r < rows.rows; ++r) {
        float* row = rows.numbers.data() + (head * rows.rows + r) * rows.width;
        row[1] = 2 * row[0];
    }
}

naive::Block headOf(const naive::Block& rows, std::int64_t head) {
    const auto size = static_cast<std::ptrdiff_t>(rows.rows * rows.width);
    const auto from = rows.numbers.begin() + head * size;
    return {1, rows.rows, rows.width, {from, from + size}};
}

double worst(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return 1;
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = testing::larger(most, std::abs(double{a[i]} - double{b[i]}));
    return most;
}

} // namespace

class LeverageBatchesTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        if (const QString why = testing::whyNoTorch(); !why.isEmpty()) QSKIP(qPrintable(why));
        m_torch = makeEngine({"torch"});
    }

    void aFailingHeadFallsBackAlone_data() { routes(); }
    void aFailingHeadFallsBackAlone() {
        QFETCH(int, route);
        naive::Block sound = randomBlock(7, 3, 400, 16, 1, 0.5);
        // A short column, which a triangle does not mind and eigenvectors do: another route would show in the scores.
        const float size = route == int(LeverageRoute::Cholesky) ? 1e-5F : 1e-9F;
        for (std::size_t i = 5; i < sound.numbers.size() && route % 2 == 1; i += 16) sound.numbers[i] *= size;
        naive::Block rows = sound;
        weaken(rows, 1);
        const Leverage together = of(*m_torch, rows);
        QCOMPARE(together.rank, (std::vector<std::int64_t>{16, 15, 16}));
        const std::vector<float> scores = together.scores.data;
        const std::vector<float> without = of(*m_torch, sound).scores.data;
        // To the last bit: the sound heads do not change their route.
        QVERIFY(std::equal(scores.begin(), scores.begin() + 400, without.begin()));
        QVERIFY(std::equal(scores.end() - 400, scores.end(), without.end() - 400));
        const std::vector<float> alone = of(*m_torch, headOf(rows, 1)).scores.data;
        QVERIFY(worst({scores.begin() + 400, scores.end() - 400}, alone) < 1e-5);
    }

    /// More rows than a batch of memory holds: heads come one by one, or chunks of all heads some at a time.
    void cutsDoNotShow_data() { routes(); }
    void cutsDoNotShow() {
        naive::Block rows = randomBlock(8, 3, 12000, 32, 1, 0.3);
        weaken(rows, 2);
        for (const std::int64_t chunk : {0, 700}) {
            const Leverage torch = of(*m_torch, rows, chunk), cpu = of(*m_cpu, rows, chunk);
            QVERIFY(worst(torch.scores.data, cpu.scores.data) < 1e-6);
            QCOMPARE(torch.rank, cpu.rank);
            QVERIFY(torch.spectrum.shape == cpu.spectrum.shape);
            QVERIFY(worst(torch.spectrum.data, cpu.spectrum.data) < 1e-4);
        }
    }

    void aSpectrumIsMadeForThoseWhoAsk_data() { routes(); }
    void aSpectrumIsMadeForThoseWhoAsk() {
        QFETCH(int, route);
        LeverageRequest request;
        request.rows = uploadRows(*m_torch, randomBlock(9, 3, 100, 12, 1, 0.5));
        request.route = static_cast<LeverageRoute>(route);
        const Leverage with = m_torch->leverage(request, {});
        request.wantsSpectrum = false;
        const Leverage without = m_torch->leverage(request, {});
        QVERIFY(without.spectrum.empty() && !with.spectrum.empty());
        QVERIFY(without.scores.data == with.scores.data);
        QCOMPARE(without.rank, with.rank);
    }

private:
    static void routes() {
        QTest::addColumn<int>("route");
        QTest::newRow("svd") << int(LeverageRoute::Svd);
        QTest::newRow("qr") << int(LeverageRoute::Qr);
        QTest::newRow("gram") << int(LeverageRoute::Gram);
        QTest::newRow("cholesky") << int(LeverageRoute::Cholesky);
    }

    static Leverage of(const Engine& engine, const naive::Block& rows, std::int64_t chunk = 0) {
        QFETCH(int, route);
        LeverageRequest request;
        request.rows = uploadRows(engine, rows);
        request.route = static_cast<LeverageRoute>(route);
        request.chunk = chunk;
        return engine.leverage(request, {});
    }

    std::unique_ptr<Engine> m_torch, m_cpu = makeCpuEngine();
};

KVSCOPE_TEST(LeverageBatchesTest)
#include "leverage_batches_test.moc"
