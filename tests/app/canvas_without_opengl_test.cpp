// Where there is no OpenGL, QPainter paints the canvas.
#include <QTest>

#include "app/text/qt_text_service.h"
#include "app/window/canvas/canvas_widget.h"
#include "tests/support/test_program.h"

#include <QApplication>

using namespace kvscope;

class CanvasWithoutOpenGlTest : public QObject {
    Q_OBJECT

private slots:
    void theSceneIsPainted() {
        const QtTextService text;
        const Colour ground{10, 20, 30, 255}, box{200, 100, 50, 255};
        CanvasWidget canvas(text, [&](double width, double height) {
            Scene scene;
            scene.width = width;
            scene.height = height;
            scene.background = ground;
            scene.items.push_back(RectangleItem{{0, 0, width / 2, height}, box, {}, 0, {}});
            return scene;
        });
        canvas.resize(200, 100);
        const QImage& picture = canvas.picture();
        QCOMPARE(picture.size(), QSize(200, 100));
        QCOMPARE(picture.pixelColor(50, 50), QColor(200, 100, 50));
        QCOMPARE(picture.pixelColor(150, 50), QColor(10, 20, 30));
    }
};

// The minimal platform has no OpenGL, whatever the display has.
KVSCOPE_REGISTER_TEST(CanvasWithoutOpenGlTest, qputenv("QT_QPA_PLATFORM", "minimal");
                      QApplication application(argc, argv);)
#include "canvas_without_opengl_test.moc"
