// Marks as coverage: as large as their outlines say, filled or hollow, and alike from all sides where the mark is.
#include "tests/support/test_program.h"
#include "views/scene/marker_bitmap.h"
#include "views/scene/scene_builder.h"

#include <QtTest>

#include <cmath>
#include <numbers>
#include <numeric>

using namespace kvscope;

namespace {

double areaOf(const MarkerBitmap& bitmap) {
    return std::accumulate(bitmap.coverage.begin(), bitmap.coverage.end(), 0.0) / 255;
}

/// By the shoelace formula.
double areaInside(const std::vector<Point>& outline) {
    double twice = 0;
    for (std::size_t i = 0; i < outline.size(); ++i) {
        const Point a = outline[i], b = outline[(i + 1) % outline.size()];
        twice += a.x * b.y - b.x * a.y;
    }
    return std::abs(twice) / 2;
}

double lengthOf(const std::vector<Point>& outline) {
    double length = 0;
    for (std::size_t i = 0; i < outline.size(); ++i)
        length += std::hypot(outline[i].x - outline[(i + 1) % outline.size()].x,
                             outline[i].y - outline[(i + 1) % outline.size()].y);
    return length;
}

int at(const MarkerBitmap& bitmap, int column, int row) {
    return bitmap.coverage[static_cast<std::size_t>(row * bitmap.size + column)];
}

} // namespace

class MarkerBitmapTest : public QObject {
    Q_OBJECT

private slots:
    void areasAreThoseOfTheShapes() {
        for (const double radius : {2.0, 4.6, 9.0, 20.0}) {
            const double disc = areaOf(rasteriseMarker(Marker::Circle, radius, 0));
            QVERIFY2(std::abs(disc - std::numbers::pi * radius * radius) < 0.03 * radius * radius + 0.2,
                     qPrintable(QString::number(disc)));
            const double ring = areaOf(rasteriseMarker(Marker::Circle, radius, 2));
            QVERIFY2(std::abs(ring - 4 * std::numbers::pi * radius) < 0.05 * ring + 0.5,
                     qPrintable(QString::number(ring)));
        }
        for (const Marker marker : {Marker::Square, Marker::Diamond, Marker::TriangleUp, Marker::TriangleDown,
                                    Marker::Hexagon, Marker::Star}) {
            const std::vector<Point> outline = markerOutline(marker, 16);
            const double filled = areaOf(rasteriseMarker(marker, 16, 0)), inside = areaInside(outline);
            QVERIFY2(std::abs(filled - inside) < 0.02 * inside,
                     qPrintable(QString("%1: %2, not %3").arg(int(marker)).arg(filled).arg(inside)));
            const double line = areaOf(rasteriseMarker(marker, 16, 2)), length = 2 * lengthOf(outline);
            QVERIFY2(std::abs(line - length) < 0.1 * length,
                     qPrintable(QString("%1: %2, not %3").arg(int(marker)).arg(line).arg(length)));
        }
        QVERIFY(std::abs(areaOf(rasteriseMarker(Marker::Plus, 16, 2)) - (2 * 32 * 2 - 4)) < 8);
    }

    void aLineThinnerThanAPixelIsFaint() {
        const MarkerBitmap thin = rasteriseMarker(Marker::Circle, 10, 0.5);
        QVERIFY(*std::max_element(thin.coverage.begin(), thin.coverage.end()) <= 128);
        QVERIFY(std::abs(areaOf(thin) - 10 * std::numbers::pi) < 5);
    }

    void triangleUpPointsUp() {
        const MarkerBitmap up = rasteriseMarker(Marker::TriangleUp, 12, 0),
                           down = rasteriseMarker(Marker::TriangleDown, 12, 0);
        const int middle = up.size / 2, low = middle + 5, high = middle - 10;
        QVERIFY(at(up, middle + 7, low) > 200 && at(up, middle + 7, high) == 0 && at(up, middle, high) > 200);
        QVERIFY(at(down, middle + 7, low) == 0 && at(down, middle + 7, middle - 6) > 200);
    }

    void discsAreAlikeFromAllSidesAndEndBeforeTheEdge() {
        const MarkerBitmap disc = rasteriseMarker(Marker::Circle, 5.3, 0);
        for (int row = 0; row < disc.size; ++row)
            for (int column = 0; column < disc.size; ++column) {
                QCOMPARE(at(disc, column, row), at(disc, row, column));
                QCOMPARE(at(disc, column, row), at(disc, disc.size - 1 - column, row));
                if (row == 0 || column == 0) QCOMPARE(at(disc, column, row), 0);
            }
        QCOMPARE(at(disc, disc.size / 2, disc.size / 2), 255);
    }
};

KVSCOPE_TEST(MarkerBitmapTest)
#include "marker_bitmap_test.moc"
