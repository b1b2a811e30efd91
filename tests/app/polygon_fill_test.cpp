// Triangles must cover exactly the polygon, whatever its shape; dashes must add up to the pattern's share of the line.
#include "tests/support/test_program.h"
#include "views/imgui/imgui_scene_painter.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace kvscope;

namespace {

double area(Point a, Point b, Point c) { return std::abs((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)) / 2; }

double polygonArea(const std::vector<Point>& p) {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        const Point &a = p[i], &b = p[(i + 1) % p.size()];
        sum += a.x * b.y - b.x * a.y;
    }
    return std::abs(sum) / 2;
}

double length(const std::vector<std::vector<Point>>& pieces) {
    double sum = 0;
    for (const auto& piece : pieces)
        for (std::size_t i = 1; i < piece.size(); ++i)
            sum += std::hypot(piece[i].x - piece[i - 1].x, piece[i].y - piece[i - 1].y);
    return sum;
}

std::vector<Point> star(int spikes, double inner) {
    std::vector<Point> points;
    for (int i = 0; i < 2 * spikes; ++i) {
        const double radius = i % 2 == 0 ? 10 : inner, angle = std::numbers::pi * i / spikes;
        points.push_back({radius * std::cos(angle), radius * std::sin(angle)});
    }
    return points;
}

} // namespace

class PolygonFillTest : public QObject {
    Q_OBJECT

private slots:
    void trianglesCoverThePolygon() {
        std::vector<std::vector<Point>> shapes = {
            {{0, 0}, {10, 0}, {10, 10}, {0, 10}}, star(5, 4), star(7, 1), {{0, 0}, {10, 0}, {10, 10}, {5, 2}, {0, 10}}};
        std::vector<Point> band, lower; // whose sides meet at both ends and touch in the middle
        for (int i = 0; i <= 60; ++i) {
            const double x = i / 60.0, middle = 40 * std::sqrt(x),
                         half = 12 * std::abs(std::sin(2 * std::numbers::pi * x));
            band.push_back({100 * x, middle + (i == 30 || i == 60 ? 0 : half)});
            lower.push_back({100 * x, middle - (i == 30 || i == 60 ? 0 : half)});
        }
        band.insert(band.end(), lower.rbegin(), lower.rend());
        shapes.push_back(band);
        for (std::vector<Point> shape : shapes) {
            for (const bool reversed : {false, true}) {
                if (reversed) std::reverse(shape.begin(), shape.end());
                double covered = 0;
                for (const auto& [i, j, k] : triangulate(shape)) covered += area(shape[i], shape[j], shape[k]);
                QVERIFY(std::abs(covered - polygonArea(shape)) < 1e-9);
            }
        }
    }

    void convexShapesAreToldApart() {
        QVERIFY(isConvex({{0, 0}, {10, 0}, {10, 10}, {0, 10}}));
        QVERIFY(isConvex({{0, 10}, {10, 10}, {10, 0}, {5, 0}, {0, 0}})); // a corner on a side
        QVERIFY(isConvex({{0, 0}, {4, 8}, {8, 0}}));
        QVERIFY(!isConvex({{0, 0}, {10, 0}, {10, 10}, {5, 2}, {0, 10}}));
        QVERIFY(!isConvex(star(5, 4)));
        std::vector<Point> pentagram;
        for (int i = 0; i < 5; ++i)
            pentagram.push_back({std::cos(0.8 * std::numbers::pi * i), std::sin(0.8 * std::numbers::pi * i)});
        QVERIFY(!isConvex(pentagram)); // all corners turn the same way, but twice round
        QVERIFY(!isConvex({{0, 0}, {1, 1}, {2, 2}}));
    }

    void linesAreCutWhereJointsFail() {
        const std::vector<Point> needle{{0, 0}, {3, 200}, {6, 0}, {9, 200}};
        const auto pieces = jointPieces(needle, 1.3, false);
        QCOMPARE(pieces.size(), std::size_t{3}); // at both points
        QCOMPARE(pieces[1].front().y, 200.0);
        QCOMPARE(pieces[1].back().y, 0.0);
        for (const double height : {0.3, 2.0}) {
            const std::vector<Point> step{{0, 0}, {20, 0}, {20, height}, {40, height}};
            QCOMPARE(jointPieces(step, 1.5, false).size(), std::size_t{3});
        }
        const std::vector<Point> stairs{{0, 0}, {20, 0}, {20, 9}, {40, 9}}, slow{{0, 0}, {1, 0.1}, {2, 0.3}, {3, 0.2}};
        QCOMPARE(jointPieces(stairs, 1.5, false).size(), std::size_t{1});
        QCOMPARE(jointPieces(slow, 1.5, false).size(), std::size_t{1}); // many short ones that hardly turn
        QCOMPARE(jointPieces({{0, 0}, {4, 8}, {8, 0}}, 1.2, true).size(), std::size_t{1}); // a mark keeps its corners
        QCOMPARE(jointPieces(needle, 1.3, true).front().front().x, 0.0);
        QCOMPARE(jointPieces(needle, 1.3, true).back().back().x, 0.0);
    }

    void twoPointsFillNothing() { QVERIFY(triangulate({{0, 0}, {1, 1}}).empty()); }

    void dashesHaveThePatternsLengths() {
        const std::vector<Point> line{{0, 0}, {7, 0}, {7, 13}};
        const auto pieces = dashes(line, {4, 1}, false);
        QCOMPARE(pieces.size(), std::size_t{4});
        QVERIFY(std::abs(length(pieces) - 16) < 1e-9);
        QCOMPARE(pieces[1].size(), std::size_t{3}); // it turns the corner at (7, 0)
    }

    void anOddPatternAlternates() {
        const auto pieces = dashes({{0, 0}, {12, 0}}, {2}, false);
        QCOMPARE(pieces.size(), std::size_t{3});
        QCOMPARE(pieces[1].front().x, 4.0);
    }

    void aClosedLineComesBack() {
        QVERIFY(std::abs(length(dashes({{0, 0}, {4, 0}, {4, 4}, {0, 4}}, {1, 1}, true)) - 8) < 1e-9);
    }

    void noPatternDrawsNothing() { QVERIFY(dashes({{0, 0}, {1, 0}}, {0, 0}, false).empty()); }
};

KVSCOPE_TEST(PolygonFillTest)
#include "polygon_fill_test.moc"
