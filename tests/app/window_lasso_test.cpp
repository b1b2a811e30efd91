// The lasso by real events: a line drawn round marks of the key projection, with Alt held or armed by a key.
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QSettings>

using namespace kvscope;
using kvscope::testing::OpenWindow;

class WindowLassoTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    // Alt draws a line round what is to be selected, Shift adds, Ctrl takes away; each line is one step of undo.
    void aLassoSelectsAddsAndTakesAway() {
        OpenWindow open;
        CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
        const QPoint middle(canvas->width() / 2, canvas->height() / 2);
        const auto draw = [&](QPoint centre, int reach, Qt::KeyboardModifiers more) {
            const QPoint way[] = {
                {-reach, -reach}, {reach, -reach}, {reach, reach}, {-reach, reach}, {-reach, -reach + 8}};
            QTest::mousePress(canvas, Qt::LeftButton, Qt::AltModifier | more, centre + way[0]);
            for (const QPoint& step : way) QTest::mouseMove(canvas, centre + step);
            QTest::mouseRelease(canvas, Qt::LeftButton, Qt::AltModifier | more, centre + way[4]);
            return open.bench.session().selected;
        };
        const auto before = open.bench.session().selected;
        const int reach = canvas->width() / 6;
        const auto whole = draw(middle, reach, {});
        QVERIFY2(whole.size() > 50, qPrintable(QString::number(whole.size())));
        const double scale = appearance().scale;
        for (const TokenIndex token : whole) { // what is inside the square, and nothing else
            const Point at = *positionOfToken(canvas->scene(), token);
            QVERIFY(std::abs(at.x * scale - middle.x()) <= reach + 1 &&
                    std::abs(at.y * scale - middle.y()) <= reach + 1);
        }
        const auto ring = draw(middle, reach / 2, Qt::ControlModifier);
        QVERIFY(ring.size() < whole.size() && !ring.empty());
        const auto again = draw(middle, reach / 2, Qt::ShiftModifier);
        QCOMPARE(again, whole);
        QVERIFY(!open.bench.session().look.ranges.contains("key_projection")); // nothing panned or zoomed
        open.bench.undo();
        QCOMPARE(open.bench.session().selected, ring);
        open.bench.undo();
        open.bench.undo();
        QCOMPARE(open.bench.session().selected, before);
    }

    // Where a desktop moves windows with Alt: a key arms the line. Esc gives back what was selected before it.
    void aLassoIsArmedByAKeyAndTakenBackByEsc() {
        OpenWindow open;
        CanvasWidget* canvas = open.pane(0)->canvas()->canvas();
        canvas->setFocus();
        const QPoint middle(canvas->width() / 2, canvas->height() / 2);
        const QPoint way[] = {{-80, -80}, {80, -80}, {80, 80}, {-80, 80}};
        const auto before = open.bench.session().selected;
        const auto drawHalf = [&] {
            QTest::mousePress(canvas, Qt::LeftButton, {}, middle + way[0]);
            for (const QPoint& step : way) QTest::mouseMove(canvas, middle + step);
        };
        QTest::keyClick(canvas, Qt::Key_L);
        QCOMPARE(canvas->cursor().shape(), Qt::CrossCursor);
        drawHalf();
        QVERIFY(open.bench.session().selected.size() > 50 && open.bench.session().selected != before);
        QTest::keyClick(canvas, Qt::Key_Escape);
        QCOMPARE(open.bench.session().selected, before);
        QTest::mouseRelease(canvas, Qt::LeftButton, {}, middle + way[3]);
        QCOMPARE(open.bench.session().selected, before);
        QTest::keyClick(canvas, Qt::Key_L);
        drawHalf();
        QTest::mouseRelease(canvas, Qt::LeftButton, {}, middle + way[3]);
        const auto chosen = open.bench.session().selected;
        QVERIFY(chosen.size() > 50);
        QVERIFY(!open.bench.session().look.ranges.contains("key_projection"));
        drawHalf(); // the line is drawn once: this drag pans
        QTest::mouseRelease(canvas, Qt::LeftButton, {}, middle + way[3]);
        QCOMPARE(open.bench.session().selected, chosen);
        QVERIFY(open.bench.session().look.ranges.contains("key_projection"));
        QTest::keyClick(canvas, Qt::Key_L);
        QTest::keyClick(canvas, Qt::Key_Escape); // disarms, and clears nothing
        QCOMPARE(open.bench.session().selected, chosen);
    }
};

KVSCOPE_WINDOW_TEST(WindowLassoTest)
#include "window_lasso_test.moc"
