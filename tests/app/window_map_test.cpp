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
#include "views/attention_map/map_picture.h"
#include "views/common/value_range.h"
#include "views/scene/colour_column.h"
#include "views/view.h"

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

QPoint widgetPoint(Point p) {
    return {static_cast<int>(p.x * appearance().scale), static_cast<int>(p.y * appearance().scale)};
}

/// The window with a map in it that has its data.
struct OpenMap : OpenWindow {
    ViewCanvas* map = nullptr;

    OpenMap() {
        bench.change([](Session& s) { s.layout = WindowLayout::ExploreHead; }, "Layout");
        arrange();
        for (ViewDock* dock : window.canvases()->docks())
            if (dock->canvas()->view().card().id == "attention_map") map = dock->canvas();
        waitForMap();
        canvas()->setFocus();
    }
    CanvasWidget* canvas() const { return map->canvas(); }
    std::shared_ptr<const AttentionMapData> data() const {
        return dataAs<AttentionMapData>(bench.viewInput(viewById("attention_map")));
    }
    /// Until it has its place, too: its cells are those of its pixels then.
    void waitForMap() {
        const auto hasItsSize = [this] {
            return data()->cells.shape[0] ==
                   std::min<std::int64_t>(data()->rowEnd - data()->rowBegin, canvas()->height());
        };
        QTRY_VERIFY_WITH_TIMEOUT(map && map->isVisible() && data() && hasItsSize() &&
                                     !bench.viewInput(viewById("attention_map")).data.computing &&
                                     !canvas()->scene().plot.contains({0, 0}) && canvas()->scene().plot.width > 50,
                                 20000);
    }
    std::string option(const std::string& id) const {
        return viewOptions(bench.session(), viewById("attention_map")).text(id);
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
};

} // namespace

class WindowMapTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    // A dock that has just been called in gets its size after it is shown: its cells are those of its own pixels.
    void theCellsAreThoseOfTheDocksPixels() {
        OpenMap open;
        for (const WindowLayout layout : {WindowLayout::ComparePolicies, WindowLayout::WholeModel, WindowLayout::Teach,
                                          WindowLayout::ExploreHead}) {
            open.bench.change([&](Session& s) { s.layout = layout; }, "Layout");
            open.arrange();
            open.window.docks()->dock("attention_map")->present();
            open.waitForMap();
            QTRY_COMPARE(open.data()->cells.shape[0], std::min<std::int64_t>(1028, open.canvas()->height()));
            QTRY_COMPARE(open.data()->cells.shape[1], std::min<std::int64_t>(1028, open.canvas()->width()));
        }
    }

    void rangesAreTypedAndReset() {
        OpenMap open;
        open.map->showRange();
        auto* dialog = open.window.findChild<RangeDialog*>();
        QVERIFY(dialog);
        auto* from = dialog->findChild<QLineEdit*>("coloursFrom");
        auto* to = dialog->findChild<QLineEdit*>("coloursTo");
        QPushButton* apply = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Apply);
        const QString automatic = from->text();
        QVERIFY2(automatic.toDouble() < 2e-5, qPrintable(automatic)); // of a sharp head; it was 1e-4 for every head
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
        QVERIFY(from->property("wrong").toBool() && to->property("wrong").toBool());
        QVERIFY(dialog->findChild<QLabel*>("rangeWhy")->text().contains("the first below the second"));
        QVERIFY(!from->accessibleDescription().isEmpty());
        type(from, "0.0012345");
        type(to, "inf"); // a session file could not hold it
        QTest::mouseClick(apply, Qt::LeftButton);
        QCOMPARE(open.option("range"), std::string("weight:0.0012345..0.3"));
        QTest::mouseClick(dialog->findChild<QPushButton*>("coloursMiddle"), Qt::LeftButton);
        QVERIFY(open.option("range") != "weight:0.0012345..0.3");
        QVERIFY(from->text().toDouble() < to->text().toDouble());
        QTest::mouseClick(dialog->findChild<QPushButton*>("coloursAutomatic"), Qt::LeftButton);
        QCOMPARE(open.option("range"), std::string("auto"));
        QCOMPARE(from->text(), automatic);
        QVERIFY(!from->property("wrong").toBool());
    }

    void aRangeIsTypedByTheKeyboardAlone() {
        OpenMap open;
        open.map->showRange();
        auto* dialog = open.window.findChild<RangeDialog*>();
        auto* from = dialog->findChild<QLineEdit*>("coloursFrom");
        auto* to = dialog->findChild<QLineEdit*>("coloursTo");
        const auto* why = dialog->findChild<QLabel*>("rangeWhy");
        QCOMPARE(from->accessibleName(), QString("Colours, from"));
        const auto type = [](QLineEdit* field, const char* text) {
            field->setFocus();
            field->selectAll();
            QTest::keyClicks(field, text);
        };
        type(from, "0");
        type(to, "1");
        QTest::keyClick(to, Qt::Key_Return); // the scale of a map is logarithmic at first
        QVERIFY2(why->text().contains("begins above 0"), qPrintable(why->text()));
        QVERIFY(dialog->isVisible() && from->property("wrong").toBool());
        type(from, "0.25");
        open.bench.change([](Session& s) { s.selected = {3}; }, "Selection");
        QCOMPARE(from->text(), QString("0.25")); // half typed: left alone
        QTest::keyClick(from, Qt::Key_Return);
        QVERIFY(dialog->isVisible() && why->text().isEmpty() && !from->property("wrong").toBool());
        QCOMPARE(open.option("range"), std::string("weight:0.25..1"));
        auto* automatic = dialog->findChild<QPushButton*>("coloursAutomatic");
        automatic->setFocus();
        QTest::keyClick(automatic, Qt::Key_Return);
        QCOMPARE(open.option("range"), std::string("auto"));
        auto* close = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Close);
        close->setFocus();
        QTest::keyClick(close, Qt::Key_Return);
        QVERIFY(!dialog->isVisible());
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
        open.bench.setRange(viewById("attention_map"), Viewport::Range{400, 440, 700, 740}); // without the sink
        QTRY_VERIFY(to->text() != whole);
        QVERIFY(dialog->findChild<QLineEdit*>("xFrom")->text() != "0");
        QTest::mouseClick(dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Apply), Qt::LeftButton);
        QCOMPARE(open.option("range"), std::string("auto"));
        QCOMPARE(open.bench.session().look.ranges.at("attention_map").xMin, 400.0); // Apply leaves the zoom
        open.bench.setRange(viewById("attention_map"), std::nullopt);
        QTest::mouseClick(dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Apply), Qt::LeftButton);
        QVERIFY(!open.bench.session().look.ranges.contains("attention_map"));
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
        QCOMPARE(viewOptions(back, viewById("attention_map")).text("range"), std::string("weight:0.001..0.25"));
        QCOMPARE(viewOptions(back, viewById("attention_map")).text("cell"), std::string("920,615"));
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

    // One thing each: a click locks, a double click fits. What its first click did is taken back.
    void aDoubleClickFitsAndLocksNothing() {
        OpenMap open;
        for (int notch = 0; notch < 4; ++notch) open.turnWheel(1);
        open.waitForMap();
        QVERIFY(open.bench.session().look.ranges.contains("attention_map"));
        const Box plot = open.canvas()->scene().plot;
        const QPoint at = widgetPoint({plot.x + 0.2 * plot.width, plot.y + 0.85 * plot.height}); // not masked
        QTest::mouseClick(open.canvas(), Qt::LeftButton, {}, at);
        QVERIFY(open.option("cell") != "none");
        QTest::mouseDClick(open.canvas(), Qt::LeftButton, {}, at);
        QCOMPARE(open.option("cell"), std::string("none"));
        QVERIFY(!open.bench.session().look.ranges.contains("attention_map"));
        open.waitForMap();
        open.bench.change([](Session& s) { setViewOption(s, "attention_map", "cell", "920,615"); }, "Cell");
        QTest::mouseClick(open.canvas(), Qt::LeftButton, {}, open.pixelOf(300.5, 900.5));
        QVERIFY(open.option("cell") != "920,615");
        QTest::mouseDClick(open.canvas(), Qt::LeftButton, {}, open.pixelOf(300.5, 900.5));
        QCOMPARE(open.option("cell"), std::string("920,615")); // as it was
    }

    // Where a part is shown a small map says which, and takes one elsewhere.
    void theSmallMapIsDragged() {
        OpenMap open;
        QVERIFY(!boxOfPick(open.canvas()->scene(), kMinimap));
        open.bench.setRange(viewById("attention_map"), Viewport::Range{400, 600, 700, 900});
        open.waitForMap();
        QTRY_VERIFY(boxOfPick(open.canvas()->scene(), kMinimap));
        const Box box = *boxOfPick(open.canvas()->scene(), kMinimap);
        const auto at = [&](double key, double query) {
            return widgetPoint({box.x + box.width * key / 1028, box.y + box.height * query / 1028});
        };
        QTest::mousePress(open.canvas(), Qt::LeftButton, {}, at(500, 800));
        for (int step = 1; step <= 5; ++step) QTest::mouseMove(open.canvas(), at(500 - 60 * step, 800 - 40 * step));
        QTest::mouseRelease(open.canvas(), Qt::LeftButton, {}, at(200, 600));
        const Viewport::Range range = open.bench.session().look.ranges.at("attention_map");
        const double pixel = 1028 / box.width;
        QVERIFY2(std::abs(range.xMin - 100) <= pixel && std::abs(range.yMin - 500) <= pixel,
                 qPrintable(QString("%1, %2").arg(range.xMin).arg(range.yMin)));
        QCOMPARE(range.xMax - range.xMin, 200.0);
        QCOMPARE(open.option("cell"), std::string("none"));
    }

    // A hand that pans the map draws frames of the map alone, and what it then shows is what a new look at the part
    // shows.
    void panningDrawsNothingElse() {
        OpenMap open;
        for (int notch = 0; notch < 4; ++notch) open.turnWheel(1);
        open.waitForMap();
        const std::vector<int> before = open.framesWhenStill();
        const int own = open.canvas()->framesDrawn();
        const QPoint from = open.pixelOf(500, 600);
        QTest::mousePress(open.canvas(), Qt::LeftButton, {}, from);
        for (int step = 1; step <= 12; ++step) {
            QTest::mouseMove(open.canvas(), from + QPoint(3 * step, -2 * step));
            open.finish();
        }
        QTest::mouseRelease(open.canvas(), Qt::LeftButton, {}, from + QPoint(36, -24));
        open.waitForMap();
        const std::vector<int> after = open.framesWhenStill();
        QVERIFY(open.canvas()->framesDrawn() >= own + 5);
        QCOMPARE(before.size(), after.size());
        QVERIFY(before.size() > 1);
        int changed = 0;
        // The others: what is hovered leaves with the hand's first step and comes back with its last one.
        for (std::size_t i = 0; i < after.size(); ++i) changed += after[i] > before[i] + 2;
        QCOMPARE(changed, 1);
        const auto withoutPointer = [&] { // whose token is marked where it rests on the map
            (void)open.framesWhenStill();
            open.bench.setHovered(-1);
            (void)open.framesWhenStill();
            return open.canvas()->picture();
        };
        const QImage shown = withoutPointer();
        const Viewport::Range range = open.bench.session().look.ranges.at("attention_map");
        open.bench.setRange(viewById("attention_map"), std::nullopt);
        open.waitForMap();
        (void)open.framesWhenStill();
        open.bench.setRange(viewById("attention_map"), range);
        open.waitForMap();
        QCOMPARE(withoutPointer(), shown);
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
