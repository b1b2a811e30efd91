// Where panels stand: hidden, floating, kept in the settings, folded in a narrow window, and arranged anew whenever the
// window gets another size or layout, in any order with what builds its chrome anew.
#include "app/window/actions/window_actions.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/style/window_size.h"
#include "core/policies/policy.h"
#include "tests/app/drag_separator.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QTabBar>
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
        open.arrange();
    }

    /// A canvas that has its size draws something: the arrangement is laid out, not only remembered.
    static int drawnCanvases(const OpenWindow& open) {
        int drawn = 0;
        for (const ViewDock* dock : open.window.canvases()->docks())
            drawn += dock->isVisible() && dock->canvas()->canvas()->height() > 20 &&
                     !dock->canvas()->canvas()->scene().items.empty();
        return drawn;
    }

private slots:
    void initTestCase() {
        QApplication::setStyle(makeChromeStyle()); // as the program does
    }
    void init() { QSettings().clear(); }

    void anotherWidthThenAnotherTheme_data() {
        QTest::addColumn<int>("layout");
        for (const auto& [name, layout] : {std::pair{"explore", WindowLayout::ExploreHead},
                                           {"compare", WindowLayout::ComparePolicies},
                                           {"teach", WindowLayout::Teach},
                                           {"model", WindowLayout::WholeModel}})
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
            open.arrange();
            QVERIFY2(drawnCanvases(open) >= 1, qPrintable(QString("%1 x %2").arg(size.width()).arg(size.height())));
            theme = theme == ThemeChoice::Light ? ThemeChoice::Dark : ThemeChoice::Light;
            look(open, theme);
            QVERIFY2(drawnCanvases(open) >= 1,
                     qPrintable(QString("%1 x %2, other look").arg(size.width()).arg(size.height())));
        }
    }

    void everyLayoutFollowsEveryOther() {
        OpenWindow open;
        const std::array layouts = {WindowLayout::ExploreHead, WindowLayout::ComparePolicies, WindowLayout::Teach,
                                    WindowLayout::WholeModel};
        int width = 0;
        for (const WindowLayout from : layouts)
            for (const WindowLayout to : layouts) {
                open.bench.change([&](Session& s) { s.layout = from; }, "Layout");
                const QSize wanted(std::array{1280, 1440, 1920}[width++ % 3], 900);
                open.window.resize(wanted); // before the first one is arranged
                open.bench.change([&](Session& s) { s.layout = to; }, "Layout");
                open.arrange();
                QVERIFY(drawnCanvases(open) >= 1 && open.window.size() == wanted);
            }
        look(open, ThemeChoice::Dark);
        QVERIFY(drawnCanvases(open) >= 1);
    }

    void noPanelIsWiderThanItsPlace_data() {
        QTest::addColumn<int>("width");
        for (const int width : {1280, 1440}) QTest::addRow("%d", width) << width;
    }
    void noPanelIsWiderThanItsPlace() {
        QFETCH(int, width);
        OpenWindow open({width, 800});
        for (const Policy* policy : allPolicies()) {
            open.bench.change(
                [&](Session& s) {
                    s.panes[0].policy = PolicySpec::parse(policy->card().id);
                    s.activePane = 0;
                },
                "Policy");
            for (const char* id : {"explanation", "why", "parameters", "fidelity"}) {
                open.window.docks()->dock(id)->present();
                open.arrange();
                const auto* area = open.window.docks()->dock(id)->findChild<QScrollArea*>("panelScroll");
                const int needed = area->widget()->minimumSizeHint().width(), there = area->viewport()->width();
                QVERIFY2(needed <= there, qPrintable(QString("%1: %2 needs %3 of %4 pixels")
                                                         .arg(policy->card().id.c_str(), id)
                                                         .arg(needed)
                                                         .arg(there)));
            }
        }
    }

    // At an interface scale of 1.5 a screen of 1920 x 1080 is 720 logical pixels high.
    void everyLayoutFitsALowScreen() {
        OpenWindow open({1920, 1080});
        open.bench.change([&](Session& s) { s.look.scale = 1.5; }, "Scale");
        for (const WindowLayout layout : {WindowLayout::WholeModel, WindowLayout::Teach, WindowLayout::ComparePolicies,
                                          WindowLayout::ExploreHead}) {
            open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
            open.window.resize(1920, 1080);
            open.arrange();
            QString least;
            for (const PanelDock* dock : open.window.docks()->all())
                if (!dock->isHidden())
                    least += QString("%1 %2; ").arg(dock->id()).arg(dock->minimumSizeHint().height());
            QVERIFY2(open.window.height() <= 1080,
                     qPrintable(QString("%1 pixels: %2").arg(open.window.height()).arg(least)));
        }
    }

    void aTabNamesItsViewOnce() {
        OpenWindow open({1440, 900});
        open.bench.change([](Session& s) { s.layout = WindowLayout::ExploreHead; }, "Layout");
        open.arrange();
        const auto titleIsShown = [&](const char* id) {
            return open.window.docks()->dock(id)->findChild<QLabel*>("viewTitle")->isVisible();
        };
        PanelDock* strip = open.window.docks()->dock("token_strip");
        QVERIFY(strip->hasTabs() && strip->isVisible());
        QTRY_VERIFY(!titleIsShown("token_strip"));
        QTRY_VERIFY(titleIsShown("attention_map"));
        strip->setFloating(true);
        QTRY_VERIFY(titleIsShown("token_strip"));
        strip->setFloating(false);
        QTRY_VERIFY(strip->hasTabs() && !titleIsShown("token_strip"));
        for (const char* other : {"overlap", "error_difference", "metrics"})
            open.window.docks()->dock(other)->close(); // the last tab goes with them
        QTRY_VERIFY(!strip->hasTabs() && titleIsShown("token_strip"));
    }

    void allPoliciesAndTheButtonThatAddsOneAreInSight() {
        OpenWindow open({1440, 900});
        for (const WindowLayout layout : {WindowLayout::ExploreHead, WindowLayout::ComparePolicies}) {
            open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
            for (const std::size_t count : {std::size_t{3}, std::size_t{4}}) {
                open.bench.change([&](Session& s) { s.panes.resize(count, s.panes.front()); }, "Panes");
                open.arrange();
                const PanelDock* dock = open.window.docks()->dock("panes");
                const auto* add = dock->findChild<QPushButton*>("addPolicy");
                QVERIFY(add->visibleRegion().boundingRect() == add->rect());
                const auto* rows = dock->findChild<QScrollArea*>();
                QVERIFY2(rows->viewport()->height() >= rows->widget()->sizeHint().height(),
                         qPrintable(QString("%1 panes: %2 of %3 pixels")
                                        .arg(count)
                                        .arg(rows->viewport()->height())
                                        .arg(rows->widget()->sizeHint().height())));
            }
        }
    }

    // Bars that the window uses again had a white line in the dark theme.
    void tabsStandOnTheGroundOfTheWindow() {
        OpenWindow open;
        look(open, ThemeChoice::Dark);
        for (const WindowLayout layout :
             {WindowLayout::ExploreHead, WindowLayout::Teach, WindowLayout::ComparePolicies}) {
            open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
            open.arrange();
            int seen = 0;
            const QImage image = open.window.grab().toImage();
            for (QTabBar* bar : open.window.findChildren<QTabBar*>()) {
                const int beyond = bar->count() > 0 ? bar->tabRect(bar->count() - 1).right() + 4 : bar->width();
                if (!bar->visibleRegion().contains(QPoint(beyond, 0))) continue;
                ++seen;
                const QPoint corner = bar->mapTo(&open.window, QPoint(beyond, 0));
                for (int y = 0; y < bar->height(); ++y)
                    QVERIFY2(image.pixelColor(corner + QPoint(0, y)) == qColor(chrome().window),
                             qPrintable(QString("row %1 of %2: %3")
                                            .arg(y)
                                            .arg(bar->height())
                                            .arg(image.pixelColor(corner + QPoint(0, y)).name())));
            }
            QVERIFY(seen > 0);
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
        open.window.docks()->open(why);
        QVERIFY(why->isVisible());
        PanelDock* overlap = open.window.docks()->dock("overlap");
        QTest::mouseClick(overlap->titleBarWidget()->findChild<QToolButton*>("floatDock"), Qt::LeftButton);
        QVERIFY(overlap->isFloating() && overlap->isVisible());
        open.finish();
        CanvasWidget* canvas = overlap->findChild<CanvasWidget*>();
        const QImage image = canvas->picture();
        QVERIFY(image.pixelColor(2, 2) == QColor(chrome().canvas.r, chrome().canvas.g, chrome().canvas.b));
        overlap->setFloating(false);
        QVERIFY(!overlap->isFloating());
        open.arrange();
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
        for (const int width : {1280, 1440}) QTest::newRow(qPrintable(QString::number(width))) << width;
    }
    void anotherLookLeavesTheSizes() {
        QFETCH(int, width);
        OpenWindow open({width, 860});
        const auto sizeOf = [&](const char* id) { return open.window.docks()->dock(id)->size(); };
        QTRY_COMPARE(sizeOf("parameters").width(), width == 1280 ? 288 : 312); // arranged
        QVERIFY(!open.framesWhenStill().empty());
        std::map<const char*, QSize> before;
        for (const char* id : {"parameters", "fidelity", "overlap", "token_strip"}) before[id] = sizeOf(id);
        const auto comeBack = [&] {
            return std::all_of(before.begin(), before.end(), [&](const auto& one) {
                const QSize now = sizeOf(one.first);
                return now.width() == one.second.width() &&
                       std::abs(now.height() - one.second.height()) <= 26; // a row of tabs
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

    void spaceIsSharedAnewUnlessASeparatorWasMoved() {
        OpenWindow open({1440, 860});
        const auto widthOf = [&](const char* id) { return open.window.docks()->dock(id)->width(); };
        open.bench.change([](Session& s) { s.layout = WindowLayout::ExploreHead; }, "Layout");
        const auto isHalf = [&] { // the map beside the pane
            return std::abs(widthOf("attention_map") - open.window.canvases()->width()) <= 40;
        };
        QTRY_VERIFY(isHalf());
        open.window.resize(1800, 860); // the same arrangement
        QTRY_VERIFY(isHalf());
        // The separator between the map and the pane, by hand.
        const PanelDock* map = open.window.docks()->dock("attention_map");
        kvscope::testing::dragSeparator(open, *map, {-40, -80, -120});
        QTRY_VERIFY(!isHalf());
        const int chosen = widthOf("attention_map");
        open.window.resize(1780, 860);
        open.arrange();
        QVERIFY2(!isHalf() && std::abs(widthOf("attention_map") - chosen) <= 30,
                 qPrintable(QString::number(widthOf("attention_map"))));
        open.bench.change([](Session& s) { s.layout = WindowLayout::Teach; }, "Layout"); // and back: it is remembered
        QTRY_VERIFY(open.window.docks()->dock("lesson")->isVisible());
        open.bench.change([](Session& s) { s.layout = WindowLayout::ExploreHead; }, "Layout");
        QTRY_VERIFY(map->isVisible());
        open.arrange();
        QVERIFY2(std::abs(widthOf("attention_map") - chosen) <= 30,
                 qPrintable(QString::number(widthOf("attention_map"))));
    }

    // 1920 x 1080 at scale 1.5 and 2560 x 1440 at scale 2 are both 1280 x 720.
    void fourPanesFitAShortWindow() {
        OpenWindow open({1280, 720});
        open.bench.change([](Session& s) { addPane(s, {PolicySpec::parse("subgen"), {}, {}}); }, "Add pane");
        QTRY_COMPARE(open.window.canvases()->panes().size(), std::size_t(4));
        const QWidget* area = open.window.canvases();
        const auto fit = [&] {
            const auto& panes = open.window.canvases()->panes();
            return std::all_of(panes.begin(), panes.end(), [&](const PaneFrame* pane) {
                const QWidget* canvas = pane->canvas()->canvas();
                const QRect there(canvas->mapTo(area, QPoint(0, 0)), canvas->size());
                return canvas->height() >= 130 && area->rect().contains(there) &&
                       canvas->visibleRegion().boundingRect().size() == canvas->size();
            });
        };
        QTRY_VERIFY(fit());
        QCOMPARE(open.window.height(), 720);
        QTRY_VERIFY(!open.window.docks()->dock("token_strip")->visibleRegion().isEmpty());
        QVERIFY(open.window.tabifiedDockWidgets(open.window.docks()->dock("token_strip"))
                    .contains(open.window.docks()->dock("overlap")));
    }

    void aScaleThatDoesNotFitIsTakenBackAndSaid() {
        OpenWindow open({1100, 700});
        open.bench.change([](Session& s) { s.look.scale = 2; }, "Scale");
        QTRY_VERIFY(open.window.width() > 1100); // as far as the screen goes
        const double shown = fittingScale(2, open.window.size());
        QVERIFY(shown < 2);
        QTRY_COMPARE(appearance().scale, shown);
        QTRY_VERIFY(open.window.notices().messages().join(' ').contains(
            QString("shown at %1 %: 200 % needs a window of 2048 × 1280").arg(qRound(100 * shown))));
        QVERIFY(leastWindow(shown).width() <= open.window.width() &&
                leastWindow(shown).height() <= open.window.height());
        open.window.notices().dismiss("scale"); // by its cross
        for (const WindowLayout layout : {WindowLayout::Teach, WindowLayout::ComparePolicies}) {
            open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
            open.arrange();
            QCOMPARE(open.window.notices().messages(), QStringList()); // not said again
        }
        open.bench.change([](Session& s) { s.look.scale = 1; }, "Scale");
        QTRY_COMPARE(appearance().scale, 1.0);
        QTRY_VERIFY(open.window.notices().messages().isEmpty() && open.window.size() == QSize(1100, 700));
    }

    void aNarrowWindowFoldsTheLeftAndTabsTheRow() {
        OpenWindow open({1280, 800});
        QTRY_VERIFY(open.window.docks()->dock("capture")->isHidden());
        QVERIFY(open.window.tabifiedDockWidgets(open.window.docks()->dock("overlap"))
                    .contains(open.window.docks()->dock("metrics")));
        open.window.resize(1440, 900);
        const auto standsAlone = [&] { // hidden docks may share its place
            const QList<QDockWidget*> tabs = open.window.tabifiedDockWidgets(open.window.docks()->dock("overlap"));
            return std::none_of(tabs.begin(), tabs.end(), [](const QDockWidget* dock) { return dock->isVisible(); });
        };
        QTRY_VERIFY(standsAlone());
    }

    /// The row under the panes: overlap and agreement, then which pane serves which query better; numbers as a tab or
    /// beside.
    void theRowComparesPanesQueryByQuery() {
        OpenWindow open;
        const auto dock = [&](const char* id) { return open.window.docks()->dock(id); };
        const auto inFront = [&](const char* id) {
            return dock(id)->isVisible() && !dock(id)->visibleRegion().isEmpty();
        };
        QTRY_VERIFY(inFront("overlap") && inFront("error_difference"));
        const auto standsBeside = [&](const char* left, const char* right) {
            return dock(right)->x() >= dock(left)->x() + dock(left)->width() &&
                   dock(left)->geometry().bottom() == dock(right)->geometry().bottom();
        };
        QVERIFY(standsBeside("overlap", "error_difference"));
        QVERIFY2(dock("error_difference")->height() >= 160,
                 qPrintable(QString::number(dock("error_difference")->height())));
        QVERIFY(open.window.tabifiedDockWidgets(dock("error_difference")).contains(dock("metrics")));
        open.window.resize(1280, 800);
        QTRY_VERIFY(open.window.tabifiedDockWidgets(dock("overlap")).contains(dock("error_difference")));
        QTRY_VERIFY(inFront("overlap") && !inFront("error_difference"));
    }

    // Qt calls a dock behind another tab visible: its view would compute, be explained and be played, and Tab would
    // reach parameters that nobody sees.
    void aDockBehindATabIsOutOfSight() {
        OpenWindow open({1280, 800});
        const auto isShown = [&](const char* id) {
            const std::vector<const View*> shown = open.bench.shownViews();
            return std::find(shown.begin(), shown.end(), &viewById(id)) != shown.end();
        };
        const auto reachable = [&](const char* id) {
            const QList<QWidget*> inside = open.window.docks()->dock(id)->findChildren<QWidget*>();
            return std::any_of(inside.begin(), inside.end(), [](const QWidget* widget) {
                return widget->isVisible() && (widget->focusPolicy() & Qt::TabFocus);
            });
        };
        QTRY_VERIFY(isShown("overlap") && !isShown("error_difference"));
        QVERIFY(reachable("overlap") && !reachable("error_difference"));
        const int height = open.window.docks()->dock("overlap")->height();
        open.window.docks()->dock("error_difference")->present();
        QTRY_VERIFY(isShown("error_difference") && !isShown("overlap"));
        QVERIFY(reachable("error_difference") && !reachable("overlap"));
        open.arrange();
        QCOMPARE(open.window.docks()->dock("error_difference")->height(), height);
    }
};

KVSCOPE_WINDOW_TEST(WindowDocksTest)
#include "window_docks_test.moc"
