// The arithmetic below the reader: widening of all 65,536 sixteen-bit numbers, and rotation against its definition.
#include "core/base/random.h"
#include "core/capture/rope.h"
#include "core/capture/widen.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

using namespace kvscope;

namespace {

// From the definition of IEEE 754 formats: sign, exponent, mantissa.
double valueOf(std::uint16_t bits, int exponentBits) {
    const int mantissaBits = 15 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
    const int exponent = (bits & 0x7FFF) >> mantissaBits, mantissa = bits & ((1 << mantissaBits) - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponentBits) - 1)
        return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissaBits);
    return sign * std::ldexp((1 << mantissaBits) + mantissa, exponent - bias - mantissaBits);
}

HostTensor noise(int heads, int rows, int width) {
    HostTensor tensor{Shape{heads, rows, width}, {}};
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(heads * rows * width); ++i)
        tensor.data.push_back(static_cast<float>(gaussianAt({.seed = 3, .token = i})));
    return tensor;
}

} // namespace

class NumbersTest : public QObject {
    Q_OBJECT

private slots:
    void everyNumberWidensAndComesBack() {
        std::vector<std::uint16_t> bits(65536);
        for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
        std::vector<float> brain(65536), half(65536);
        widenBfloat16(bits, brain.data());
        widenFloat16(bits, half.data());
        for (const std::uint16_t b : bits) {
            const double wanted[] = {valueOf(b, 8), valueOf(b, 5)};
            const float found[] = {brain[b], half[b]};
            for (int i = 0; i < 2; ++i) {
                QCOMPARE(std::isnan(found[i]), std::isnan(wanted[i]));
                QVERIFY(std::isnan(wanted[i]) ||
                        (double(found[i]) == wanted[i] && std::signbit(found[i]) == bool(b & 0x8000)));
            }
            if (!std::isnan(wanted[0])) QCOMPARE(narrowToBfloat16(brain[b]), b);
            if (!std::isnan(wanted[1])) QCOMPARE(narrowToFloat16(half[b]), b);
        }
    }

    void tiesRoundToEven() {
        QCOMPARE(narrowToBfloat16(std::bit_cast<float>(0x3F808000u)), std::uint16_t(0x3F80));
        QCOMPARE(narrowToBfloat16(std::bit_cast<float>(0x3F818000u)), std::uint16_t(0x3F82));
        QCOMPARE(narrowToFloat16(1 + 0x1p-11f), std::uint16_t(0x3C00));
        QCOMPARE(narrowToFloat16(1 + 0x3p-11f), std::uint16_t(0x3C02));
        QCOMPARE(narrowToFloat16(0x1p-25f), std::uint16_t(0));
        QCOMPARE(narrowToFloat16(0x3p-25f), std::uint16_t(2));
    }

    void rotationFollowsItsDefinition_data() {
        QTest::addColumn<bool>("interleaved");
        QTest::addColumn<int>("rotaryDim");
        QTest::addColumn<int>("begin");
        QTest::newRow("half") << false << 16 << 0;
        QTest::newRow("interleaved") << true << 16 << 0;
        QTest::newRow("half, part of the head") << false << 8 << 0;
        QTest::newRow("interleaved, part of the head") << true << 8 << 0;
        QTest::newRow("half, end of the head") << false << 6 << 10;
        QTest::newRow("interleaved, middle of the head") << true << 6 << 5;
    }

    void rotationFollowsItsDefinition() {
        QFETCH(bool, interleaved);
        QFETCH(int, rotaryDim);
        QFETCH(int, begin);
        const RopeInfo rope{.type = "yarn",
                            .theta = 10000,
                            .attentionScaling = 1.3,
                            .rotaryDim = rotaryDim,
                            .interleaved = interleaved,
                            .rotaryBegin = begin};
        const std::vector<std::int64_t> positions = {0, 1, 17, 100'003};
        std::vector<float> frequencies;
        for (int i = 0; i < rotaryDim / 2; ++i)
            frequencies.push_back(std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(rotaryDim)));
        const HostTensor before = noise(2, 4, 16);
        HostTensor turned = before;
        rotateForward(turned, positions, frequencies, rope);
        for (int h = 0; h < 2; ++h)
            for (int r = 0; r < 4; ++r)
                for (int component = 0; component < 16; ++component) {
                    const int i = component - begin; // among those that rotate
                    const float* row = before.data.data() + (h * 4 + r) * 16;
                    const float found = turned.data[static_cast<std::size_t>((h * 4 + r) * 16 + component)];
                    if (i < 0 || i >= rotaryDim) {
                        QVERIFY(std::fabs(found - row[component]) < 1e-6);
                        continue;
                    }
                    const int pairs = rotaryDim / 2, pair = interleaved ? i / 2 : i % pairs;
                    const bool first = interleaved ? i % 2 == 0 : i < pairs;
                    const int partner = interleaved ? i ^ 1 : first ? i + pairs : i - pairs;
                    const double angle = double(float(positions[r]) * frequencies[pair]);
                    const double wanted = 1.3 * (row[component] * std::cos(angle) +
                                                 (first ? -1 : 1) * row[begin + partner] * std::sin(angle));
                    QVERIFY(std::fabs(found - wanted) < 1e-5);
                }
        rotateBack(turned, positions, frequencies, rope);
        for (std::size_t i = 0; i < before.data.size(); ++i) QVERIFY(std::fabs(turned.data[i] - before.data[i]) < 1e-5);
    }
};

KVSCOPE_TEST(NumbersTest)
#include "numbers_test.moc"
