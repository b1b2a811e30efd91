// Sums of 16-bit products in pairs of floats against sums in 128-bit floats: random, cancelling and extreme inputs stay
// within the bound that product_sums.h derives, and what it leaves out (plain floats, no settling, elements outside of
// the range) does not. Also which sums a device is given.
#include "core/base/error.h"
#include "gpu/kernels/exact_sums.h"
#include "gpu/kernels/product_sums.h"
#include "tests/support/kernel_rows.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

using namespace kvscope;
using namespace kvscope::gpu;

namespace {

struct Vectors {
    std::vector<float> x, y; ///< every number has 16 bits
};

/// The sum as the kernels make it: settled behind every 32 products and at the end.
template <class Sum> double sumOf(const Vectors& v, std::size_t settled = kSettledProducts) {
    Sum sum{};
    for (std::size_t c = 0; c < v.x.size(); ++c) {
        addProduct(sum, v.x[c], v.y[c]);
        if (c % settled == settled - 1)
            settle(sum);
    }
    settle(sum);
    return double(valueOf(sum));
}

/// |sum - the products' sum| / sum of their magnitudes, by numbers with 113 bits; 0 for 0 / 0.
double errorShare(const Vectors& v, double sum) {
    __float128 exact = 0, size = 0;
    for (std::size_t c = 0; c < v.x.size(); ++c) {
        const __float128 product = static_cast<__float128>(v.x[c]) * v.y[c];
        exact += product;
        size += product < 0 ? -product : product;
    }
    const __float128 error = exact < sum ? sum - exact : exact - sum;
    return error == 0 ? 0 : static_cast<double>(error / size);
}

float asBFloat16(double x) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) & 0xffff0000U);
}
float asHalf(double x) { return static_cast<float>(static_cast<_Float16>(static_cast<float>(x))); }

using Rounding = float (*)(double);
using Draw = std::function<double(std::mt19937_64&)>;

Vectors drawn(std::mt19937_64& random, std::size_t count, Rounding rounded, const Draw& draw) {
    Vectors v;
    for (std::size_t c = 0; c < count; ++c) {
        v.x.push_back(rounded(draw(random)));
        v.y.push_back(rounded(draw(random)));
    }
    return v;
}

/// Sign and digits at random, the exponent even over [low, high).
Draw overExponents(double low, double high) {
    return [=](std::mt19937_64& random) {
        const double power = std::uniform_real_distribution<double>(low, high)(random);
        return random() % 7 == 0 ? 0.0 : (random() % 2 ? 1 : -1) * std::exp2(power);
    };
}

double normal(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }

/// Behind half of the products their negatives, a little changed, in another order: what is left is small.
Vectors cancelling(std::mt19937_64& random, std::size_t count, Rounding rounded, const Draw& draw) {
    Vectors v = drawn(random, count / 2, rounded, draw);
    for (std::size_t c = 0; c < count / 2; ++c) {
        v.x.push_back(-v.x[c]);
        v.y.push_back(random() % 5 == 0 ? rounded(double(v.y[c]) * 0.99) : v.y[c]);
    }
    std::vector<std::size_t> order(v.x.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    Vectors mixed;
    for (const std::size_t c : order) {
        mixed.x.push_back(v.x[c]);
        mixed.y.push_back(v.y[c]);
    }
    return mixed;
}

/// One large product, then small ones whose digits are all cut off it, always to the same side.
Vectors oneLarge(std::size_t count) {
    Vectors v{std::vector<float>(count, asBFloat16(0.7)), std::vector<float>(count, asBFloat16(0.7))};
    v.x[0] = v.y[0] = 0x1p13F;
    return v;
}

class ProductSumsTest : public QObject {
    Q_OBJECT

private slots:
    void twoSumLosesNothing() {
        std::mt19937_64 random(seed());
        const Draw draw = overExponents(-60, 60);
        for (int i = 0; i < 20000; ++i) {
            const auto a = static_cast<float>(draw(random)), b = static_cast<float>(draw(random));
            const FloatPair sum = twoSum(a, b);
            QCOMPARE(sum.high, a + b);
            QVERIFY(static_cast<__float128>(sum.high) + sum.low == static_cast<__float128>(a) + b);
        }
    }

    void staysWithinTheBound_data() {
        QTest::addColumn<int>("kind");
        QTest::addColumn<bool>("half");
        for (const bool half : {false, true}) {
            const char* type = half ? "half" : "bfloat16";
            QTest::addRow("%s, normal", type) << 0 << half;
            QTest::addRow("%s, cancelling", type) << 1 << half;
            QTest::addRow("%s, the whole range", type) << 2 << half;
            QTest::addRow("%s, the whole range, cancelling", type) << 3 << half;
            QTest::addRow("%s, smallest", type) << 4 << half;
            QTest::addRow("%s, largest", type) << 5 << half;
            QTest::addRow("%s, a few powers of two", type) << 6 << half;
        }
    }

    void staysWithinTheBound() {
        QFETCH(int, kind);
        QFETCH(bool, half);
        const Rounding rounded = half ? asHalf : asBFloat16;
        const double low = half ? -24 : -50, high = half ? 15.99 : 50;
        const Draw draws[] = {normal,
                              normal,
                              overExponents(low, high),
                              overExponents(low, high),
                              overExponents(low, low + 4),
                              overExponents(high - 4, high),
                              overExponents(-12, 3)};
        std::mt19937_64 random(seed());
        for (const std::size_t count : {1U, 2U, 31U, 33U, 64U, 128U, 257U, 4096U})
            for (int i = 0; i < 200; ++i) {
                const Vectors v = kind == 1 || kind == 3 ? cancelling(random, count, rounded, draws[kind])
                                                         : drawn(random, count, rounded, draws[kind]);
                for (const float x : v.x)
                    QVERIFY2(fitsFloatPair(x), qPrintable(QString::number(double(x))));
                const double share = errorShare(v, sumOf<FloatPair>(v));
                QVERIFY2(share <= pairErrorShare(std::int64_t(v.x.size())),
                         qPrintable(QString("%1 products: %2").arg(count).arg(share)));
            }
    }

    /// The bound is not so wide that these pass.
    void floatsAndUnsettledPairsDoNot() {
        std::mt19937_64 random(seed());
        int beyond = 0;
        for (int i = 0; i < 100; ++i) {
            const Vectors v = drawn(random, 1024, asBFloat16, normal);
            beyond += errorShare(v, sumOf<float>(v)) > pairErrorShare(1024);
        }
        QVERIFY2(beyond > 95, qPrintable(QString::number(beyond)));
        constexpr std::size_t kMany = 1 << 18;
        const Vectors v = oneLarge(kMany);
        QVERIFY(errorShare(v, sumOf<FloatPair>(v)) <= pairErrorShare(kMany));
        QVERIFY(errorShare(v, sumOf<FloatPair>(v, kMany)) > pairErrorShare(kMany));
    }

    /// Where the digits of all products lie within 42 bits nothing errs, in double or in pairs: the same bits.
    void ordinaryRowsAreExact() {
        std::mt19937_64 random(seed());
        for (int i = 0; i < 2000; ++i) { // products are multiples of 2^-28 and below 2^7, sums of 128 below 2^14
            const Vectors v = drawn(random, 128, asBFloat16, overExponents(-7, 3.5));
            QCOMPARE(errorShare(v, sumOf<FloatPair>(v)), 0.0);
            QCOMPARE(sumOf<FloatPair>(v), sumOf<double>(v));
        }
    }

    /// Every half that is finite fits; of bfloat16s what lies outside of the range does not, and would go wrong.
    void whichElementsFit() {
        for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
            const float half = widened(Float16{static_cast<std::uint16_t>(bits)});
            QCOMPARE(fitsFloatPair(half), std::isfinite(half));
            const float wide = widened(BFloat16{static_cast<std::uint16_t>(bits)});
            const double size = std::abs(double{wide});
            QCOMPARE(fitsFloatPair(wide), size == 0 || (size >= 0x1p-50 && size <= 0x1p50));
        }
        const float infinity = std::numeric_limits<float>::infinity();
        const Vectors tiny{{0x1.02p-70F, 0x1.04p-70F}, {0x1.06p-70F, 0x1.08p-70F}}, large{{0x1p70F}, {0x1p70F}};
        QVERIFY(errorShare(tiny, sumOf<FloatPair>(tiny)) > pairErrorShare(2));
        QVERIFY(!std::isfinite(sumOf<FloatPair>(large)));
        QVERIFY(std::isnan(sumOf<FloatPair>({{infinity}, {1}})) && std::isinf(sumOf<double>({{infinity}, {1}})));
    }

    /// By the device's ratio of float to double throughput, or as it is told.
    void whichSumsADeviceIsGiven() {
        QVERIFY(exactSumsFor(1, nullptr) == ExactSums::Double);
        QVERIFY(exactSumsFor(2, "") == ExactSums::Double);
        QVERIFY(exactSumsFor(kPairsFromRatio - 1, nullptr) == ExactSums::Double);
        QVERIFY(exactSumsFor(kPairsFromRatio, nullptr) == ExactSums::FloatPairs);
        QVERIFY(exactSumsFor(64, nullptr) == ExactSums::FloatPairs);
        QVERIFY(exactSumsFor(64, "double") == ExactSums::Double);
        QVERIFY(exactSumsFor(2, "pairs") == ExactSums::FloatPairs);
        QVERIFY_THROWS_EXCEPTION(Error, exactSumsFor(2, "float"));
    }

private:
    /// Another one for every test, said so that a failure can be repeated.
    static unsigned seed() {
        static unsigned next = 20240;
        qInfo("seed %u", ++next);
        return next;
    }
};

} // namespace

KVSCOPE_TEST(ProductSumsTest)
#include "product_sums_test.moc"
