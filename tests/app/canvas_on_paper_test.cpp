// The canvas that QPainter paints looks as the figure does, though texts and crowds of marks come from pictures that it
// keeps.
#include <QTest> // first: moc of Qt 6.4 stumbles over gcc 12's <compare> otherwise

#include "app/export/painter_scene.h"
#include "app/text/qt_text_service.h"
#include "app/window/canvas/canvas_widget.h"
#include "tests/support/test_program.h"

#include <QApplication>
#include <QPainter>

#include <cmath>
#include <random>

using namespace kvscope;

namespace {

constexpr double kCell = 100; ///< of a picture of cells, logical pixels

/// What a cell shows: how much ink, and around which pixel.
struct Ink {
    double sum = 0;
    QPointF middle;
};
Ink inkIn(const QImage& picture, const QRect& cell) {
    Ink ink;
    for (int y = cell.top(); y <= cell.bottom(); ++y)
        for (int x = cell.left(); x <= cell.right(); ++x) {
            const double darkness = 255 - qGray(picture.pixel(x, y));
            ink.sum += darkness;
            ink.middle += darkness * QPointF(x, y);
        }
    ink.middle /= ink.sum;
    return ink;
}

TextItem textAt(Point position, HorizontalAlign horizontal, VerticalAlign vertical) {
    TextItem item;
    item.text = "Kept 25 %";
    item.position = position;
    item.colour = {20, 40, 160, 255};
    item.horizontal = horizontal;
    item.vertical = vertical;
    return item;
}

/// A cell with a clip of its own, which cuts some of its marks.
void addCrowd(Scene& scene, double left, Colour fill, Stroke stroke, std::mt19937& random) {
    std::uniform_real_distribution<double> x(left, left + kCell), y(0, kCell);
    auto points = std::make_shared<std::vector<Point>>();
    for (int i = 0; i < 300; ++i) points->push_back({x(random), y(random)});
    PointCloudItem cloud;
    cloud.points = points;
    cloud.radius = 2.3;
    cloud.fill = fill;
    cloud.stroke = std::move(stroke);
    scene.items.push_back(PushClipItem{{left + 20, 20, kCell - 40, kCell - 40}});
    scene.items.push_back(cloud);
    scene.items.push_back(PopClipItem{});
}

} // namespace

class CanvasOnPaperTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { qputenv("KVSCOPE_OPENGL", "0"); }

    void everyCellLooksAsOnPaper() {
        std::mt19937 random(7);
        Scene scene;
        int cells = 0;
        for (const HorizontalAlign horizontal :
             {HorizontalAlign::Left, HorizontalAlign::Centre, HorizontalAlign::Right})
            for (const VerticalAlign vertical :
                 {VerticalAlign::Top, VerticalAlign::Middle, VerticalAlign::Baseline, VerticalAlign::Bottom})
                scene.items.push_back(textAt({kCell * (cells++ + 0.503), 50.4}, horizontal, vertical));
        TextItem turned = textAt({kCell * (cells++ + 0.5), 50}, HorizontalAlign::Centre, VerticalAlign::Middle);
        turned.angleDegrees = -90;
        scene.items.push_back(turned);
        addCrowd(scene, kCell * cells++, {0, 114, 178, 255}, {}, random);
        addCrowd(scene, kCell * cells++, {0, 114, 178, 60}, {}, random);
        addCrowd(scene, kCell * cells++, kTransparent, {{213, 94, 0, 255}, 1, {}}, random);
        addCrowd(scene, kCell * cells++, {0, 114, 178, 255}, {{0, 0, 0, 255}, 1, {}}, random);
        PolylineItem curve;
        for (int i = 0; i < 200; ++i)
            curve.points.push_back({kCell * (cells + i / 200.0), 50 + 40 * std::sin(0.07 * i)});
        curve.stroke = {{20, 20, 20, 255}, 1, {}};
        scene.items.push_back(curve);
        ++cells;
        for (const std::vector<double>& dash : {std::vector<double>{}, {5, 3}}) {
            PolylineItem line;
            line.points = {{kCell * (cells + 0.2), 20.3}, {kCell * (cells + 0.8), 80.6}};
            line.stroke = {{20, 20, 20, 255}, 1.2, dash};
            scene.items.push_back(line);
            ++cells;
        }
        scene.background = {255, 255, 255, 255};
        const QtTextService text;
        CanvasWidget canvas(text, [&](double width, double height) {
            scene.width = width;
            scene.height = height;
            return scene;
        });
        canvas.resize(static_cast<int>(kCell) * cells, static_cast<int>(kCell));
        for (int frame = 0; frame < 2; ++frame) { // the second takes its texts from the first
            canvas.invalidate();
            const QImage shown = canvas.picture();
            QImage paper(shown.size(), QImage::Format_RGB32);
            QPainter painter(&paper);
            paintScene(painter, scene);
            painter.end();
            for (int i = 0; i < cells; ++i) {
                const QRect cell(static_cast<int>(kCell) * i, 0, static_cast<int>(kCell), static_cast<int>(kCell));
                const Ink ink = inkIn(shown, cell), expected = inkIn(paper, cell);
                const QPointF apart = ink.middle - expected.middle;
                QVERIFY2(std::abs(ink.sum - expected.sum) < 0.25 * expected.sum && std::abs(apart.x()) < 0.6 &&
                             std::abs(apart.y()) < 0.6,
                         qPrintable(QString("cell %1: ink %2, on paper %3; %4, %5 pixels apart")
                                        .arg(i)
                                        .arg(ink.sum)
                                        .arg(expected.sum)
                                        .arg(apart.x())
                                        .arg(apart.y())));
            }
        }
    }
};

KVSCOPE_OFFSCREEN_WIDGETS_TEST(CanvasOnPaperTest)
#include "canvas_on_paper_test.moc"
