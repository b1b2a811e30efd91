// A canvas looks as the figure does, though texts, images, small circles and crowds of marks come from pictures that it
// keeps. The environment chooses who paints: QPainter, or OpenGL with KVSCOPE_OPENGL=1 (CMakeLists.txt).
#include <QtTest>

#include "app/export/painter_scene.h"
#include "app/text/qt_text_service.h"
#include "app/window/canvas/canvas_renderer.h"
#include "app/window/canvas/canvas_widget.h"
#include "app/window/style/appearance.h"
#include "tests/support/test_program.h"

#include <QPainter>

#include <cmath>
#include <random>

using namespace kvscope;

namespace {

constexpr int kCell = 100; ///< of a picture of cells, logical pixels

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

/// Beside each other, each a square of kCell.
class Cells {
public:
    Scene scene;

    double left() const { return kCell * m_count; }
    int count() const { return m_count; }
    void add(Drawable item) {
        scene.items.push_back(std::move(item));
        ++m_count;
    }

    void addText(HorizontalAlign horizontal, VerticalAlign vertical, double angle = 0) {
        TextItem item;
        item.text = "25 %"; // inside its cell, wherever it begins
        item.position = {left() + 50.3, 50.4};
        item.colour = {20, 40, 160, 255};
        item.horizontal = horizontal;
        item.vertical = vertical;
        item.angleDegrees = angle;
        add(item);
    }
    /// Under a clip of its own, which cuts some of its marks.
    void addCrowd(Colour fill, Stroke stroke) {
        std::uniform_real_distribution<double> x(left(), left() + kCell), y(0, kCell);
        auto points = std::make_shared<std::vector<Point>>();
        for (int i = 0; i < 300; ++i) points->push_back({x(m_random), y(m_random)});
        PointCloudItem cloud;
        cloud.points = points;
        cloud.radius = 2.3;
        cloud.fill = fill;
        cloud.stroke = std::move(stroke);
        scene.items.push_back(PushClipItem{{left() + 20, 20, kCell - 40, kCell - 40}});
        scene.items.push_back(cloud);
        add(PopClipItem{});
    }
    void addCircle(double radius, Colour fill, Stroke stroke) {
        add(CircleItem{{left() + 50.3, 50.6}, radius, fill, std::move(stroke), {}});
    }
    void addLine(std::vector<Point> points, double width, const std::vector<double>& dash = {}) {
        for (Point& point : points) point.x += left();
        PolylineItem line;
        line.points = std::move(points);
        line.stroke = {{20, 20, 20, 255}, width, dash};
        add(line);
    }
    /// Pixels larger than the screen's, on half of them a half transparent colour.
    void addImage() {
        auto rgba = std::make_shared<std::vector<std::uint8_t>>();
        for (int pixel = 0; pixel < 12; ++pixel)
            rgba->insert(rgba->end(), {static_cast<std::uint8_t>(20 * pixel), 60, 120,
                                       static_cast<std::uint8_t>(pixel % 2 == 0 ? 255 : 128)});
        add(ImageItem{{left() + 20, 20, 60, 45}, 4, 3, rgba, {}});
    }

private:
    int m_count = 0;
    std::mt19937 m_random{7};
};

Cells everyKind() {
    Cells cells;
    for (const HorizontalAlign horizontal : {HorizontalAlign::Left, HorizontalAlign::Centre, HorizontalAlign::Right})
        for (const VerticalAlign vertical :
             {VerticalAlign::Top, VerticalAlign::Middle, VerticalAlign::Baseline, VerticalAlign::Bottom})
            cells.addText(horizontal, vertical);
    cells.addText(HorizontalAlign::Centre, VerticalAlign::Middle, -90);
    const Colour blue{0, 114, 178, 255}, black{0, 0, 0, 255};
    cells.addCrowd(blue, {});
    cells.addCrowd(withAlpha(blue, 0.24), {});
    cells.addCrowd(kTransparent, {{213, 94, 0, 255}, 1, {}});
    cells.addCrowd(blue, {black, 1, {}});
    cells.addCircle(1.3, blue, {});
    cells.addCircle(2.9, withAlpha(blue, 0.5), {});
    cells.addCircle(4.6, kTransparent, {black, 1.3, {}});
    cells.addCircle(8, {240, 200, 0, 255}, {black, 2, {}});
    cells.addCircle(8, kTransparent, {black, 2, {3, 2}});
    cells.addCircle(14, blue, {{200, 0, 0, 255}, 3, {}});
    std::vector<Point> curve, zigzag;
    for (int i = 0; i < 200; ++i) curve.push_back({i / 2.0, 50 + 40 * std::sin(0.07 * i)});
    for (int i = 0; i < 2'000; ++i) zigzag.push_back({10 + 0.04 * i, i % 2 == 0 ? 20.0 : 80.0});
    cells.addLine(curve, 1);
    cells.addLine(zigzag, 1); // one path: as segments it would be paler
    for (const std::vector<double>& dash : {std::vector<double>{}, {5, 3}})
        cells.addLine({{20, 20.3}, {80, 80.6}}, 1.2, dash);
    cells.addImage();
    cells.scene.background = {255, 255, 255, 255};
    return cells;
}

} // namespace

class CanvasOnPaperTest : public QObject {
    Q_OBJECT

    QtTextService m_text;

private slots:
    void initTestCase() {
        if (qgetenv("KVSCOPE_OPENGL") != "1")
            qputenv("KVSCOPE_OPENGL", "0");
        else if (!makeOpenGlRenderer(m_text))
            QSKIP("needs OpenGL 3");
    }

    void everyCellLooksAsOnPaper_data() {
        QTest::addColumn<double>("scale");
        for (const double scale : {1.0, 1.25, 2.0}) QTest::addRow("scale %g", scale) << scale;
    }

    void everyCellLooksAsOnPaper() {
        QFETCH(double, scale);
        setAppearance({ThemeId::Light, scale, false});
        Cells cells = everyKind();
        Scene& scene = cells.scene;
        CanvasWidget canvas(m_text, [&](double width, double height) {
            scene.width = width;
            scene.height = height;
            return scene;
        });
        const int side = static_cast<int>(kCell * scale);
        canvas.resize(side * cells.count(), side);
        for (int frame = 0; frame < 2; ++frame) { // the second takes its texts and images from the first
            canvas.invalidate();
            const QImage shown = canvas.picture();
            QImage paper(shown.size(), QImage::Format_RGB32);
            QPainter painter(&paper);
            painter.scale(scale, scale);
            paintScene(painter, scene);
            painter.end();
            for (int i = 0; i < cells.count(); ++i) {
                const QRect cell(side * i, 0, side, side);
                const Ink ink = inkIn(shown, cell), expected = inkIn(paper, cell);
                const QPointF apart = ink.middle - expected.middle;
                QVERIFY2(expected.sum > 0 && std::abs(ink.sum - expected.sum) < 0.25 * expected.sum &&
                             std::abs(apart.x()) < 0.6 * scale && std::abs(apart.y()) < 0.6 * scale,
                         qPrintable(QString("cell %1: ink %2, on paper %3; %4, %5 pixels apart")
                                        .arg(i)
                                        .arg(ink.sum)
                                        .arg(expected.sum)
                                        .arg(apart.x())
                                        .arg(apart.y())));
            }
        }
    }

    void circlesAreThoseOfThePaper() {
        constexpr int kCell = 40;
        setAppearance({});
        const std::vector<CircleItem> looks = {{{}, 1.3, {0, 90, 200, 255}, {}, {}},
                                               {{}, 2.9, {0, 90, 200, 128}, {}, {}},
                                               {{}, 4.6, kTransparent, {{0, 0, 0, 255}, 1.3, {}}, {}},
                                               {{}, 8, {240, 200, 0, 255}, {{0, 0, 0, 255}, 2, {}}, {}},
                                               {{}, 8, kTransparent, {{0, 0, 0, 255}, 2, {3, 2}}, {}},
                                               {{}, 14, {0, 90, 200, 255}, {{200, 0, 0, 255}, 3, {}}, {}}};
        Scene scene;
        CanvasWidget canvas(m_text, [&](double width, double height) {
            scene = {width, height, {255, 255, 255, 255}, {}, {}};
            for (std::size_t i = 0; i < looks.size(); ++i) {
                CircleItem circle = looks[i];
                circle.centre = {kCell * (static_cast<double>(i) + 0.5) + 0.3, kCell / 2.0 + 0.6};
                scene.items.emplace_back(circle);
            }
            return scene;
        });
        canvas.resize(kCell * static_cast<int>(looks.size()), kCell);
        const QImage shown = canvas.picture();
        QImage paper(shown.size(), QImage::Format_RGB32);
        QPainter painter(&paper);
        painter.scale(paper.width() / scene.width, paper.height() / scene.height);
        paintScene(painter, scene);
        painter.end();
        const int side = shown.height();
        for (std::size_t i = 0; i < looks.size(); ++i) {
            double ink = 0, onPaper = 0, apart = 0;
            for (int y = 0; y < side; ++y)
                for (int x = static_cast<int>(i) * side; x < static_cast<int>(i + 1) * side; ++x) {
                    const QColor a = shown.pixelColor(x, y), b = paper.pixelColor(x, y);
                    const auto darkness = [](const QColor& of) { return 765.0 - of.red() - of.green() - of.blue(); };
                    ink += darkness(a);
                    onPaper += darkness(b);
                    apart += std::abs(darkness(a) - darkness(b));
                }
            QVERIFY2(
                onPaper > 0 && std::abs(ink - onPaper) < 0.15 * onPaper && apart < 0.3 * onPaper,
                qPrintable(QString("circle %1: %2, on paper %3, apart %4").arg(i).arg(ink).arg(onPaper).arg(apart)));
        }
    }
};

// OpenGL needs the display; QPainter does without, so that the thread sanitizer follows it.
KVSCOPE_REGISTER_TEST(CanvasOnPaperTest, if (qgetenv("KVSCOPE_OPENGL") != "1") qputenv("QT_QPA_PLATFORM", "offscreen");
                      QApplication application(argc, argv);)
#include "canvas_on_paper_test.moc"
