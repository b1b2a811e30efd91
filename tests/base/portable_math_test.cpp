// The portable exponential against the library's, in units in the last place, and its borders.
#include "core/base/portable_log.h"
#include "core/base/portable_math.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <bit>
#include <cmath>
#include <limits>

using namespace kvscope;

namespace {

double ulpsBetween(double a, double b) {
    return std::abs(double(std::bit_cast<std::int64_t>(a) - std::bit_cast<std::int64_t>(b)));
}

} // namespace

class PortableMathTest : public QObject {
    Q_OBJECT

private slots:
    void expIsWithinTwoUlps() {
        double worst = 0, at = 0;
        int overOne = 0;
        for (std::int64_t i = 0; i < 2'000'000; ++i) {
            const double x = -708 + 1417 * std::fmod(double(i) * 0.6180339887498949, 1.0);
            const double ulps = ulpsBetween(portableExp(x), std::exp(x));
            overOne += ulps > 1;
            at = ulps > worst ? x : at;
            worst = std::max(worst, ulps);
        }
        qInfo("largest difference from std::exp: %g ulp at %.17g", worst, at);
        QVERIFY(worst <= 2);
        QVERIFY2(overOne < 2000, "one in a thousand may miss by more than 1 ulp");
    }

    void logIsWithinThreeUlps() {
        double worst = 0, at = 0;
        for (std::int64_t i = 0; i < 1'000'000; ++i) {
            const double share = std::fmod(double(i) * 0.6180339887498949, 1.0);
            // everywhere, and near 1, where the exponent's part cancels
            const double x = i % 2 == 0 ? std::exp(-740 + 1449 * share) : 0.5 + 1.5 * share;
            const double ulps = ulpsBetween(portableLog(x), std::log(x));
            at = ulps > worst ? x : at;
            worst = std::max(worst, ulps);
        }
        qInfo("largest difference from std::log: %g ulp at %.17g", worst, at);
        QVERIFY(worst <= 3);
        QCOMPARE(portableLog(1), 0.0);
        QVERIFY(portableLog(0) == -std::numeric_limits<double>::infinity());
        QVERIFY(std::isnan(portableLog(-1)) && std::isnan(portableLog(std::nan(""))));
        QVERIFY(std::isinf(portableLog(std::numeric_limits<double>::infinity())));
    }

    void smallArgumentsAreExactEnough() {
        for (double x = 1e-300; x < 1; x *= 1.7) {
            QVERIFY(ulpsBetween(portableExp(x), std::exp(x)) <= 2);
            QVERIFY(ulpsBetween(portableExp(-x), std::exp(-x)) <= 2);
        }
        QCOMPARE(portableExp(0.0), 1.0);
    }

    void borders() {
        const double inf = std::numeric_limits<double>::infinity();
        QCOMPARE(portableExp(-inf), 0.0);
        QCOMPARE(portableExp(-1e300), 0.0);
        QCOMPARE(portableExp(-708.5), 0.0);
        QVERIFY(portableExp(-708.0) > 0);
        QVERIFY(std::isfinite(portableExp(709.7)));
        QCOMPARE(portableExp(709.8), inf);
        QCOMPARE(portableExp(1e300), inf);
        QCOMPARE(portableExp(inf), inf);
        QVERIFY(std::isnan(portableExp(std::nan(""))));
    }

    void tanhIsRightInAbsoluteTerms() {
        for (double x = -400; x < 400; x += 0.0371) QVERIFY(std::abs(portableTanh(x) - std::tanh(x)) <= 5e-16);
        QCOMPARE(portableTanh(std::numeric_limits<double>::infinity()), 1.0);
    }
};

KVSCOPE_TEST(PortableMathTest)
#include "portable_math_test.moc"
