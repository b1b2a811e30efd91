// The menu View > Panels: its marks tell which panels are in sight, and a panel behind another tab counts as out of
// sight.
#include "app/window/docks/dock_layout.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QSettings>

using namespace kvscope;
using kvscope::testing::OpenWindow;

class PanelsMenuTest : public QObject {
    Q_OBJECT

    static QAction* actionOf(const OpenWindow& open, const PanelDock* dock) {
        for (QAction* action : open.window.findChildren<QAction*>())
            if (action->text() == dock->windowTitle() && action != dock->toggleViewAction()) return action;
        return nullptr;
    }
    static bool inSight(const PanelDock* dock) { return !dock->visibleRegion().isEmpty(); }

private slots:
    void init() { QSettings().clear(); }

    void aHiddenPanelComesBack() {
        OpenWindow open;
        PanelDock* why = open.window.docks()->dock("why");
        QAction* action = actionOf(open, why);
        QVERIFY(action->isChecked());
        why->close();
        QVERIFY(!action->isChecked());
        action->trigger();
        QTRY_VERIFY(inSight(why));
        QVERIFY(action->isChecked());
    }

    void aPanelBehindATabComesToTheFront() {
        OpenWindow open;
        PanelDock* front = open.window.docks()->dock("parameters");
        PanelDock* behind = open.window.docks()->dock("explanation");
        QVERIFY(inSight(front) && !inSight(behind) && open.window.tabifiedDockWidgets(front).contains(behind));
        QAction* action = actionOf(open, behind);
        QVERIFY(!action->isChecked());
        action->trigger();
        QTRY_VERIFY(inSight(behind) && !inSight(front));
        QVERIFY(action->isChecked() && !actionOf(open, front)->isChecked());
        action->trigger();
        QTRY_VERIFY(behind->isHidden() && inSight(front));
        QVERIFY(!action->isChecked());
    }
};

KVSCOPE_WINDOW_TEST(PanelsMenuTest)
#include "panels_menu_test.moc"
