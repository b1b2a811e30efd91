// Where panels stand: hidden, floating, kept in the settings, folded in a narrow window, and arranged anew whenever the
// window gets another size or layout, in any order with what builds its chrome anew.
#include "app/window/docks/dock_desk.h"
#include "app/window/window_actions.h"
#include "tests/app/window_fixture.h"

#include <QAction>
#include <QScrollArea>
#include <QSettings>
#include <QToolButton>

#include <array>
#include <cmath>
#include <map>

using namespace kvscope;
using kvscope::testing::OpenWindow;

class WindowDocksTest : public QObject {
    Q_OBJECT

    static void look(OpenWindow& open, ThemeChoice theme) {
        open.bench.change([&](Session& s) { s.look.theme = theme; }, "Look");
        QTest::qWait(20);
    }

    /// A canvas that has its size draws something: the arrangement is laid out, not only remembered.
    static int drawnCanvases(const OpenWindow& open) {
        int drawn = 0;
        for (const ViewDock* dock : open.window.canvases()->docks())
            drawn += dock->isVisible() && dock->canvas()->canvas()->height() > 20 && !dock->canvas()->canvas()->scene().items.empty();
        return drawn;
    }

private slots:
    void initTestCase() {
        QCoreApplication::setApplicationName("KVScope docks test");
        QCoreApplication::setOrganizationName("KVScope test");
    }
    void init() { QSettings().clear(); }

    void anotherWidthThenAnotherTheme_data() {
        QTest::addColumn<int>("layout");
        for (const auto& [name, layout] : {std::pair{"explore", WindowLayout::ExploreHead}, {"compare", WindowLayout::ComparePolicies},
                                           {"teach", WindowLayout::Teach}, {"model", WindowLayout::WholeModel}})
            QTest::newRow(name) << static_cast<int>(layout);
    }
    void anotherWidthThenAnotherTheme() {
        // Docks that were moved while Qt laid the window out were freed under its feet: a crash at the next layout.
        QFETCH(int, layout);
        OpenWindow open;
        open.bench.change([&](Session& s) { s.layout = static_cast<WindowLayout>(layout); }, "Layout");
        ThemeChoice theme = ThemeChoice::Light;
        for (const QSize size : {QSize(1280, 800), QSize(1440, 900), QSize(1920, 1080), QSize(1300, 860)}) {
            QSettings().clear(); // every arrangement from its default
            open.window.resize(size);
            QTest::qWait(60);
            QVERIFY2(drawnCanvases(open) >= 1, qPrintable(QString("%1 x %2").arg(size.width()).arg(size.height())));
            theme = theme == ThemeChoice::Light ? ThemeChoice::Dark : ThemeChoice::Light;
            look(open, theme);
            QVERIFY2(drawnCanvases(open) >= 1, qPrintable(QString("%1 x %2, other look").arg(size.width()).arg(size.height())));
        }
    }

    void everyLayoutFollowsEveryOther() {
        OpenWindow open;
        const std::array layouts = {WindowLayout::ExploreHead, WindowLayout::ComparePolicies, WindowLayout::Teach, WindowLayout::WholeModel};
        int width = 0;
        for (const WindowLayout from : layouts)
            for (const WindowLayout to : layouts) {
                open.bench.change([&](Session& s) { s.layout = from; }, "Layout");
                open.window.resize(std::array{1280, 1440, 1920}[width++ % 3], 900); // before the first one is arranged
                open.bench.change([&](Session& s) { s.layout = to; }, "Layout");
                QTest::qWait(20);
                QVERIFY(drawnCanvases(open) >= 1);
            }
        look(open, ThemeChoice::Dark);
        QVERIFY(drawnCanvases(open) >= 1);
    }

    void noPanelIsWiderThanItsPlace_data() {
        QTest::addColumn<int>("width");
        for (const int width : {1280, 1440})
            QTest::addRow("%d", width) << width;
    }
    void noPanelIsWiderThanItsPlace() {
        QFETCH(int, width);
        OpenWindow open({width, 800});
        for (const Policy* policy : allPolicies()) {
            open.bench.change([&](Session& s) { s.panes[0].policy = PolicySpec::parse(policy->card().id); s.activePane = 0; }, "Policy");
            for (const char* id : {"explanation", "why", "parameters", "fidelity"}) {
                open.window.docks()->dock(id)->present();
                QTest::qWait(5);
                const auto* area = open.window.docks()->dock(id)->findChild<QScrollArea*>("panelScroll");
                const int needed = area->widget()->minimumSizeHint().width(), there = area->viewport()->width();
                QVERIFY2(needed <= there, qPrintable(QString("%1: %2 needs %3 of %4 pixels").arg(policy->card().id.c_str(), id).arg(needed).arg(there)));
            }
        }
    }

    void aFloatingPanelIsDockedByAnotherArrangement() {
        OpenWindow open;
        PanelDock* overlap = open.window.docks()->dock("overlap");
        overlap->setFloating(true);
        open.window.actions()->byName("resetPanels")->trigger();
        QVERIFY(!overlap->isFloating());
        QTRY_VERIFY(overlap->isVisible());
        look(open, ThemeChoice::Dark);
        QVERIFY(drawnCanvases(open) >= 1);
    }

    void panelsHideFloatAndComeBack() {
        OpenWindow open;
        PanelDock* why = open.window.docks()->dock("why");
        QVERIFY(why->isVisible());
        QTest::mouseClick(why->titleBarWidget()->findChild<QToolButton*>("hideDock"), Qt::LeftButton);
        QVERIFY(!why->isVisible());
        why->toggleViewAction()->trigger();
        QVERIFY(why->isVisible());
        PanelDock* overlap = open.window.docks()->dock("overlap");
        QTest::mouseClick(overlap->titleBarWidget()->findChild<QToolButton*>("floatDock"), Qt::LeftButton);
        QVERIFY(overlap->isFloating() && overlap->isVisible());
        QTest::qWait(200); // its OpenGL objects are made anew in the new window
        CanvasWidget* canvas = overlap->findChild<CanvasWidget*>();
        const QImage image = canvas->grabFramebuffer();
        QVERIFY(image.pixelColor(2, 2) == QColor(chrome().canvas.r, chrome().canvas.g, chrome().canvas.b));
        overlap->setFloating(false);
        QVERIFY(!overlap->isFloating());
        QTest::qWait(50);
    }

    void theArrangementIsKept() {
        {
            OpenWindow open;
            open.window.docks()->dock("capture")->close();
            open.window.addDockWidget(Qt::LeftDockWidgetArea, open.window.docks()->dock("fidelity"));
            open.window.close();
        }
        OpenWindow again;
        QTRY_VERIFY(again.window.docks()->dock("capture")->isHidden());
        QCOMPARE(again.window.dockWidgetArea(again.window.docks()->dock("fidelity")), Qt::LeftDockWidgetArea);
        again.window.actions()->byName("resetPanels")->trigger();
        QVERIFY(again.window.docks()->dock("capture")->isVisible());
        QCOMPARE(again.window.dockWidgetArea(again.window.docks()->dock("fidelity")), Qt::RightDockWidgetArea);
    }

    // A theme or a scale exchanges what the docks hold; each keeps its place's size.
    void anotherLookLeavesTheSizes_data() {
        QTest::addColumn<int>("width");
        for (const int width : {1280, 1440})
            QTest::newRow(qPrintable(QString::number(width))) << width;
    }
    void anotherLookLeavesTheSizes() {
        QFETCH(int, width);
        OpenWindow open({width, 860});
        const auto sizeOf = [&](const char* id) { return open.window.docks()->dock(id)->size(); };
        QTRY_COMPARE(sizeOf("parameters").width(), width == 1280 ? 288 : 312); // arranged
        QVERIFY(!open.framesWhenStill().empty());
        std::map<const char*, QSize> before;
        for (const char* id : {"parameters", "fidelity", "overlap", "token_strip"})
            before[id] = sizeOf(id);
        const auto comeBack = [&] {
            return std::all_of(before.begin(), before.end(), [&](const auto& one) {
                const QSize now = sizeOf(one.first);
                return now.width() == one.second.width() && std::abs(now.height() - one.second.height()) <= 26; // a row of tabs
            });
        };
        for (const ThemeChoice theme : {ThemeChoice::Dark, ThemeChoice::Light, ThemeChoice::Dark, ThemeChoice::Light}) {
            look(open, theme);
            QTRY_VERIFY(comeBack());
        }
        open.bench.change([](Session& s) { s.look.scale = 1.25; }, "Scale");
        QTRY_COMPARE(sizeOf("parameters").width(), 360); // 288 logical pixels: both are narrow windows now
        open.bench.change([](Session& s) { s.look.scale = 1; }, "Scale");
        QTRY_COMPARE(sizeOf("parameters").width(), before["parameters"].width());
    }

    void aNarrowWindowFoldsTheLeftAndTabsTheRow() {
        OpenWindow open({1280, 800});
        QTRY_VERIFY(open.window.docks()->dock("capture")->isHidden());
        QVERIFY(open.window.tabifiedDockWidgets(open.window.docks()->dock("overlap")).contains(open.window.docks()->dock("metrics")));
        QTest::mouseClick(open.window.findChild<QToolButton*>("unfold"), Qt::LeftButton);
        QVERIFY(open.window.docks()->dock("capture")->isVisible());
        open.window.resize(1440, 900);
        const auto standsAlone = [&] { // hidden docks may share its place
            const QList<QDockWidget*> tabs = open.window.tabifiedDockWidgets(open.window.docks()->dock("overlap"));
            return std::none_of(tabs.begin(), tabs.end(), [](const QDockWidget* dock) { return dock->isVisible(); });
        };
        QTRY_VERIFY(standsAlone());
    }
};

QTEST_MAIN(WindowDocksTest)
#include "window_docks_test.moc"
