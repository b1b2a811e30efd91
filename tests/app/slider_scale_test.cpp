// A slider's line: ends are exact, steps are hit, positions and values go back and forth.
#include "app/window/widgets/value_slider.h"
#include "tests/support/test_program.h"

#include <QTest>

#include <cmath>

using namespace kvscope;

class SliderScaleTest : public QObject {
    Q_OBJECT

private slots:
    void endsAreExact_data() {
        QTest::addColumn<double>("low");
        QTest::addColumn<double>("high");
        QTest::addColumn<double>("step");
        QTest::addColumn<bool>("logarithmic");
        QTest::newRow("share") << 0.0 << 1.0 << 0.0 << false;
        QTest::newRow("whole numbers") << 1.0 << 64.0 << 1.0 << false;
        QTest::newRow("log from zero") << 0.0 << 131072.0 << 1.0 << true;
        QTest::newRow("log share") << 0.01 << 1.0 << 0.001 << true;
        QTest::newRow("negative") << -3.0 << 5.0 << 0.5 << false;
    }
    void endsAreExact() {
        QFETCH(double, low);
        QFETCH(double, high);
        QFETCH(double, step);
        QFETCH(bool, logarithmic);
        const SliderScale scale{low, high, step, logarithmic};
        QCOMPARE(scale.valueAt(0), low);
        QCOMPARE(scale.valueAt(scale.positions()), high);
        QCOMPARE(scale.positionOf(low - 1), 0);
        QCOMPARE(scale.positionOf(high + 1), scale.positions());
        double previous = low - 1;
        for (int position = 0; position <= scale.positions(); ++position) {
            const double value = scale.valueAt(position);
            QVERIFY(value >= low && value <= high && value >= previous);
            if (step > 0)
                QVERIFY(std::abs(std::remainder(value - low, step)) < 1e-9 || value == high);
            else
                QCOMPARE(scale.positionOf(value), position);
            previous = value;
        }
    }

    void fewStepsGetAPositionEach() {
        const SliderScale scale{0, 6, 1, false};
        QCOMPARE(scale.positions(), 6);
        for (int i = 0; i <= 6; ++i) QCOMPARE(scale.valueAt(i), static_cast<double>(i));
    }

    void logarithmicIsEvenInRatios() {
        const SliderScale scale{0.01, 1, 0, true};
        QVERIFY(std::abs(scale.valueAt(scale.positions() / 2) - 0.1) < 1e-3);
    }

    void theSliderEndsAtTheTokens() {
        ParameterSpec spec;
        spec.kind = ParameterKind::Integer;
        spec.max = 1e6;
        spec.maxIsTokens = true;
        QCOMPARE(SliderScale::of(spec, 1028).max, 1028.0);
        QCOMPARE(SliderScale::of(spec, 0).max, 1e6);
    }

    void anEmptyRangeIsNoCrash() {
        const SliderScale scale{3, 3, 0, false};
        QCOMPARE(scale.positionOf(3), 0);
        QCOMPARE(scale.valueAt(scale.positions()), 3.0);
    }
};

KVSCOPE_TEST(SliderScaleTest)
#include "slider_scale_test.moc"
