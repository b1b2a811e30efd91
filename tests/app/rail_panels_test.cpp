// A narrow window shows its left side over the pictures, which keep their places.
#include <QtTest>

#include "app/window/docks/dock_layout.h"
#include "app/window/docks/rail_panels.h"
#include "app/window/panels/capture_panel.h"
#include "app/window/panels/lesson_list.h"
#include "app/window/panels/pane_list.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QSettings>
#include <QToolButton>

using namespace kvscope;
using kvscope::testing::OpenWindow;

class RailPanelsTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    void theRailsPanelsLieOverThePictures() {
        OpenWindow open({1280, 720});
        QTRY_VERIFY(open.window.docks()->dock("capture")->isHidden());
        open.arrange();
        const auto panels = [&] { return open.window.findChild<RailPanels*>(); };
        const auto areShown = [&] { return panels() && panels()->isVisible(); };
        const QRect before = open.window.centralWidget()->geometry();
        const auto show = [&] { QTest::mouseClick(open.window.findChild<QToolButton*>("unfold"), Qt::LeftButton); };
        show();
        QVERIFY(areShown() && panels()->findChild<CapturePanel*>() && panels()->findChild<PaneList*>());
        QVERIFY(panels()->isAncestorOf(open.window.focusWidget()));
        QVERIFY(panels()->geometry().intersects(before));
        QTest::mouseClick(panels(), Qt::LeftButton, {}, {100, 4}); // a header
        QVERIFY(areShown());
        open.arrange();
        QCOMPARE(open.window.centralWidget()->geometry(), before);
        show(); // the button folds them again
        QTRY_VERIFY(!panels());
        show();
        QTest::keyClick(open.window.focusWidget(), Qt::Key_Escape);
        QTRY_VERIFY(!panels());
        show();
        QTest::mouseClick(open.window.canvases()->canvases().front()->canvas(), Qt::LeftButton, {}, {500, 300});
        QTRY_VERIFY(!panels());
        show();
        open.window.resize(1440, 900); // the docks have room
        QTRY_VERIFY(!panels() && open.window.docks()->dock("capture")->isVisible());
        open.window.resize(1280, 720);
        QTRY_VERIFY(open.window.docks()->dock("capture")->isHidden());
        open.window.docks()->dock("capture")->show(); // as the View menu does
        show();
        QVERIFY(!areShown() && open.window.docks()->dock("capture")->isHidden());
        QTest::keyClick(&open.window, Qt::Key_3, Qt::ControlModifier);
        open.arrange();
        QWidget* lesson = firstTabStop(open.window.docks()->dock("lesson")->widget());
        QVERIFY(lesson);
        lesson->setFocus();
        show();
        QVERIFY(areShown() && panels()->findChild<LessonList*>());
        QTest::keyClick(open.window.focusWidget(), Qt::Key_Escape);
        QTRY_VERIFY(!panels());
        open.arrange();
        QCOMPARE(open.window.focusWidget(), lesson);
    }
};

KVSCOPE_WINDOW_TEST(RailPanelsTest)
#include "rail_panels_test.moc"
