// The fit that says whether cost grows linearly: powers that are known, and works that run on any length.
#include "core/base/error.h"
#include "tests/bench/engine_check/linear_fits.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <array>
#include <cmath>

using namespace kvscope;
using namespace kvscope::check;

class LinearFitsTest : public QObject {
    Q_OBJECT

private:
    std::unique_ptr<Engine> m_engine = makeCpuEngine(2);
    static constexpr std::array<std::int64_t, 5> kTokens = {4096, 8192, 16384, 65536, 262144};

private slots:
    void knownPowersAreFound() {
        for (const double power : {0.0, 0.5, 1.0, 1.07, 2.0}) {
            std::vector<double> costs;
            for (const std::int64_t n : kTokens) costs.push_back(3e-7 * std::pow(static_cast<double>(n), power));
            const PowerFit fit = fitPower(kTokens, costs);
            QVERIFY(std::abs(fit.exponent - power) < 1e-9);
            QVERIFY(fit.largestResidual < 1e-9);
        }
    }

    // Two lengths have a line of their own; one point 21 % above the others' line is off by most of that.
    void whatLiesOffTheLineIsSaid() {
        const std::array<std::int64_t, 2> two = {1000, 4000};
        const std::array<double, 2> costs = {1, 8};
        QVERIFY(std::abs(fitPower(two, costs).exponent - 1.5) < 1e-12);
        std::vector<double> bent;
        for (const std::int64_t n : kTokens) bent.push_back(static_cast<double>(n));
        bent[2] *= 1.21;
        const PowerFit fit = fitPower(kTokens, bent);
        QVERIFY(fit.largestResidual > 0.15 && fit.largestResidual < 0.21);
        QVERIFY(std::abs(fit.exponent - 1) < 0.02);
    }

    // A pass over all pairs hidden in a linear work would show as 2.
    void aQuadraticCostIsSeen() {
        std::vector<double> costs;
        for (const std::int64_t n : kTokens)
            costs.push_back(1e-6 * static_cast<double>(n) + 1e-9 * static_cast<double>(n) * static_cast<double>(n));
        QVERIFY(fitPower(kTokens, costs).exponent > 1.5);
    }

    void everyWorkRunsAtAnyLength() {
        QCOMPARE(linearWorks().size(), std::size_t{5});
        for (const LinearWork& work : linearWorks())
            for (const std::int64_t tokens : {256, 1000}) work.prepare(*m_engine, tokens)();
    }

    void tooSteepWorksAreCountedAndUnknownOnesRefused() {
        const std::array<std::int64_t, 2> sizes = {256, 512};
        QCOMPARE(fitLinearWorks(*m_engine, sizes, "keydiff/*", 1e9), 0);
        QCOMPARE(fitLinearWorks(*m_engine, sizes, "keydiff/*", -1e9), 1);
        QVERIFY_THROWS_EXCEPTION(Error, fitLinearWorks(*m_engine, sizes, "no such work", 1));
    }
};

KVSCOPE_TEST(LinearFitsTest)
#include "linear_fits_test.moc"
