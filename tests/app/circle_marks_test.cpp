// Circles of every size as OpenGL draws them, where small ones are marks of a texture, and on paper.
#include <QtTest> // first: moc of Qt 6.4 stumbles over gcc 12's <compare> otherwise

#include "app/export/painter_scene.h"
#include "app/text/qt_text_service.h"
#include "app/window/canvas/canvas_widget.h"
#include "tests/support/test_program.h"

#include <QPainter>

#include <cmath>

using namespace kvscope;

class CircleMarksTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { qputenv("KVSCOPE_OPENGL", "1"); } // software's, too

    void circlesAreThoseOfThePaper() {
        constexpr int kCell = 40;
        const std::vector<CircleItem> looks = {{{}, 1.3, {0, 90, 200, 255}, {}, {}},
                                               {{}, 2.9, {0, 90, 200, 128}, {}, {}},
                                               {{}, 4.6, kTransparent, {{0, 0, 0, 255}, 1.3, {}}, {}},
                                               {{}, 8, {240, 200, 0, 255}, {{0, 0, 0, 255}, 2, {}}, {}},
                                               {{}, 8, kTransparent, {{0, 0, 0, 255}, 2, {3, 2}}, {}},
                                               {{}, 14, {0, 90, 200, 255}, {{200, 0, 0, 255}, 3, {}}, {}}};
        const QtTextService text;
        Scene scene;
        CanvasWidget canvas(text, [&](double width, double height) {
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

KVSCOPE_WINDOW_TEST(CircleMarksTest)
#include "circle_marks_test.moc"
