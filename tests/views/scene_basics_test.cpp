// Ticks, number texts, picking and the text painter.
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "views/scene/axes.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;

class SceneBasicsTest : public QObject {
    Q_OBJECT

private slots:
    void numbersAreWrittenAsTheDesignSays() {
        QCOMPARE(formatCount(1024), std::string("1,024"));
        QCOMPARE(formatCount(131072), std::string("131,072"));
        QCOMPARE(formatCount(-1234567), std::string("−1,234,567"));
        QCOMPARE(formatCount(999), std::string("999"));
        QCOMPARE(formatFixed(-0.545, 3), std::string("−0.545"));
        QCOMPARE(formatFixed(-0.0001, 2), std::string("0.00"));
        QCOMPARE(formatFixed(NAN, 2), std::string("n/a"));
        QCOMPARE(formatShort(3.14e-6), std::string("3.1e−6"));
        QCOMPARE(formatShort(9.97e-5), std::string("1e−4"));
        QCOMPARE(formatShort(-9.96e7), std::string("−1e8"));
        QCOMPARE(formatShort(9.94e7), std::string("9.9e7"));
        QCOMPARE(formatShort(0), std::string("0"));
        QCOMPARE(formatShort(0.25), std::string("0.25"));
        QCOMPARE(formatShort(-5), std::string("−5"));
        QCOMPARE(formatShort(2.5e7), std::string("2.5e7"));
        QCOMPARE(formatShort(23629.4), std::string("23,629"));
        QCOMPARE(formatShort(-1000), std::string("−1,000"));
    }

    // 99,955 of 99,974 tokens are not all of them, and 40 not none.
    void sharesNearTheirEndsAreNotTheEnds() {
        QCOMPARE(formatPercent(99955.0 / 99974), std::string("99.98 %"));
        QCOMPARE(formatPercent(40.0 / 99974), std::string("0.04 %"));
        QCOMPARE(formatPercent(-0.0004), std::string("−0.04 %"));
        QCOMPARE(formatPercent(0.25), std::string("25.0 %"));
        QCOMPARE(formatPercent(0), std::string("0.0 %"));
        QCOMPARE(formatPercent(1), std::string("100.0 %"));
        QCOMPARE(formatPercent(1 - 1e-9), std::string("100.0 %")); // a sum that rounding left short
        QCOMPARE(formatPercent(1e-12), std::string("0.0 %"));
        QCOMPARE(formatPercent(NAN), std::string("n/a %"));
        QCOMPARE(formatWithin(99936.0 / 99974, 1, 2), std::string("0.9996"));
        QCOMPARE(formatWithin(0.5, 1, 2), std::string("0.50"));
        QCOMPARE(formatBudget(99955, 99974), std::string("99,955 tokens (99.98 %)"));
    }

    void linearTicksAreRoundInsideAndEnough() {
        const quint32 seed = 20240611;
        QRandomGenerator random(seed);
        for (int trial = 0; trial < 500; ++trial) {
            const double low = random.generateDouble() * 200 - 100,
                         high = low + std::pow(10.0, random.generateDouble() * 8 - 4);
            const auto ticks = linearTicks(low, high, 7);
            QVERIFY2(ticks.size() >= 2 && ticks.size() <= 8,
                     qPrintable(QString("seed %1: %2 ticks in %3..%4").arg(seed).arg(ticks.size()).arg(low).arg(high)));
            const double step = ticks[1].value - ticks[0].value;
            const double mantissa = step / std::pow(10.0, std::floor(std::log10(step) + 1e-9));
            QVERIFY2(std::fabs(mantissa - 1) < 1e-6 || std::fabs(mantissa - 2) < 1e-6 || std::fabs(mantissa - 5) < 1e-6,
                     qPrintable(QString("step %1").arg(step)));
            for (const Tick& tick : ticks) QVERIFY(tick.value >= low - step * 1e-6 && tick.value <= high + step * 1e-6);
        }
        for (const double span : {1.21, 1.3, 1.39}) // room for 0.2, which is more than a seventh
            QCOMPARE(linearTicks(0, span, 7).size(), std::size_t(7));
        QCOMPARE(linearTicks(-12, 8.2, 4).size(), std::size_t(4)); // −10, −5, 0, 5
        QVERIFY(linearTicks(1, 1).empty());
        for (const double reach : {0.3, 0.97, 1.4, 4.9, 6.0}) // around 0, on an axis with room for two
            for (int most = 1; most <= 3; ++most)
                QVERIFY2(linearTicks(-reach, reach, most).size() >= 3,
                         qPrintable(QString("to %1, %2").arg(reach).arg(most)));
        QVERIFY(linearTicks(NAN, 1).empty());
    }

    // A step of a few units in the last place: k + 1 times the step is no other number.
    void rangesOfAFewUnitsInTheLastPlaceHaveNoTicks() {
        for (const double low : {1e7, 8.0, 0.3, -0.3, 1e300, 1e-300}) {
            QVERIFY(linearTicks(low, std::nextafter(low, INFINITY)).empty());
            QVERIFY(logarithmicTicks(std::abs(low), std::nextafter(std::abs(low), INFINITY)).empty());
        }
        QVERIFY(linearTicks(8, 8.0000000000000018).empty());
        QVERIFY(linearTicks(0, 5e-324).empty() && linearTicks(-1.7e308, 1.7e308).empty());
        const auto narrow = linearTicks(1e7, 1e7 + 1e-2, 4); // far more units: enough for ticks
        QVERIFY(narrow.size() >= 2 && narrow.size() <= 4 && narrow[0].value < narrow[1].value);
    }

    void ticksOfVeryLargeAndVerySmallNumbersAreShort() {
        const auto labels = [](double low, double high) {
            std::string all;
            for (const Tick& tick : linearTicks(low, high, 4)) all += tick.label + " ";
            return all;
        };
        QCOMPARE(labels(0, 3e20), std::string("0 1e20 2e20 3e20 "));
        QCOMPARE(labels(-1e-9, 1e-9), std::string("−1e−9 0 1e−9 "));
        QCOMPARE(labels(9.8e9, 1e10), std::string("0.98e10 0.99e10 1.00e10 "));
        QCOMPARE(labels(0, 4e8), std::string("0 200,000,000 400,000,000 "));
        QCOMPARE(labels(0, 3e-5), std::string("0.00000 0.00001 0.00002 0.00003 "));
    }

    void logarithmicAndPositionTicks() {
        const auto decades = logarithmicTicks(1e-4, 1, 7);
        QCOMPARE(decades.front().value, 1e-4);
        QCOMPARE(decades.back().value, 1.0);
        QVERIFY(decades.size() <= 7);
        QVERIFY(logarithmicTicks(0, 1).empty());
        const auto wide = logarithmicTicks(1e-7, 1e6, 5); // more decades than room: every third
        QCOMPARE(wide.size(), std::size_t(5));
        QVERIFY(wide[0].value == 1e-6 && wide[2].label == "1" && wide[4].value == 1e6);
        for (const auto& [low, high] : {std::pair(0.71, 0.93), {1.02, 1.9}, {21.0, 48.0}}) { // between 1, 2 and 5
            const auto narrow = logarithmicTicks(low, high, 7);
            QVERIFY2(narrow.size() >= 2 && narrow.size() <= 8,
                     qPrintable(QString("%1 ticks from %2").arg(narrow.size()).arg(low)));
            QVERIFY(narrow.front().value >= low && narrow.back().value <= high);
        }
        const auto positions = positionTicks(0, 4096);
        QCOMPARE(positions.size(), std::size_t(9));
        QCOMPARE(positions[1].label, std::string("512"));
        QCOMPARE(positions.back().label, std::string("4,096"));
    }

    void frameMapsThereAndBack() {
        PlotFrame frame;
        frame.plot = {40, 10, 200, 100};
        frame.x = {-3, 7, AxisScale::Linear, ""};
        frame.y = {0.01, 10, AxisScale::Logarithmic, ""};
        const Point p = frame.toPixels(2, 0.1);
        QCOMPARE(p.x, 140.0);
        QVERIFY(std::fabs(p.y - (10 + 100 * 2.0 / 3)) < 1e-9);
        QVERIFY(std::fabs(frame.xAt(p.x) - 2) < 1e-12);
        QVERIFY(std::fabs(frame.yAt(p.y) - 0.1) < 1e-12);
        AxisSpec x{0, 10, AxisScale::Linear, ""}, y{0, 1, AxisScale::Linear, ""};
        makeAspectEqual(x, y, frame.plot);
        QVERIFY(std::fabs((x.high - x.low) / frame.plot.width - (y.high - y.low) / frame.plot.height) < 1e-12);
        QCOMPARE((y.high + y.low) / 2, 0.5);
    }

    void pickFindsTheTopmostVisibleMark() {
        Scene scene;
        scene.width = scene.height = 100;
        scene.items.push_back(RectangleItem{{10, 10, 50, 50}, {1, 2, 3, 255}, {}, 0, {PickId::Kind::Cell, 1}});
        PointCloudItem cloud;
        cloud.points = std::make_shared<std::vector<Point>>(std::vector<Point>{{20, 20}, {24, 20}, {90, 90}});
        cloud.ids = std::make_shared<std::vector<std::int64_t>>(std::vector<std::int64_t>{7, 8, 9});
        cloud.pickKind = PickId::Kind::Token;
        scene.items.push_back(PushClipItem{{0, 0, 80, 80}});
        scene.items.push_back(cloud);
        scene.items.push_back(PopClipItem{});
        QCOMPARE(pickAt(scene, {23, 20}, 1), (PickId{PickId::Kind::Token, 8}));
        QCOMPARE(pickAt(scene, {21, 20}, 1), (PickId{PickId::Kind::Token, 7}));
        QCOMPARE(pickAt(scene, {40, 40}, 1), (PickId{PickId::Kind::Cell, 1}));
        QCOMPARE(pickAt(scene, {90, 90}, 1), PickId{}); // clipped away
        QCOMPARE(pickAt(scene, {75, 20}, 1), PickId{});
        scene.items.push_back(CircleItem{{20, 20}, 5, {0, 0, 0, 255}, {}, {PickId::Kind::Handle, 3}});
        QCOMPARE(pickAt(scene, {20, 20}, 1), (PickId{PickId::Kind::Handle, 3})); // drawn later, lies on top
    }

    void textPainterNamesWhatIsThere() {
        Scene scene;
        scene.width = 30;
        scene.height = 20;
        scene.background = {255, 255, 255, 255};
        scene.items.push_back(RectangleItem{{1, 2, 3, 4}, {0, 0x72, 0xb2, 128}, {}, 0, {PickId::Kind::Token, 5}});
        scene.items.push_back(
            TextItem{{9, 9}, "k→v", {}, {0, 0, 0, 255}, HorizontalAlign::Left, VerticalAlign::Baseline, -90});
        QCOMPARE(paintSceneAsText(scene), std::string("scene 30x20 on #ffffff\n"
                                                      "rectangle 1,2 3x4 fill #0072b280 [token 5]\n"
                                                      "text 9,9 \"k→v\" 11 px turned -90 #000000\n"));
    }
};

KVSCOPE_TEST(SceneBasicsTest)
#include "scene_basics_test.moc"
