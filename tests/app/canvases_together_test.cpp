// The canvases of a window draw one after the other before the first is read: one is painted while the next scene is
// built.
#include <QtTest>

#include "app/text/qt_text_service.h"
#include "app/window/canvas/canvas_widget.h"
#include "tests/support/test_program.h"

#include <QAbstractEventDispatcher>

using namespace kvscope;

namespace {

/// Three canvases beside each other, each in a colour of its own, and what they do.
struct Canvases {
    QtTextService text;
    QWidget window;
    std::array<Colour, 3> colours{Colour{200, 0, 0, 255}, Colour{0, 200, 0, 255}, Colour{0, 0, 200, 255}};
    std::array<CanvasWidget*, 3> all{};
    QStringList log;

    Canvases() {
        window.resize(300, 100);
        for (int i = 0; i < 3; ++i) {
            all[i] = new CanvasWidget(
                text, [this, i](double width, double height) { return built(i, width, height); }, &window);
            all[i]->setGeometry(100 * i, 0, 100, 100);
            QObject::connect(all[i], &CanvasWidget::painted, &window, [this, i] { log += QString("show %1").arg(i); });
        }
        window.show();
        (void)QTest::qWaitFor([&] { return log.filter("show").size() >= 3; });
        while (QAbstractEventDispatcher::instance()->processEvents(QEventLoop::AllEvents)) {
        }
        log.clear();
    }
    Scene built(int i, double width, double height) {
        log += QString("build %1").arg(i);
        Scene scene;
        scene.width = width;
        scene.height = height;
        scene.background = colours[i];
        return scene;
    }
};

} // namespace

class CanvasesTogetherTest : public QObject {
    Q_OBJECT

private slots:
    void allBuildBeforeTheFirstIsShown() {
        Canvases open;
        for (CanvasWidget* canvas : open.all) canvas->invalidate();
        QTRY_COMPARE(open.log.filter("show").size(), 3);
        QCOMPARE(open.log.mid(0, 3).filter("build").size(), 3);
        QCOMPARE(open.log.filter("build").size(), 3);
        for (int i = 0; i < 3; ++i)
            QCOMPARE(open.all[i]->picture().pixelColor(50, 50),
                     QColor(open.colours[i].r, open.colours[i].g, open.colours[i].b));
    }

    void aHiddenOneWaits() {
        Canvases open;
        open.all[2]->hide();
        for (CanvasWidget* canvas : open.all) canvas->invalidate();
        QTRY_COMPARE(open.log.filter("show").size(), 2);
        QCOMPARE(open.log.filter("build 2").size(), 0);
        open.all[2]->show();
        QTRY_COMPARE(open.log.filter("show 2").size(), 1);
        QCOMPARE(open.log.filter("build 2").size(), 1);
    }

    /// What is drawn and not yet shown when its scene changes is drawn again.
    void theNewestSceneIsShown() {
        Canvases open;
        QObject::connect(open.all[0], &CanvasWidget::painted, open.all[1], [&] {
            open.colours[1] = {1, 2, 3, 255};
            open.all[1]->invalidate();
        });
        for (CanvasWidget* canvas : open.all) canvas->invalidate();
        QTRY_VERIFY(open.log.filter("show 1").size() >= 1);
        QCOMPARE(open.all[1]->picture().pixelColor(50, 50), QColor(1, 2, 3));
        QCOMPARE(open.window.grab().toImage().pixelColor(150, 50), QColor(1, 2, 3));
    }

    void oneThatIsDueMayGo() {
        Canvases open;
        for (CanvasWidget* canvas : open.all) canvas->invalidate();
        delete open.all[1];
        QTRY_COMPARE(open.log.filter("show").size(), 2);
    }

    /// One that is visible and outside the window is drawn with the others and never shown: a thread may paint it.
    void oneThatIsPaintedMayGo() {
        for (int repeat = 0; repeat < 50; ++repeat) {
            Canvases open;
            open.all[1]->move(1000, 0);
            open.log.clear();
            for (CanvasWidget* canvas : open.all) canvas->invalidate();
            QTRY_COMPARE(open.log.filter("show 2").size(), 1);
            QCOMPARE(open.log.filter("build 1").size(), 1);
            QCOMPARE(open.log.filter("show 1").size(), 0);
            delete open.all[1];
        }
    }
};

KVSCOPE_WINDOW_TEST(CanvasesTogetherTest)
#include "canvases_together_test.moc"
