// Marks of one colour as one picture: the same pixels as if one mark after the other were blended over the ground.
#include "app/export/mark_layer.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace kvscope;

namespace {

/// How much of a mark with its middle at `middle` covers the pixel: the texture that OpenGL would draw.
double coverage(const MarkerBitmap& bitmap, Point middle, int column, int row) {
    const auto at = [&](double x, double y) {
        const auto i = static_cast<int>(x), j = static_cast<int>(y);
        return x < 0 || y < 0 || i >= bitmap.size || j >= bitmap.size
                   ? 0.0
                   : bitmap.coverage[static_cast<std::size_t>(j * bitmap.size + i)] / 255.0;
    };
    const double half = bitmap.size / 2.0, x = kMarkFineness * (column + 0.5 - middle.x) + half - 0.5,
                 y = kMarkFineness * (row + 0.5 - middle.y) + half - 0.5;
    const double left = std::floor(x), top = std::floor(y), dx = x - left, dy = y - top;
    return (at(left, top) * (1 - dx) + at(left + 1, top) * dx) * (1 - dy) +
           (at(left, top + 1) * (1 - dx) + at(left + 1, top + 1) * dx) * dy;
}

/// Opacity of a pixel of the screen; 0 beyond the picture.
int opacityAt(const MarkLayer::Picture& picture, int column, int row) {
    const QPoint at = QPoint(column, row) - picture.corner;
    return picture.image.valid(at) ? qAlpha(picture.image.pixel(at)) : 0;
}

} // namespace

class MarkLayerTest : public QObject {
    Q_OBJECT

private slots:
    void everyPixelIsThatOfMarksBlendedOneByOne() {
        std::mt19937 random(20);
        for (const auto& [mark, scale] : {std::pair{MarkLayer::Mark{Marker::Circle, 1.1, 0, {0, 114, 178, 255}}, 1.0},
                                          {MarkLayer::Mark{Marker::Circle, 2, 1, {213, 94, 0, 64}}, 1.5},
                                          {MarkLayer::Mark{Marker::Square, 2.3, 0, {10, 20, 30, 200}}, 2.0}}) {
            const Box clip{10.5, 20.25, 30, 20};
            std::uniform_real_distribution<double> x(5, 46), y(15, 45);
            std::vector<Point> points;
            for (int i = 0; i < 60; ++i) points.push_back({x(random), y(random)});
            points.push_back({1e9, NAN}); // a place that no picture has
            MarkLayer layer;
            const MarkLayer::Picture picture = layer.paint(points, mark, clip, scale, scale);
            const MarkerBitmap bitmap = rasteriseMarker(mark.marker, mark.radius * scale * kMarkFineness,
                                                        mark.strokeWidth * scale * kMarkFineness);
            int seen = 0;
            for (int row = static_cast<int>(clip.y * scale); row < clip.bottom() * scale; ++row)
                for (int column = static_cast<int>(clip.x * scale); column < clip.right() * scale; ++column) {
                    double open = 1;
                    for (const Point& point : points)
                        if (point.x < 100)
                            open *= 1 - mark.colour.a / 255.0 *
                                            coverage(bitmap, {point.x * scale, point.y * scale}, column, row);
                    const int expected = static_cast<int>(std::lround(255 * (1 - open))),
                              painted = opacityAt(picture, column, row);
                    // A mark stands up to a 64th of a pixel from its place.
                    QVERIFY2(std::abs(painted - expected) <= 12,
                             qPrintable(QString("%1, %2: %3, not %4").arg(column).arg(row).arg(painted).arg(expected)));
                    seen += painted > 0 ? 1 : 0;
                }
            QVERIFY(seen > 200);
        }
    }

    void aMarkBetweenPixelsIsPaintedThereAndInItsColour() {
        MarkLayer layer;
        const MarkLayer::Mark mark{Marker::Circle, 3, 0, {1, 2, 3, 255}};
        for (const double shift : {0.0, 0.25, 0.5, 0.75}) {
            const MarkLayer::Picture picture = layer.paint({{20 + shift, 20}}, mark, {0, 0, 40, 40}, 1, 1);
            double sum = 0, moment = 0;
            for (int row = 0; row < 40; ++row)
                for (int column = 0; column < 40; ++column) {
                    sum += opacityAt(picture, column, row);
                    moment += opacityAt(picture, column, row) * (column + 0.5);
                }
            QVERIFY2(std::abs(moment / sum - 20 - shift) < 0.1, qPrintable(QString::number(moment / sum)));
            const QPoint middle = QPoint(20, 20) - picture.corner;
            QCOMPARE(picture.image.pixel(middle), qRgb(1, 2, 3));
        }
    }

    /// A mark beyond the clip reaches into it with its half.
    void marksAcrossTheEdgeOfTheClipArePainted() {
        MarkLayer layer;
        const MarkLayer::Picture picture = layer.paint({{9, 20}, {31, 20}, {20, 9}, {20, 31}},
                                                       {Marker::Circle, 3, 0, {0, 0, 0, 255}}, {10, 10, 20, 20}, 1, 1);
        for (const auto& [column, row] : {std::pair{10, 20}, {29, 20}, {20, 10}, {20, 29}})
            QVERIFY(opacityAt(picture, column, row) > 200);
    }
};

KVSCOPE_TEST(MarkLayerTest)
#include "mark_layer_test.moc"
