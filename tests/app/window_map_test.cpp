// The attention map under mouse and keyboard: its colour range and its locked cell, as real events to the whole window.
#include <QDialogButtonBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QWheelEvent>

#include "app/study/regenerating_command.h"
#include "app/study/session_file.h"
#include "app/window/canvas/range_dialog.h"
#include "app/window/docks/dock_layout.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"
#include "views/attention_map/attention_map_data.h"
#include "views/attention_map/attention_map_view.h"
#include "views/common/value_range.h"
#include "views/scene/colour_column.h"

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

QPoint widgetPoint(Point p) {
    return {static_cast<int>(p.x * appearance().scale), static_cast<int>(p.y * appearance().scale)};
}

/// Inside a handle's triangle; left of everything where there is none.
QPoint handleOn(const Scene& scene, PickId pick) {
    for (const Drawable& item : scene.items)
        if (const auto* triangle = std::get_if<PolygonItem>(&item); triangle && triangle->pick == pick)
            return widgetPoint({triangle->points[1].x - 5, triangle->points[1].y});
    return {-1, -1};
}

/// The window with a map in it that has its data.
struct OpenMap : OpenWindow {
    ViewCanvas* map = nullptr;

    OpenMap() {
        bench.change([](Session& s) { s.layout = WindowLayout::ExploreHead; }, "Layout");
        QTest::qWait(150); // until it is arranged
        for (ViewDock* dock : window.canvases()->docks())
            if (dock->canvas()->view().card().id == "attention_map")
                map = dock->canvas();
        waitForMap();
        canvas()->setFocus();
    }
    CanvasWidget* canvas() const { return map->canvas(); }
    std::shared_ptr<const AttentionMapData> data() const {
        return dataAs<AttentionMapData>(bench.viewInput(attentionMapView()));
    }
    /// Until it has its place, too: its cells are those of its pixels then.
    void waitForMap() {
        const auto hasItsSize = [this] {
            return data()->cells.shape[0] ==
                   std::min<std::int64_t>(data()->rowEnd - data()->rowBegin, canvas()->height());
        };
        QTRY_VERIFY_WITH_TIMEOUT(map && map->isVisible() && data() && hasItsSize() &&
                                     !bench.viewInput(attentionMapView()).data.computing &&
                                     !canvas()->scene().plot.contains({0, 0}) && canvas()->scene().plot.width > 50,
                                 20000);
    }
    std::string option(const std::string& id) const {
        return viewOptions(bench.session(), attentionMapView()).text(id);
    }
    QPoint pixelOf(double key, double query) const {
        const Scene& scene = canvas()->scene();
        return widgetPoint({scene.plot.x + scene.plot.width * (key - scene.xMin) / (scene.xMax - scene.xMin),
                            scene.plot.y + scene.plot.height * (query - scene.yMin) / (scene.yMax - scene.yMin)});
    }
    void turnWheel(int notches) const {
        const QPointF at = canvas()->rect().center();
        QWheelEvent event(at, canvas()->mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, {}, Qt::NoScrollPhase,
                          false);
        QCoreApplication::sendEvent(canvas(), &event);
    }
    QPoint handle(PickId pick) const { return handleOn(canvas()->scene(), pick); }
};

} // namespace

class WindowMapTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QCoreApplication::setApplicationName("KVScope map test");
        QCoreApplication::setOrganizationName("KVScope test");
    }
    void init() { QSettings().clear(); }

    // A dock that has just been called in gets its size after it is shown: its cells are those of its own pixels.
    void theCellsAreThoseOfTheDocksPixels() {
        OpenMap open;
        for (const WindowLayout layout : {WindowLayout::ComparePolicies, WindowLayout::WholeModel, WindowLayout::Teach,
                                          WindowLayout::ExploreHead}) {
            open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
            QTest::qWait(100); // until it is arranged
            open.window.docks()->dock("attention_map")->present();
            QTest::qWait(100);
            open.waitForMap();
            QTRY_COMPARE(open.data()->cells.shape[0], std::min<std::int64_t>(1028, open.canvas()->height()));
            QTRY_COMPARE(open.data()->cells.shape[1], std::min<std::int64_t>(1028, open.canvas()->width()));
        }
    }

    void aHandleIsPulledAndThatIsOneStepOfUndo() {
        OpenMap open;
        QCOMPARE(open.option("range"), std::string("auto"));
        const QPoint from = open.handle(kHighHandle);
        QVERIFY(from.x() > 0);
        const int pull = static_cast<int>(open.canvas()->scene().plot.height / 3 * appearance().scale);
        QTest::mousePress(open.canvas(), Qt::LeftButton, {}, from);
        for (int step = 1; step <= 6; ++step) {
            QTest::mouseMove(open.canvas(), from + QPoint(0, pull * step / 6));
            QVERIFY(step < 2 || open.option("range") != "auto"); // live
        }
        QTest::mouseRelease(open.canvas(), Qt::LeftButton, {}, from + QPoint(0, pull));
        const ValueRange range = ValueRange::parse(open.option("range"));
        QCOMPARE(range.quantity, std::string("weight"));
        QCOMPARE(*range.low, 1e-4);
        QVERIFY2(std::abs(std::log10(*range.high) + 2) < 0.1, open.option("range").c_str()); // a third of six decades
        QVERIFY(std::abs(open.handle(kHighHandle).y() - (from.y() + pull)) <= 2);
        QVERIFY(open.bench.session().look.ranges.count("attention_map") == 0); // the map was not panned
        QCOMPARE(open.bench.history().undoLabel(), std::string("Colour range"));
        open.bench.undo();
        QCOMPARE(open.option("range"), std::string("auto"));
        open.bench.redo();
        QTest::mouseDClick(open.canvas(), Qt::LeftButton, {}, open.handle(kHighHandle));
        QCOMPARE(open.option("range"), std::string("auto"));
    }

    // Every other view with a colour column has the same handles, keys and double click.
    void otherColumnsArePulledTheSameWay_data() {
        QTest::addColumn<QString>("view");
        QTest::addColumn<int>("layout");
        QTest::newRow("head grid") << "head_grid" << static_cast<int>(WindowLayout::WholeModel);
        QTest::newRow("key projection") << "key_projection" << static_cast<int>(WindowLayout::ExploreHead);
    }

    void otherColumnsArePulledTheSameWay() {
        QFETCH(QString, view);
        QFETCH(int, layout);
        const std::string id = view.toStdString();
        OpenWindow open;
        open.bench.change(
            [&](Session& s) {
                s.layout = static_cast<WindowLayout>(layout);
                setViewOption(s, "key_projection", "colour_by", "norm");
            },
            "Layout");
        ViewCanvas* canvas = id == "key_projection" ? open.pane(0)->canvas() : nullptr;
        for (ViewDock* dock : open.window.canvases()->docks())
            if (dock->canvas()->view().card().id == id)
                canvas = dock->canvas();
        QVERIFY(canvas);
        const auto handle = [&] { return handleOn(canvas->canvas()->scene(), kLowHandle); };
        QTRY_VERIFY_WITH_TIMEOUT(handle().x() > 0, 20000);
        const View& shown = viewById(id);
        QTRY_VERIFY_WITH_TIMEOUT(!open.bench.viewInput(shown).data.computing, 20000);
        const auto range = [&] { return viewOptions(open.bench.session(), shown).text("range"); };
        const auto selected = open.bench.session().selected;
        const QPoint from = handle();
        QTest::mousePress(canvas->canvas(), Qt::LeftButton, {}, from);
        for (int step = 1; step <= 5; ++step)
            QTest::mouseMove(canvas->canvas(), from - QPoint(0, 6 * step));
        QTest::mouseRelease(canvas->canvas(), Qt::LeftButton, {}, from - QPoint(0, 30));
        QVERIFY2(ValueRange::parse(range()).isChosen(), range().c_str());
        QVERIFY(std::abs(handle().y() - (from.y() - 30)) <= 3);
        QVERIFY(open.bench.session().look.ranges.count(id) == 0 && open.bench.session().selected == selected);
        QTest::mouseDClick(canvas->canvas(), Qt::LeftButton, {}, handle());
        QCOMPARE(range(), std::string("auto"));
        canvas->canvas()->setFocus();
        QTest::keyClick(canvas->canvas(), Qt::Key_PageUp, Qt::ShiftModifier);
        QVERIFY2(ValueRange::parse(range()).isChosen(), range().c_str());
    }

    void keysMoveTheEnds() {
        OpenMap open;
        QTest::keyClick(open.canvas(), Qt::Key_PageDown);
        const double once = *ValueRange::parse(open.option("range")).high;
        QVERIFY(once < 1 && once > 0.5);
        QTest::keyClick(open.canvas(), Qt::Key_PageUp, Qt::ShiftModifier);
        QVERIFY(*ValueRange::parse(open.option("range")).low > 1e-4);
        QCOMPARE(*ValueRange::parse(open.option("range")).high, once);
        open.bench.undo(); // each key that was let go is a step
        QCOMPARE(*ValueRange::parse(open.option("range")).low, 1e-4);
        QCOMPARE(*ValueRange::parse(open.option("range")).high, once);
    }

    void rangesAreTypedAndReset() {
        OpenMap open;
        open.map->showRange();
        auto* dialog = open.window.findChild<RangeDialog*>();
        QVERIFY(dialog);
        auto* from = dialog->findChild<QLineEdit*>("coloursFrom");
        auto* to = dialog->findChild<QLineEdit*>("coloursTo");
        QPushButton* apply = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Apply);
        QCOMPARE(from->text(), QString("0.0001"));
        const auto type = [](QLineEdit* field, const char* text) {
            field->selectAll();
            QTest::keyClicks(field, text);
        };
        type(from, "0.0012345");
        type(to, "0.3");
        QTest::mouseClick(apply, Qt::LeftButton);
        QCOMPARE(open.option("range"), std::string("weight:0.0012345..0.3")); // as typed, to the last digit
        type(from, "0.5");
        QTest::mouseClick(apply, Qt::LeftButton); // ends before it begins
        QCOMPARE(open.option("range"), std::string("weight:0.0012345..0.3"));
        QVERIFY(!from->toolTip().isEmpty());
        QTest::mouseClick(dialog->findChild<QPushButton*>("coloursMiddle"), Qt::LeftButton);
        QVERIFY(open.option("range") != "weight:0.0012345..0.3");
        QVERIFY(from->text().toDouble() < to->text().toDouble());
        QTest::mouseClick(dialog->findChild<QPushButton*>("coloursAutomatic"), Qt::LeftButton);
        QCOMPARE(open.option("range"), std::string("auto"));
        QCOMPARE(from->text(), QString("0.0001"));
    }

    // Automatic ends are those of the part that is shown: fields that nobody typed in follow, and Apply stores none of
    // them.
    void automaticEndsFollowThePartThatIsShown() {
        OpenMap open;
        open.bench.change([](Session& s) { setViewOption(s, "attention_map", "scale", "linear"); }, "Scale");
        open.waitForMap();
        open.map->showRange();
        auto* dialog = open.window.findChild<RangeDialog*>();
        const auto* to = dialog->findChild<QLineEdit*>("coloursTo");
        const QString whole = to->text();
        open.bench.setRange(attentionMapView(), Viewport::Range{400, 440, 700, 740}); // without the sink
        QTRY_VERIFY(to->text() != whole);
        QTest::mouseClick(dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Apply), Qt::LeftButton);
        QCOMPARE(open.option("range"), std::string("auto"));
    }

    void sessionAndCommandLineKeepThem() {
        OpenMap open;
        open.bench.change(
            [](Session& s) {
                setViewOption(s, "attention_map", "range", "weight:0.001..0.25");
                setViewOption(s, "attention_map", "cell", "920,615");
            },
            "Options");
        QTemporaryDir folder;
        const std::string path = folder.filePath("map.kvscope").toStdString();
        writeSession(path, open.bench.session());
        const Session back = readSession(path);
        QCOMPARE(viewOptions(back, attentionMapView()).text("range"), std::string("weight:0.001..0.25"));
        QCOMPARE(viewOptions(back, attentionMapView()).text("cell"), std::string("920,615"));
        FigureRequest figure;
        figure.viewId = "attention_map";
        figure.outPath = "map.png";
        const std::string command = plotCommand(back, figure);
        QVERIFY2(command.find("--view-set range=weight:0.001..0.25") != std::string::npos &&
                     command.find("--view-set cell=920,615") != std::string::npos,
                 command.c_str());
    }

    void aClickLocksArrowsMoveEscReleases() {
        OpenMap open;
        const auto selected = open.bench.session().selected;
        QVERIFY(!selected.empty());
        QTest::mouseClick(open.canvas(), Qt::LeftButton, {}, open.pixelOf(300.5, 900.5));
        QVERIFY(open.option("cell") != "none");
        open.waitForMap();
        QTRY_VERIFY(open.data()->locked != nullptr);
        const TokenIndex query = open.data()->locked->query, key = open.data()->locked->key;
        const double pixel =
            1028 / open.canvas()->scene().plot.width; // the pointer's are coarser than those of the data
        QVERIFY2(std::abs(query - 900) <= 2 * pixel && std::abs(key - 300) <= 2 * pixel,
                 qPrintable(QString("%1, %2").arg(query).arg(key)));
        QVERIFY(!open.map->readOut()->isPinned()); // the inset says it
        QVERIFY2(open.map->finding().startsWith("Query"), qPrintable(open.map->finding()));
        QTest::keyClick(open.canvas(), Qt::Key_Right);
        QTest::keyClick(open.canvas(), Qt::Key_Right);
        QTest::keyClick(open.canvas(), Qt::Key_Up, Qt::ShiftModifier);
        QCOMPARE(open.option("cell"), std::to_string(query - 10) + "," + std::to_string(key + 2));
        QTRY_COMPARE(open.data()->locked->key, key + 2);
        open.bench.undo();
        QCOMPARE(open.option("cell"), std::to_string(query) + "," + std::to_string(key + 2));
        open.canvas()->setFocus();
        QTest::keyClick(open.canvas(), Qt::Key_Escape);
        QCOMPARE(open.option("cell"), std::string("none"));
        QCOMPARE(open.bench.session().selected, selected); // one thing at a time
        QTRY_VERIFY(open.data()->locked == nullptr);
        QTest::keyClick(open.canvas(), Qt::Key_Escape);
        QVERIFY(open.bench.session().selected.empty());
    }

    // A hand that pans the map draws frames of the map alone, and what it then shows is what a new look at the part
    // shows.
    void panningDrawsNothingElse() {
        OpenMap open;
        for (int notch = 0; notch < 4; ++notch)
            open.turnWheel(1);
        open.waitForMap();
        const std::vector<int> before = open.framesWhenStill();
        const int own = open.canvas()->framesDrawn();
        const QPoint from = open.pixelOf(500, 600);
        QTest::mousePress(open.canvas(), Qt::LeftButton, {}, from);
        for (int step = 1; step <= 12; ++step) {
            QTest::mouseMove(open.canvas(), from + QPoint(3 * step, -2 * step));
            QTest::qWait(20);
        }
        QTest::mouseRelease(open.canvas(), Qt::LeftButton, {}, from + QPoint(36, -24));
        open.waitForMap();
        const std::vector<int> after = open.framesWhenStill();
        QVERIFY(open.canvas()->framesDrawn() >= own + 5);
        QCOMPARE(before.size(), after.size());
        QVERIFY(before.size() > 1);
        int changed = 0;
        for (std::size_t i = 0; i < after.size(); ++i)
            changed += after[i] != before[i];
        QCOMPARE(changed, 1);
        const QImage shown = open.canvas()->grabFramebuffer();
        const Viewport::Range range = open.bench.session().look.ranges.at("attention_map");
        open.bench.setRange(attentionMapView(), std::nullopt);
        open.waitForMap();
        (void)open.framesWhenStill();
        open.bench.setRange(attentionMapView(), range);
        open.waitForMap();
        (void)open.framesWhenStill();
        QCOMPARE(open.canvas()->grabFramebuffer(), shown);
    }

    // The map does not vanish and come back when another cell is locked.
    void lockingKeepsThePicture() {
        OpenMap open;
        bool lost = false;
        QObject::connect(&open.bench, &Workbench::dataChanged, &open.window,
                         [&](const QString& id) { lost |= id == "attention_map" && !open.data(); });
        for (int key = 100; key < 400; key += 100) {
            QTest::mouseClick(open.canvas(), Qt::LeftButton, {}, open.pixelOf(key + 0.5, 900.5));
            open.waitForMap();
        }
        QVERIFY(open.data()->locked);
        QVERIFY(!lost);
    }
};

KVSCOPE_WINDOW_TEST(WindowMapTest)
#include "window_map_test.moc"
