// Room for views: one dock has the whole window and gives everything back, a new view opens where it can be read, a
// floating one is larger than its place was, and a key goes from place to place.
#include "app/window/actions/window_actions.h"
#include "app/window/dialogs/export_dialog.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/panels/metrics_table.h"
#include "app/window/widgets/live_number.h"
#include "core/policies/policy.h"
#include "tests/app/drag_separator.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QLineEdit>
#include <QSettings>
#include <QTableView>
#include <QToolButton>

#include <map>
#include <set>
#include <variant>

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

/// The docks and the panes that are in sight, with their places.
std::map<QString, QRect> placesOf(const OpenWindow& open) {
    std::map<QString, QRect> places;
    for (const PanelDock* dock : open.window.docks()->all())
        if (!dock->visibleRegion().isEmpty()) places[dock->id()] = dock->geometry();
    if (open.window.canvases()->isVisible()) places["panes"] = open.window.canvases()->geometry();
    return places;
}

QString named(const std::map<QString, QRect>& places) {
    QStringList names;
    for (const auto& [name, at] : places)
        names += QString("%1 %2,%3 %4x%5").arg(name).arg(at.x()).arg(at.y()).arg(at.width()).arg(at.height());
    return names.join("; ");
}

} // namespace

class WindowPlacesTest : public QObject {
    Q_OBJECT

    static void setLayout(OpenWindow& open, WindowLayout layout) {
        open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
        open.settle();
    }
    static PanelDock* dock(const OpenWindow& open, const char* id) { return open.window.docks()->dock(QString(id)); }
    static void key(OpenWindow& open, Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
        QWidget* focused = QApplication::focusWidget();
        QTest::keyClick(focused ? focused : &open.window, key, modifiers);
        open.arrange();
    }

private slots:
    void initTestCase() {
        QApplication::setStyle(makeChromeStyle()); // as the program does
    }
    void init() { QSettings().clear(); }

    void everyViewCanHaveTheWholeWindow_data() {
        QTest::addColumn<int>("layout");
        QTest::addColumn<QString>("id");
        QTest::newRow("low view") << static_cast<int>(WindowLayout::ComparePolicies) << "overlap";
        QTest::newRow("map") << static_cast<int>(WindowLayout::ExploreHead) << "attention_map";
        QTest::newRow("panel") << static_cast<int>(WindowLayout::ComparePolicies) << "fidelity";
        QTest::newRow("layout without panes") << static_cast<int>(WindowLayout::WholeModel) << "head_grid";
        QTest::newRow("teach") << static_cast<int>(WindowLayout::Teach) << "merge_tree";
    }
    void everyViewCanHaveTheWholeWindow() {
        QFETCH(int, layout);
        QFETCH(QString, id);
        OpenWindow open({1440, 900});
        setLayout(open, static_cast<WindowLayout>(layout));
        PanelDock* one = open.window.docks()->dock(id);
        const auto before = placesOf(open);
        QVERIFY2(before.contains(id), qPrintable(named(before)));
        const auto ways = {std::function<void()>(
                               [&] { QTest::mouseDClick(one->titleBarWidget(), Qt::LeftButton, {}, QPoint(3, 14)); }),
                           std::function<void()>([&] {
                               QTest::mouseClick(one->titleBarWidget()->findChild<QToolButton*>("maximiseDock"),
                                                 Qt::LeftButton);
                           })};
        for (const auto& maximise : ways) {
            maximise();
            open.arrange();
            const auto during = placesOf(open);
            QVERIFY2(during.size() == 1 && during.contains(id), qPrintable(named(during)));
            QVERIFY2(one->width() >= 1380 && one->height() >= 700, qPrintable(named(during)));
            key(open, Qt::Key_Escape);
            open.arrange();
            QVERIFY2(placesOf(open) == before, qPrintable(named(before) + "\nnow " + named(placesOf(open))));
            maximise();
            open.arrange();
            maximise();
            open.arrange();
            QVERIFY2(placesOf(open) == before, qPrintable(named(placesOf(open))));
        }
        QCOMPARE(open.window.size(), QSize(1440, 900));
    }

    void aPaneHasTheWholeWindowByADoubleClickAndByAKey() {
        OpenWindow open({1440, 900});
        const auto before = placesOf(open);
        QTest::mouseDClick(open.pane(1)->header(), Qt::LeftButton, {}, QPoint(120, 10));
        open.arrange();
        QVERIFY2(placesOf(open).size() == 1 && open.pane(1)->isVisible() && !open.pane(0)->isVisible(),
                 qPrintable(named(placesOf(open))));
        QVERIFY(open.pane(1)->width() >= 1380 && open.pane(1)->height() >= 700);
        key(open, Qt::Key_Escape);
        QVERIFY2(placesOf(open) == before && open.pane(0)->isVisible(), qPrintable(named(placesOf(open))));
        open.pane(2)->canvas()->canvas()->setFocus();
        key(open, Qt::Key_M);
        QVERIFY2(placesOf(open).size() == 1, qPrintable(named(placesOf(open))));
        key(open, Qt::Key_M);
        QVERIFY2(placesOf(open) == before, qPrintable(named(placesOf(open))));
    }

    void aThemeKeepsTheMaximisedViewAndALayoutGivesBack() {
        OpenWindow open({1440, 900});
        const auto before = placesOf(open);
        open.window.docks()->maximise(dock(open, "token_strip"));
        open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Dark; }, "Theme");
        open.arrange();
        QVERIFY2(placesOf(open).size() == 1, qPrintable(named(placesOf(open))));
        key(open, Qt::Key_Escape);
        QVERIFY2(placesOf(open) == before, qPrintable(named(placesOf(open))));
        open.window.docks()->maximise(dock(open, "token_strip"));
        setLayout(open, WindowLayout::WholeModel);
        QVERIFY2(placesOf(open).contains("head_grid") && placesOf(open).contains("curves"),
                 qPrintable(named(placesOf(open))));
        setLayout(open, WindowLayout::ComparePolicies);
        QVERIFY2(placesOf(open) == before, qPrintable(named(placesOf(open))));
    }

    void aMaximisedViewThatIsClosedOrLeftWithTheWindowHidesNothingElse() {
        std::map<QString, QRect> before;
        {
            OpenWindow open({1440, 900});
            before = placesOf(open);
            PanelDock* overlap = dock(open, "overlap");
            open.window.docks()->maximise(overlap);
            open.arrange();
            QTest::mouseClick(overlap->titleBarWidget()->findChild<QToolButton*>("hideDock"), Qt::LeftButton);
            open.arrange();
            QVERIFY2(overlap->isHidden() && placesOf(open).size() >= before.size() - 1,
                     qPrintable(named(placesOf(open))));
            overlap->show();
            open.arrange();
            open.window.docks()->maximise(overlap);
            open.arrange();
            open.window.close();
        }
        OpenWindow again({1440, 900});
        for (const auto& [id, at] : before) QVERIFY2(placesOf(again).contains(id), qPrintable(named(placesOf(again))));
    }

    void aViewOpensWhereItCanBeRead_data() {
        QTest::addColumn<int>("layout");
        QTest::addColumn<int>("width");
        for (const int width : {1280, 1440, 1920}) {
            QTest::addRow("compare %d", width) << static_cast<int>(WindowLayout::ComparePolicies) << width;
            QTest::addRow("explore %d", width) << static_cast<int>(WindowLayout::ExploreHead) << width;
            QTest::addRow("teach %d", width) << static_cast<int>(WindowLayout::Teach) << width;
            QTest::addRow("model %d", width) << static_cast<int>(WindowLayout::WholeModel) << width;
        }
    }
    void aViewOpensWhereItCanBeRead() {
        QFETCH(int, layout);
        QFETCH(int, width);
        const QSize size(width, width == 1280 ? 800 : width == 1440 ? 900 : 1080);
        OpenWindow open(size);
        setLayout(open, static_cast<WindowLayout>(layout));
        const int paneWidth = open.pane(0)->width();
        for (const char* id : {"variant_diff", "theory", "overlap"}) {
            PanelDock* one = dock(open, id);
            one->hide();
            QVERIFY(one->visibleRegion().isEmpty());
            open.window.docks()->open(one);
            open.arrange();
            QVERIFY2(!one->visibleRegion().isEmpty() && one->height() >= 200 && one->width() >= 300,
                     qPrintable(QString("%1: %2").arg(id, named(placesOf(open)))));
            QVERIFY2(one->isAncestorOf(QApplication::focusWidget()), id);
            if (static_cast<WindowLayout>(layout) == WindowLayout::ComparePolicies)
                QVERIFY2(open.pane(0)->width() >= paneWidth && open.pane(0)->height() >= 230,
                         qPrintable(named(placesOf(open))));
        }
        QCOMPARE(open.window.size(), size);
    }

    void fourPanesKeepLegendAndNumbers() {
        OpenWindow open({1440, 900});
        open.bench.change([](Session& s) { addPane(s, {PolicySpec::parse("subgen"), {}, {}}); }, "Add pane");
        open.waitForResults();
        for (std::size_t i = 0; i < 4; ++i) {
            CanvasWidget* canvas = open.pane(i)->canvas()->canvas();
            QVERIFY2(canvas->height() >= 180, qPrintable(QString::number(canvas->height())));
            int words = 0; // legend below, tick labels beside
            for (const Drawable& item : canvas->scene().items)
                if (const auto* text = std::get_if<TextItem>(&item))
                    words += text->text == "kept" || text->text == "evicted";
            QVERIFY2(i != 0 || words == 2, qPrintable(QString::number(words)));
        }
        QCOMPARE(open.window.size(), QSize(1440, 900));
    }

    void aLargerScreenGivesLargerPictures() {
        OpenWindow open({1440, 900});
        const int before = open.pane(0)->width();
        open.window.resize(1920, 1080);
        open.arrange();
        QVERIFY2(open.pane(0)->width() >= before + 150, // three panes share 480 pixels
                 qPrintable(QString("%1, then %2").arg(before).arg(open.pane(0)->width())));
    }

    void aNumberIsWholeOrNotThere() {
        OpenWindow open({1280, 800});
        open.bench.change([](Session& s) { s.selected = {100, 101}; }, "Selection");
        open.settle();
        for (const int width : {240, 260, 300, 340, 420}) {
            PaneHeader* header = open.pane(0)->header();
            header->resize(width, header->height());
            open.arrange();
            header->resize(width, header->height());
            int shown = 0;
            for (const char* id : {"paneError", "paneKept", "paneHits"}) {
                const auto* number = header->findChild<QLabel*>(id);
                if (!number->isVisible()) continue;
                ++shown;
                QVERIFY2(number->width() >= number->fontMetrics().horizontalAdvance(number->text()) &&
                             number->geometry().right() < width,
                         qPrintable(QString("%1 at %2: %3 of %4 pixels")
                                        .arg(id)
                                        .arg(width)
                                        .arg(number->width())
                                        .arg(number->fontMetrics().horizontalAdvance(number->text()))));
            }
            QVERIFY(shown >= 2 && header->findChild<QLabel*>("paneError")->isVisible());
            int names = 0;
            for (const QLabel* label : header->findChildren<QLabel*>())
                names += label->isVisible() && label->property("role") == "quiet" ? 1 : 0;
            const bool hasMass = header->findChildren<LiveNumber*>().at(1)->isVisible();
            QCOMPARE(names, shown + (hasMass ? 1 : 0)); // no number without its name
        }
    }

    void aPolicysNameIsWhole() {
        OpenWindow open({1440, 900});
        const auto* list = dock(open, "panes")->widget();
        QStringList listed;
        for (const QLabel* label : list->findChildren<QLabel*>())
            if (label->isVisible()) listed += label->text();
        QVERIFY2(listed.contains("StreamingLLM") && listed.contains("gaps"), qPrintable(listed.join("; ")));
        for (std::size_t pane = 0; pane < 3; ++pane) {
            const QString name = QString::fromStdString(open.bench.viewInput().panes[pane].policyName);
            bool isShown = false;
            for (const QLabel* label : open.pane(pane)->header()->findChildren<QLabel*>())
                isShown |= label->isVisible() && label->text() == name;
            QVERIFY2(isShown, qPrintable(name));
        }
    }

    void aSeparatorMovesItsTwoNeighbours() {
        OpenWindow open({1440, 900});
        setLayout(open, WindowLayout::ExploreHead);
        const auto widthOf = [&](const char* id) { return dock(open, id)->width(); };
        const int left = widthOf("capture"), right = widthOf("parameters"), map = widthOf("attention_map");
        // Further than the pane can shrink.
        kvscope::testing::dragSeparator(open, *dock(open, "attention_map"), {40, 80, 160, 400});
        QVERIFY2(widthOf("attention_map") > map + 60, qPrintable(QString::number(widthOf("attention_map"))));
        QCOMPARE(widthOf("capture"), left);
        QCOMPARE(widthOf("parameters"), right);
        QVERIFY(dock(open, "capture")->maximumWidth() > 2000); // it can be moved again
    }

    void aFloatingViewIsLargerThanItsPlace() {
        OpenWindow open({1440, 900});
        PanelDock* overlap = dock(open, "overlap");
        auto* button = overlap->titleBarWidget()->findChild<QToolButton*>("floatDock");
        const QSize before = overlap->size();
        QVERIFY2(button->toolTip().startsWith("Float Overlap"), qPrintable(button->toolTip()));
        QTest::mouseClick(button, Qt::LeftButton);
        open.arrange();
        QVERIFY(overlap->isFloating());
        QVERIFY2(overlap->width() > before.width() && overlap->height() >= 440,
                 qPrintable(QString("%1 x %2").arg(overlap->width()).arg(overlap->height())));
        QVERIFY2(button->toolTip().startsWith("Dock Overlap"), qPrintable(button->toolTip()));
        QTest::mouseClick(button, Qt::LeftButton);
        open.arrange();
        QVERIFY(!overlap->isFloating());
    }

    void noTabStopIsFramedWhereThePanesGo() {
        OpenWindow open({1440, 900});
        open.pane(0)->canvas()->canvas()->setFocus();
        setLayout(open, WindowLayout::Teach);
        QVERIFY(!open.window.canvases()->isVisible());
        QCOMPARE(QApplication::focusWidget(), static_cast<QWidget*>(&open.window));
    }

    void tabReachesEveryPaneAndView() {
        OpenWindow open({1440, 900});
        open.bench.change([](Session& s) { s.activePane = 2; }, "Active pane");
        open.settle();
        auto* start = open.window.findChild<QLineEdit*>("budgetTokens");
        start->setFocus();
        std::set<const QWidget*> reached;
        for (int pressed = 0; pressed < 400; ++pressed) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
            reached.insert(QApplication::focusWidget());
            if (start->hasFocus()) break;
        }
        QVERIFY(start->hasFocus()); // once round
        for (const ViewCanvas* canvas : open.window.canvases()->canvases())
            if (!canvas->canvas()->visibleRegion().isEmpty()) // the picture covers what is around it
                QVERIFY2(reached.contains(canvas->canvas()), canvas->view().card().name.c_str());
    }

    void theMiddleGivesTheFocusToTheActivePane() {
        OpenWindow open({1440, 900});
        for (const int pane : {1, 2}) {
            open.window.findChild<QLineEdit*>("budgetTokens")->setFocus();
            open.bench.change([&](Session& s) { s.activePane = pane; }, "Active pane");
            open.window.centralWidget()->setFocus();
            QVERIFY(open.pane(static_cast<std::size_t>(pane))->canvas()->canvas()->hasFocus());
        }
        open.bench.change([](Session& s) { s.panes.clear(); }, "Close all");
        open.settle();
        const QWidget* offered = open.window.findChild<QWidget*>("emptyButton");
        for (int pressed = 0; pressed < 30 && QApplication::focusWidget() != offered; ++pressed) key(open, Qt::Key_F6);
        QCOMPARE(QApplication::focusWidget(), offered);
    }

    void tabLeavesATable() {
        OpenWindow open({1440, 900});
        open.window.docks()->open(dock(open, "metrics"));
        open.settle();
        auto* metrics = open.window.findChild<MetricsTable*>()->findChild<QTableView*>();
        metrics->setFocus();
        key(open, Qt::Key_Tab);
        QVERIFY(!metrics->hasFocus());
        auto* dialog = new DataDialog(open.bench, *open.pane(0)->canvas(), &open.window);
        dialog->show();
        auto* table = dialog->findChild<QTableView*>();
        table->setFocus();
        QTest::keyClick(table, Qt::Key_Tab);
        QVERIFY(dialog->focusWidget() && dialog->focusWidget() != table);
    }

    void aKeyGoesFromPlaceToPlace() {
        OpenWindow open({1440, 900});
        open.pane(0)->canvas()->canvas()->setFocus();
        std::vector<QString> visited;
        const auto here = [&] {
            const PanelDock* at = open.window.docks()->dockOf(QApplication::focusWidget());
            return at ? at->id() : QString("panes");
        };
        do {
            visited.push_back(here());
            key(open, Qt::Key_F6);
            QVERIFY(QApplication::focusWidget() && QApplication::focusWidget()->isVisible());
        } while (here() != "panes" && visited.size() < 30);
        const std::set<QString> once(visited.begin(), visited.end());
        QCOMPARE(once.size(), visited.size());
        for (const char* id : {"panes", "capture", "parameters", "overlap", "token_strip", "error_difference"})
            QVERIFY2(once.contains(id), id);
        key(open, Qt::Key_F6, Qt::ShiftModifier);
        QCOMPARE(here(), visited.back());
        const QWidget* header = dock(open, qPrintable(visited.back()))->titleBarWidget();
        QVERIFY(header->property("active").toBool());
        key(open, Qt::Key_F6);
        QVERIFY(!header->property("active").toBool());
    }
};

KVSCOPE_WINDOW_TEST(WindowPlacesTest)
#include "window_places_test.moc"
