// The kernel written out against the engine's walks, which never store it, and the band of fair coins against what is
// known of their quadratic form.
#include "core/policies/balance/balance_kernel.h"
#include "core/policies/balance/balance_log.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;

namespace {

HostTensor headOf(const HostTensor& all, std::int64_t head) {
    const std::int64_t size = all.shape[1] * all.shape[2];
    return {{all.shape[1], all.shape[2]}, {all.data.begin() + head * size, all.data.begin() + (head + 1) * size}};
}

} // namespace

class BalanceKernelTest : public QObject {
    Q_OBJECT

private slots:
    // y = M eta over the pairs before, and M_jj adds up to what fair coins expect: for every form of the kernel.
    void kernelExplainsEveryStep_data() {
        QTest::addColumn<QString>("spec");
        QTest::newRow("block mean, two rounds") << "balancekv:notebook,sink=3,recent=2,block=20,rounds=2";
        QTest::newRow("mean of all")
            << "balancekv,sink=3,recent=2,block=20,rounds=2,shift=middle_mean,beta=0.5,temp=0.7";
        QTest::newRow("no shift, no weights")
            << "balancekv,sink=0,recent=0,block=21,rounds=1,shift=none,halving=unweighted";
        QTest::newRow("streaming, theory") << "balancekv_stream,batch=16,levels=3";
        QTest::newRow("streaming, plain") << "balancekv_stream:greedy,batch=16,levels=2";
    }
    void kernelExplainsEveryStep() {
        QFETCH(QString, spec);
        const auto log =
            std::dynamic_pointer_cast<const BalanceLog>(m_bench.runWithSteps(spec.toStdString(), m_layer).log);
        QVERIFY(log->walks.size() > 6);
        const HostTensor& centres = log->centres;
        QCOMPARE(centres.empty(), !spec.contains("middle_mean"));
        for (const BalanceWalkLog& walk : log->walks) {
            const bool keysOnly = log->stream && walk.tree == 0;
            const std::vector<float> centre =
                centres.empty() ? std::vector<float>() : headOf({{1, 2, 6}, centres.data}, 0).data;
            const std::span<const float> mine =
                std::span(centre).subspan(centre.empty() ? 0 : std::size_t(walk.kvHead) * 6, centre.empty() ? 0 : 6);
            const std::vector<double> m =
                walkKernel(walk.walk, headOf(m_layer.keys, walk.kvHead),
                           keysOnly ? HostTensor{} : headOf(m_layer.values, walk.kvHead), mine);
            const std::size_t size = walk.tokens.size();
            double fair = 0;
            for (std::size_t i = 0; i < size; ++i) {
                double y = 0, scale = 1e-300;
                for (std::size_t j = 0; j < i; ++j) {
                    y += m[i * size + j] * walk.signs[j];
                    scale += std::abs(m[i * size + j]);
                    QCOMPARE(m[i * size + j], m[j * size + i]);
                }
                fair += m[i * size + i];
                QVERIFY2(std::abs(y - walk.products[i]) <= 1e-9 * scale,
                         qPrintable(QString("%1 against %2").arg(y).arg(walk.products[i])));
                QVERIFY(std::abs(fair - walk.fairCoins[i]) <= 1e-9 * fair);
            }
        }
    }

    // M = identity: Q_j = j whatever the signs. M = all ones: Q_j = (sum of signs)^2, whose 10 % and 90 % points at
    // j = 100 lie near 100 times those of chi-square with one degree of freedom, 0.016 and 2.71.
    void bandOfKnownKernels() {
        std::vector<double> identity(100 * 100), ones(100 * 100, 1.0);
        for (std::size_t i = 0; i < 100; ++i) identity[i * 100 + i] = 1;
        const CoinBand exact = coinBand(identity, {}, 1, 50), walk = coinBand(ones, {}, 1, 400);
        for (std::size_t i = 0; i < 100; ++i) {
            QCOMPARE(exact.low[i], double(i + 1));
            QCOMPARE(exact.high[i], double(i + 1));
            QVERIFY(walk.low[i] <= walk.high[i]);
            QVERIFY(std::abs(std::remainder(std::sqrt(walk.high[i]), 2) - (i % 2 == 0 ? 1 : 0)) < 1e-9 ||
                    std::abs(std::remainder(std::sqrt(walk.high[i]), 2) + (i % 2 == 0 ? 1 : 0)) <
                        1e-9); // a sum of i + 1 signs
        }
        QVERIFY2(walk.high[99] >= 196 && walk.high[99] <= 400, qPrintable(QString::number(walk.high[99])));
        QVERIFY2(walk.low[99] <= 4, qPrintable(QString::number(walk.low[99])));
    }

    void silentRowsMoveNothingAndSeedsDiffer() {
        std::vector<double> ones(10 * 10, 1.0);
        const std::vector<char> silent = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        QCOMPARE(coinBand(ones, silent, 3, 20).high, std::vector<double>(10, 1.0));
        std::vector<double> kernel(50 * 50);
        for (std::size_t i = 0; i < kernel.size(); ++i)
            kernel[i] = 1.0 + std::sin(double(i / 50)) * std::sin(double(i % 50));
        QCOMPARE(coinBand(kernel, {}, 3, 20).high, coinBand(kernel, {}, 3, 20).high);
        QVERIFY(coinBand(kernel, {}, 3, 20).high != coinBand(kernel, {}, 4, 20).high);
    }

    void hugeExponentsStayFinite() {
        BalancingWalk walk;
        walk.rows = {0, 1};
        walk.logScale = 1e6;
        walk.valueConstant = 1;
        const HostTensor keys{{2, 1}, {1, 2}};
        for (const double entry : walkKernel(walk, keys, {}, {})) QVERIFY(std::isfinite(entry));
    }

private:
    static TestLayer makeLayer() {
        TestLayer layer = TestLayer::random(31, {2, 2, 97, 6});
        layer.values = TestLayer::random(32, {2, 2, 97, 6}).keys;
        return layer;
    }

    PolicyBench m_bench;
    TestLayer m_layer = makeLayer();
};

KVSCOPE_TEST(BalanceKernelTest)
#include "balance_kernel_test.moc"
