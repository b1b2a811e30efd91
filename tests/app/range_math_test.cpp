// Pan and zoom keep the data under the pointer where it was; boxes and tokens come back in data terms.
#include "app/window/canvas/range_math.h"
#include "tests/support/test_program.h"

#include <QTest>

#include <cmath>
#include <memory>
#include <random>

using namespace kvscope;

namespace {

Scene sceneWithPlot() {
    Scene scene;
    scene.width = 400;
    scene.height = 300;
    scene.plot = {50, 20, 300, 200};
    scene.xMin = -3;
    scene.xMax = 3;
    scene.yMin = 10;
    scene.yMax = 20;
    return scene;
}

double xAt(const ShownPlot& s, double pixel) {
    return s.range.xMin + (pixel - s.plot.x) / s.plot.width * (s.range.xMax - s.range.xMin);
}
double yAt(const ShownPlot& s, double pixel) {
    return s.range.yMax - (pixel - s.plot.y) / s.plot.height * (s.range.yMax - s.range.yMin);
}
bool near(double a, double b) { return std::abs(a - b) < 1e-9; }

} // namespace

class RangeMathTest : public QObject {
    Q_OBJECT

private slots:
    void zoomKeepsWhatIsUnderThePointer() {
        const ShownPlot before = ShownPlot::of(sceneWithPlot());
        for (const double factor : {0.5, 1.2, 4.0}) {
            ShownPlot after = before;
            after.range = zoomAt(before, {120, 90}, factor, ZoomAxes::Both);
            QVERIFY(near(xAt(before, 120), xAt(after, 120)) && near(yAt(before, 90), yAt(after, 90)));
            QVERIFY(near((before.range.xMax - before.range.xMin) / (after.range.xMax - after.range.xMin), factor));
        }
    }

    // However often the wheel turns, a range stays wide enough for its marks and finite.
    void zoomEndsBeforeDoublesDo() {
        for (const double factor : {1.5, 1 / 1.5}) {
            ShownPlot shown = ShownPlot::of(sceneWithPlot());
            for (int notch = 0; notch < 2000; ++notch) shown.range = zoomAt(shown, {120, 90}, factor, ZoomAxes::Both);
            QVERIFY(shown.range.yMax - shown.range.yMin > 1e-9 * shown.range.yMin);
            QVERIFY(shown.range.xMax < 1e16 && shown.range.xMin > -1e16 && shown.range.yMax < 1e16);
        }
        ShownPlot shown = ShownPlot::of(sceneWithPlot());
        for (int i = 0; i < 100; ++i) shown.range = zoomToBox(shown, {100, 80}, {150, 120});
        QVERIFY(shown.range.yMax - shown.range.yMin > 1e-9 * shown.range.yMin);
    }

    // A map counts its rows downwards: the same three gestures, with yMin at the top.
    void gesturesFollowAPlotWhoseYRunsDown() {
        Scene map = sceneWithPlot();
        map.yDown = true;
        const ShownPlot before = ShownPlot::of(map);
        const auto yDownAt = [](const ShownPlot& s, double pixel) {
            return s.range.yMin + (pixel - s.plot.y) / s.plot.height * (s.range.yMax - s.range.yMin);
        };
        ShownPlot after = before;
        after.range = zoomAt(before, {120, 90}, 2, ZoomAxes::Both);
        QVERIFY(near(yDownAt(before, 90), yDownAt(after, 90)));
        after.range = panBy(before, 30, -10);
        QVERIFY(near(yDownAt(before, 100), yDownAt(after, 90)));
        const Viewport::Range box = zoomToBox(before, {80, 40}, {200, 160});
        QVERIFY(near(box.yMin, yDownAt(before, 40)) && near(box.yMax, yDownAt(before, 160)));
    }

    void framingShowsTheSelectedMarksAndLittleElse() {
        Scene scene = sceneWithPlot();
        auto points = std::make_shared<std::vector<Point>>(std::vector<Point>{{100, 60}, {200, 120}, {300, 200}});
        PointCloudItem cloud;
        cloud.points = points;
        cloud.pickKind = PickId::Kind::Token;
        scene.items.push_back(cloud);
        const ShownPlot shown = ShownPlot::of(scene);
        const auto range = rangeAround(scene, {0, 1});
        QVERIFY(range && range->xMin < xAt(shown, 100) && range->xMax > xAt(shown, 200) &&
                range->xMax < xAt(shown, 300));
        QVERIFY(range->yMax > yAt(shown, 60) && range->yMin < yAt(shown, 120) && range->yMin > yAt(shown, 200));
        const auto single = rangeAround(scene, {2});
        QVERIFY(single && near(single->xMax - single->xMin, 6.0 / 20) &&
                near((single->xMin + single->xMax) / 2, xAt(shown, 300)));
        QVERIFY(!rangeAround(scene, {7}) && !rangeAround(scene, {}) && !rangeAround(Scene{}, {1}));
        scene.yDown = true; // a map: the columns of the tokens, all rows
        const auto columns = rangeAround(scene, {10, 11, 12});
        QVERIFY(columns && near(columns->xMin, 6) && near(columns->xMax, 17) && columns->yMin == 10 &&
                columns->yMax == 20);
    }

    void oneAxisLeavesTheOtherAlone() {
        const ShownPlot shown = ShownPlot::of(sceneWithPlot());
        const Viewport::Range x = zoomAt(shown, {120, 90}, 2, ZoomAxes::X);
        QVERIFY(x.yMin == 10 && x.yMax == 20 && near(x.xMax - x.xMin, 3));
        const Viewport::Range y = zoomAt(shown, {120, 90}, 2, ZoomAxes::Y);
        QVERIFY(y.xMin == -3 && y.xMax == 3 && near(y.yMax - y.yMin, 5));
    }

    void panMovesTheDataWithThePointer() {
        const ShownPlot before = ShownPlot::of(sceneWithPlot());
        ShownPlot after = before;
        after.range = panBy(before, 30, -10);
        QVERIFY(near(xAt(before, 100), xAt(after, 130)));
        QVERIFY(near(yAt(before, 100), yAt(after, 90)));
    }

    void aBoxIsTheSameFromEveryCorner() {
        const ShownPlot shown = ShownPlot::of(sceneWithPlot());
        const Viewport::Range range = zoomToBox(shown, {100, 60}, {200, 160});
        QVERIFY(near(range.xMin, xAt(shown, 100)) && near(range.yMin, yAt(shown, 160)));
        const Viewport::Range other = zoomToBox(shown, {200, 160}, {100, 60});
        QVERIFY(near(range.xMax, other.xMax) && near(range.yMax, other.yMax));
    }

    void tokensInABoxComeFromAllKindsOfMarks() {
        Scene scene = sceneWithPlot();
        PointCloudItem cloud;
        cloud.points = std::make_shared<std::vector<Point>>(std::vector<Point>{{60, 30}, {300, 200}, {70, 40}});
        cloud.ids = std::make_shared<std::vector<std::int64_t>>(std::vector<std::int64_t>{7, 8, 3});
        cloud.pickKind = PickId::Kind::Token;
        scene.items.push_back(cloud);
        scene.items.push_back(CircleItem{{65, 35}, 3, {}, {}, {PickId::Kind::Token, 7}});
        scene.items.push_back(RectangleItem{{60, 60, 10, 10}, {}, {}, 0, {PickId::Kind::Token, 5}});
        scene.items.push_back(CircleItem{{61, 61}, 3, {}, {}, {PickId::Kind::Handle, 9}});
        QCOMPARE(tokensInBox(scene, {100, 100}, {50, 20}), (std::vector<TokenIndex>{3, 5, 7}));
        QCOMPARE(positionOfToken(scene, 8)->x, 300.0);
        QVERIFY(!positionOfToken(scene, 99));
    }

    // Against the angle that the line turns through as seen from the point: 0 outside, a full turn inside.
    void aLassoHoldsWhatItsLineSurrounds() {
        const unsigned seed = 20;
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> radius(30, 140), place(-20, 320);
        for (int round = 0; round < 30; ++round) {
            Lasso lasso;
            for (int corner = 0; corner < 40; ++corner) { // a star without crossings, concave nearly everywhere
                const double angle = 2 * M_PI * corner / 40, r = radius(random);
                lasso.add({150 + r * std::cos(angle), 150 + r * std::sin(angle)});
            }
            const Lasso::Inside inside(lasso.path());
            for (int i = 0; i < 400; ++i) {
                const Point at{place(random), place(random)};
                double turn = 0;
                for (std::size_t k = 0; k < lasso.path().size(); ++k) {
                    const Point a = lasso.path()[k], b = lasso.path()[(k + 1) % lasso.path().size()];
                    turn += std::remainder(std::atan2(b.y - at.y, b.x - at.x) - std::atan2(a.y - at.y, a.x - at.x),
                                           2 * M_PI);
                }
                QVERIFY2(inside.contains(at) == (std::abs(turn) > M_PI),
                         qPrintable(QString("round %1: %2, %3 turns by %4").arg(round).arg(at.x).arg(at.y).arg(turn)));
            }
        }
    }

    void aLassoTakesMarksAndNoShortWays() {
        Scene scene = sceneWithPlot();
        for (int i = 0; i < 5; ++i)
            scene.items.push_back(CircleItem{{60.0 + 20 * i, 80}, 3, {}, {}, {PickId::Kind::Token, 9 - i}});
        Lasso lasso;
        for (const Point at : {Point{70, 60}, {70.5, 60.5}, {130, 60}, {130, 100}, {70, 100}}) // the second is no step
            lasso.add(at);
        QCOMPARE(lasso.path().size(), std::size_t{4});
        QCOMPARE(tokensInLasso(scene, lasso), (std::vector<TokenIndex>{6, 7, 8}));
        lasso.clear();
        lasso.add({0, 0});
        lasso.add({300, 300});
        QVERIFY(tokensInLasso(scene, lasso).empty()); // a line surrounds nothing
    }

    // What is zoomed out of the picture is not selected with what is left of it.
    void marksBehindTheClipAreNotSelected() {
        Scene scene = sceneWithPlot();
        scene.items.push_back(PushClipItem{{50, 50, 60, 60}});
        for (int i = 0; i < 5; ++i)
            scene.items.push_back(CircleItem{{60.0 + 20 * i, 80}, 3, {}, {}, {PickId::Kind::Token, i}});
        scene.items.push_back(PopClipItem{});
        scene.items.push_back(CircleItem{{150, 80}, 3, {}, {}, {PickId::Kind::Token, 9}});
        QCOMPARE(tokensInBox(scene, {0, 0}, {300, 300}), (std::vector<TokenIndex>{0, 1, 2, 9}));
        QVERIFY(positionOfToken(scene, 4).has_value()); // it has a place all the same
    }

    void aSceneWithoutAxesHasNoPlot() { QVERIFY(!ShownPlot::of(Scene{}).valid); }
};

KVSCOPE_TEST(RangeMathTest)
#include "range_math_test.moc"
