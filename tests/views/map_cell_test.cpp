// The locked cell of the attention map: which cell it is, its neighbourhood against attention in plain loops, what is
// computed for it, and where it is drawn.
#include "app/export/scene_export.h"
#include "core/base/error.h"
#include "core/engine/forwarding_engine.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/causal_row.h"
#include "tests/views/view_test.h"
#include "views/attention_map/attention_map_data.h"
#include "views/attention_map/map_cell.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <QRegularExpression>
#include <QtTest>

#include <cmath>
#include <utility>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

using Set = std::vector<std::pair<std::string, std::string>>;

/// Remembers what it was asked to draw.
class WatchedEngine final : public ForwardingEngine {
public:
    WatchedEngine() : WatchedEngine(makeCpuEngine(2)) {}
    AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const override {
        m_rows.push_back(input.rowEnd - input.rowBegin);
        m_cells = std::max(m_cells, input.height * input.width);
        return m_engine->attentionMap(input, checkpoint);
    }
    std::vector<std::int64_t> takeRows() const { return std::exchange(m_rows, {}); }
    std::int64_t takeCells() const { return std::exchange(m_cells, 0); }

private:
    explicit WatchedEngine(std::unique_ptr<Engine> engine) : ForwardingEngine(*engine), m_engine(std::move(engine)) {}
    std::unique_ptr<Engine> m_engine;
    mutable std::vector<std::int64_t> m_rows;
    mutable std::int64_t m_cells = 0;
};

constexpr PickId kGround{PickId::Kind::Legend, 300}, kGrid{PickId::Kind::Cell, -300};

std::string cellOf(const std::optional<SettingChange>& settingChange) {
    return settingChange && settingChange->options.size() == 1 && settingChange->options[0].first == "cell"
               ? settingChange->options[0].second
               : "nothing";
}

} // namespace

class MapCellTest : public ViewTest {
    Q_OBJECT

public:
    MapCellTest() : ViewTest(viewById("attention_map"), 620, 600) {}

private:
    ViewInput inputWith(const ParameterValues& options) const {
        ViewInput input = needleInput({"keydiff@0.25", "snapkv@0.25"});
        fillData(input, m_view, options);
        return input;
    }
    std::shared_ptr<const AttentionMapData> dataWith(const Set& set) const {
        return dataAs<AttentionMapData>(inputWith(optionsOf(m_view, set)));
    }
    Point pointOf(const Scene& scene, double key, double query) const {
        return {scene.plot.x + scene.plot.width * (key - scene.xMin) / (scene.xMax - scene.xMin),
                scene.plot.y + scene.plot.height * (query - scene.yMin) / (scene.yMax - scene.yMin)};
    }

private slots:
    void textsReadBackAndBadOnesAreRefused() {
        for (const char* text : {"920,615", "920-922,612-615", "0,0"})
            QCOMPARE(MapCell::parse(text)->text(), std::string(text));
        QVERIFY(!MapCell::parse("none"));
        for (const char* text : {"", "920", "920,", ",3", "a,b", "5-3,2", "-1,2", "1,2,3", "1.5,2"})
            QVERIFY_THROWS_EXCEPTION(Error, optionsOf(m_view, {{"cell", text}}));
        QVERIFY_THROWS_EXCEPTION(Error, optionsOf(m_view, {{"around", "10"}})); // no middle
    }

    // A click on a pixel of a pooled map locks the cell that the pixel shows.
    void aClickLocksTheLargestCellOfItsPixel() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputWith(options);
        const auto data = dataAs<AttentionMapData>(input);
        const Scene scene = build(input, options);
        for (const auto& [x, y] : {std::pair{360, 358}, {0, 399}, {180, 300}}) {
            const Point at = pointOf(scene, (x + 0.4) * 1028 / 600, (y + 0.6) * 1028 / 400);
            const PointFacts facts = m_view.factsAt(input, options, scene, at);
            const std::string cell = cellOf(facts.settingChange);
            const auto locked = dataWith({{"cell", cell}})->locked;
            QVERIFY2(locked, cell.c_str());
            const MapCell pixel = *MapCell::parse(cell);
            QVERIFY(locked->query >= pixel.firstQuery && locked->query <= pixel.lastQuery &&
                    locked->key >= pixel.firstKey && locked->key <= pixel.lastKey);
            QVERIFY(pixel.lastQuery - pixel.firstQuery <= 2 && pixel.lastKey - pixel.firstKey <= 2);
            const float shown = data->cells.data[static_cast<std::size_t>(y * 600 + x)];
            QVERIFY(std::abs(locked->value() - shown) <= 1e-5F * shown);
        }
        const Point masked = pointOf(scene, 900, 100);
        QVERIFY(!m_view.factsAt(input, options, scene, masked).settingChange);
    }

    void theNeighbourhoodIsAttentionItself() {
        const auto around = dataWith({{"cell", "920,615"}, {"around", "13"}})->locked;
        QCOMPARE(around->cells.shape, (Shape{13, 13}));
        QCOMPARE(around->rowBegin, 914);
        QCOMPARE(around->keyBegin, 609);
        for (std::int64_t row = 914; row < 927; ++row) {
            const std::vector<double> weights = causalRow(*needleCapture(), 3, 4, row);
            for (std::int64_t key = 609; key < 622; ++key) {
                const double weight = weights[static_cast<std::size_t>(key)];
                QVERIFY(std::abs(double(around->at(row, key)) - weight) <= 1e-5 * weight);
            }
        }
        const std::vector<double> own = causalRow(*needleCapture(), 3, 4, 920);
        QCOMPARE(around->seen, 921);
        QCOMPARE(around->rank, std::count_if(own.begin(), own.end(), [&](double w) { return w >= own[615]; }));
    }

    void atTheEdgeTheWindowMovesAndMaskedCellsStayMasked() {
        const auto corner = dataWith({{"cell", "0,0"}})->locked;
        QCOMPARE(corner->rowBegin, 0);
        QCOMPARE(corner->keyBegin, 0);
        QCOMPARE(corner->cells.shape, (Shape{11, 11}));
        for (std::int64_t row = 0; row < 11; ++row)
            for (std::int64_t key = 0; key < 11; ++key) QCOMPARE(std::isnan(corner->at(row, key)), key > row);
        QCOMPARE(corner->rank, 1);
        const auto end = dataWith({{"cell", "1027,1027"}})->locked;
        QCOMPARE(end->keyBegin, 1017);
        const auto masked = dataWith({{"cell", "10,500"}})->locked;
        QVERIFY(std::isnan(masked->value()) && masked->rank == 0);
        QVERIFY(!dataWith({{"cell", "5000,3"}})->locked);
    }

    void aDifferenceIsThatOfTheSingleCells() {
        const auto difference = dataWith({{"map", "non_causal"}, {"minus", "causal"}, {"cell", "920,615"}})->locked;
        const auto all = dataWith({{"map", "non_causal"}, {"cell", "920,615"}})->locked,
                   causal = dataWith({{"cell", "920,615"}})->locked;
        for (std::size_t i = 0; i < all->cells.data.size(); ++i) {
            const auto number = [](float x) { return std::isnan(x) ? 0.0F : x; };
            QCOMPARE(difference->cells.data[i], number(all->cells.data[i]) - number(causal->cells.data[i]));
        }
    }

    // Locking computes some rows, not the picture again, and never a picture of n x n.
    void lockingLooksAtFewRows() {
        const auto engine = std::make_shared<const WatchedEngine>();
        const LayerRunner watched(engine);
        ViewDataRequest request;
        request.capture = needleCapture();
        request.layer = LayerIndex(3);
        request.kvHead = KvHeadIndex(1);
        request.queryHead = QueryHeadIndex(4);
        const auto make = [&](const Set& set) {
            request.options = optionsOf(m_view, set);
            return makerFor(m_view)->make(watched, request, {}, [](const auto&) {});
        };
        using Counts = std::vector<std::int64_t>;
        make({});
        QCOMPARE(engine->takeRows(), Counts{1028});
        make({{"cell", "920-922,612-615"}});
        QCOMPARE(engine->takeRows(), (Counts{3, 11, 1})); // the pixel, the neighbourhood, the row for the rank
        make({{"cell", "921,616"}, {"around", "15"}});
        QCOMPARE(engine->takeRows(), (Counts{15, 1}));
        engine->takeCells();
        make({{"cell", "0-1027,0-1027"}}); // the largest of all: looked for in pieces
        QVERIFY(engine->takeCells() <= 512 * 512);
        make({{"map", "chunks"}});
        QCOMPARE(engine->takeRows().back(), 1028); // another picture is drawn
    }

    void theInsetCoversNoCellThatIsSeen_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size :
             {QSize(420, 400), QSize(620, 600), QSize(900, 700), QSize(1200, 760), QSize(1600, 1000)})
            QTest::addRow("%dx%d", size.width(), size.height()) << size;
    }
    void theInsetCoversNoCellThatIsSeen() {
        QFETCH(QSize, size);
        for (const char* cell : {"920,615", "1010,622", "1027,1020", "3,1", "1027,0"}) {
            const ParameterValues options = optionsOf(m_view, {{"cell", cell}});
            const Scene scene = build(inputWith(options), options, size.width(), size.height());
            const auto ground = boxOfPick(scene, kGround);
            QVERIFY(ground);
            // All of it lies right of the diagonal, and its lowest row is the nearest to it.
            const Point diagonal = pointOf(
                scene, scene.yMin + (ground->bottom() - scene.plot.y) / scene.plot.height * (scene.yMax - scene.yMin),
                0);
            QVERIFY2(ground->x >= scene.plot.right() || ground->x >= diagonal.x, cell);
            const QStringList overlaps = scene_checks::overlappingTexts(Scene(scene), m_text);
            QCOMPARE(overlaps.filter("“"), QStringList());
            const QStringList numbers =
                overlaps.filter(QRegularExpression("^\"[−.≈0-9][−.0-9e]+\" over \"[−.≈0-9][−.0-9e]+\"$")); // of cells
            QVERIFY2(numbers.empty(), qPrintable(numbers.join("; ")));
            QCOMPARE(scene_checks::clippedTexts(scene, m_text), QStringList());
        }
    }

    /// A number that is cut reads as another one: "weight 0.004…", "query 16,108…".
    void theInsetCutsNoNumber() {
        int insets = 0;
        for (const int width : {300, 340, 380, 420, 500, 620})
            for (const int height : {260, 330, 400, 600}) {
                const ParameterValues options = optionsOf(m_view, {{"cell", "1010,622"}});
                const Scene scene = build(inputWith(options), options, width, height);
                const auto ground = boxOfPick(scene, kGround);
                if (!ground) continue;
                QStringList headings;
                for (const Drawable& item : scene.items)
                    if (const auto* text = std::get_if<TextItem>(&item); text && ground->contains(text->position))
                        for (const char* word : {"query ", "weight ", "rank ", "key "})
                            if (text->text.starts_with(word)) headings += QString::fromStdString(text->text);
                QVERIFY(!headings.isEmpty());
                ++insets;
                for (const QString& heading : headings)
                    QVERIFY2(!heading.contains("…"),
                             qPrintable(QString("%1 at %2 x %3").arg(heading).arg(width).arg(height)));
            }
        QVERIFY2(insets >= 12, qPrintable(QString::number(insets)));
    }

    // Without a masked corner and without room beside the map it lies in the corner farthest from the cell.
    void whereAllIsSeenItKeepsAwayFromTheCell() {
        for (const auto& [cell, key, query] :
             {std::tuple{"100,100", 100, 100}, {"900,100", 100, 900}, {"900,900", 900, 900}}) {
            const ParameterValues options = optionsOf(m_view, {{"map", "non_causal"}, {"cell", cell}});
            const Scene scene = build(inputWith(options), options);
            const auto ground = boxOfPick(scene, kGround);
            QVERIFY(ground);
            const Point at = pointOf(scene, key, query);
            const Box margin{ground->x - 20, ground->y - 20, ground->width + 40, ground->height + 40};
            QVERIFY2(!margin.contains(at), cell);
        }
    }

    void theInsetNamesTokensAndValues() {
        const ParameterValues options = optionsOf(m_view, {{"cell", "920,615"}});
        const ViewInput input = inputWith(options);
        const auto text = [&](double width, double height) {
            return paintSceneAsText(build(input, options, width, height));
        };
        const std::string small = text(620, 600), large = text(1600, 1000);
        const TokenTable& tokens = input.capture->tokens();
        for (const TokenIndex token : {615, 612, 920, 918})
            QVERIFY(small.find(displayText(tokens.textOf(token))) != std::string::npos);
        for (const char* wanted : {"query 920 “", "→ key 615 “", "weight ", "rank ", " of 921", "key: A "})
            QVERIFY2(small.find(wanted) != std::string::npos, wanted);
        const auto numbers = [&](const std::string& scene) {
            int count = 0;
            for (std::size_t at = scene.find("\"."); at != std::string::npos; at = scene.find("\".", at + 1)) ++count;
            for (std::size_t at = scene.find("e−"); at != std::string::npos; at = scene.find("e−", at + 1)) ++count;
            return count;
        };
        QVERIFY2(numbers(large) > 80,
                 qPrintable(QString::number(numbers(large)))); // a value in each of 121 cells, and ticks
        QVERIFY(numbers(small) < 20);
        QVERIFY(m_view.finding(input, options).starts_with("Query 920 “"));
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.rowCount, 240000 + 121);
        QCOMPARE(table.cell(60, 0), std::string("920")); // the middle one
        QCOMPARE(table.cell(60, 2), std::string("615"));
        QCOMPARE(table.cell(121, 4), std::string("1")); // then the pixels
        ParameterValues gone = options;
        gone.setText("cell", "4000,1");
        QCOMPARE(m_view.finding(inputWith(gone), gone), std::string("The cell 4000,1 is none of this map"));
    }

    void theInsetIsReadAndClickedCellByCell() {
        const ParameterValues options = optionsOf(m_view, {{"cell", "920,615"}});
        const ViewInput input = inputWith(options);
        const auto data = dataAs<AttentionMapData>(input);
        const Scene scene = build(input, options);
        const Box grid = *boxOfPick(scene, kGrid);
        const double cell = grid.width / 11;
        const PointFacts facts = m_view.factsAt(input, options, scene, {grid.x + 7.5 * cell, grid.y + 2.5 * cell});
        QVERIFY(facts.rows[0].second.starts_with("917 “") && facts.rows[1].second.starts_with("617 “"));
        QCOMPARE(facts.rows[2].first, std::string("weight"));
        QCOMPARE(facts.rows[2].second, formatShort(double(data->locked->at(917, 617))));
        QCOMPARE(cellOf(facts.settingChange), std::string("917,617"));
        QCOMPARE(
            cellOf(m_view.factsAt(input, options, scene, {grid.x + 5.5 * cell, grid.y + 5.5 * cell}).settingChange),
            std::string("none"));
        const Box ground = *boxOfPick(scene, kGround);
        QVERIFY(
            m_view.factsAt(input, options, scene, {ground.x + 3, ground.y + 3}).rows.empty()); // not the map below it
    }

    void arrowsMoveTheCellWithinTheMap() {
        const auto moved = [&](const char* cell, int across, int down) {
            const ParameterValues options = optionsOf(m_view, {{"cell", cell}});
            return cellOf(m_view.lockMoved(inputWith(options), options, across, down));
        };
        QCOMPARE(moved("920,615", 1, 0), std::string("920,616"));
        QCOMPARE(moved("920,615", 0, -10), std::string("910,615"));
        QCOMPARE(moved("1027,0", -10, 10), std::string("1027,0"));
        const auto largest = dataWith({{"cell", "920-930,610-620"}})->locked;
        QCOMPARE(moved("920-930,610-620", 0, 1),
                 (MapCell{largest->query + 1, largest->query + 1, largest->key, largest->key}).text());
        QCOMPARE(moved("none", 1, 0), std::string("nothing"));
        QVERIFY(!m_view.lockReleased(optionsOf(m_view)));
        QCOMPARE(cellOf(m_view.lockReleased(optionsOf(m_view, {{"cell", "920,615"}}))), std::string("none"));
    }

    void thePictureShowsTheCellsInTheColoursOfTheMap() {
        const ParameterValues options = optionsOf(m_view, {{"cell", "920,615"}, {"around", "9"}});
        const ViewInput input = inputWith(options);
        const auto data = dataAs<AttentionMapData>(input);
        const double low = data->logEnds.first, high = data->logEnds.second;
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark}) {
            const Scene scene = m_view.buildScene(input, options, viewport(620, 600, m_text, theme));
            const QImage picture = renderScene(scene, 2);
            const Box grid = *boxOfPick(scene, kGrid);
            for (std::int64_t row = 0; row < 9; ++row)
                for (std::int64_t key = 0; key < 9; ++key) {
                    if (row == 4 || key == 4) continue; // the ring
                    const double side = grid.width / 9,
                                 place =
                                     (std::log10(double(data->locked->at(916 + row, 611 + key))) - low) / (high - low);
                    const QColor c = picture.pixelColor(static_cast<int>(2 * (grid.x + side * (double(key) + 0.5))),
                                                        static_cast<int>(2 * (grid.y + side * (double(row) + 0.25))));
                    QCOMPARE((Colour{static_cast<std::uint8_t>(c.red()), static_cast<std::uint8_t>(c.green()),
                                     static_cast<std::uint8_t>(c.blue())}),
                             colourMap("viridis", std::clamp(place, 0.0, 1.0)));
                }
        }
    }
};

KVSCOPE_OFFSCREEN_TEST(MapCellTest)
#include "map_cell_test.moc"
