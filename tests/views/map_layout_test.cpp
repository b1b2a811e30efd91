// The attention map in docks of every shape: it is square or uses the room of a low one, and what goes with it goes on
// to fit, to be read and to be kept.
#include "app/export/scene_export.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/attention_map/attention_map_data.h"
#include "views/attention_map/map_layout.h"
#include "views/scene/colour_column.h"
#include "views/view.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

std::vector<const ImageItem*> imagesOf(const Scene& scene) {
    std::vector<const ImageItem*> images;
    for (const Drawable& item : scene.items)
        if (const auto* image = std::get_if<ImageItem>(&item)) images.push_back(image);
    return images;
}

bool near(double a, double b) { return std::abs(a - b) < 0.01; }

} // namespace

class MapLayoutTest : public ViewTest {
    Q_OBJECT

public:
    MapLayoutTest() : ViewTest(viewById("attention_map")) {}

private:
    /// The data that a dock of this size asks for.
    ViewInput inputFor(const ParameterValues& options, QSize size, std::optional<Viewport::Range> range = {}) const {
        ViewInput input = needleInput({"keydiff@0.25", "snapkv@0.25", "streaming_llm@0.25"});
        ViewDataRequest request = dataRequest(input, options);
        request.width = size.width();
        request.height = size.height();
        request.range = range;
        input.data.value = makerFor(m_view)->make(runner(), request, {}, [](const auto&) {});
        return input;
    }
    Scene sceneOf(const ViewInput& input, const ParameterValues& options, QSize size,
                  std::optional<Viewport::Range> range = {}, bool forExport = false) const {
        Viewport shown = viewport(size.width(), size.height(), m_text);
        shown.range = range;
        shown.forExport = forExport;
        return m_view.buildScene(input, options, shown);
    }

    static void addShapes() {
        QTest::addColumn<QSize>("size");
        for (const QSize size :
             {QSize(940, 98), QSize(940, 150), QSize(940, 270), QSize(1600, 372), QSize(2500, 1300), QSize(490, 122),
              QSize(345, 102), QSize(300, 220), QSize(246, 148), QSize(428, 660), QSize(620, 600)})
            QTest::addRow("%dx%d", size.width(), size.height()) << size;
    }

private slots:
    void itUsesTheRoomOfItsDock_data() { addShapes(); }
    void itUsesTheRoomOfItsDock() {
        QFETCH(QSize, size);
        const ParameterValues options = optionsOf(m_view);
        const Scene scene = sceneOf(inputFor(options, size), options, size);
        const Box& plot = scene.plot;
        double right = plot.right();
        for (const Drawable& item : scene.items)
            if (const auto* text = std::get_if<TextItem>(&item))
                right = std::max(right, textBounds(*text, m_text).right());
        QVERIFY2(plot.width <= kWidestMap * plot.height + 1 && plot.height <= 1.1 * kHighestMap * plot.width,
                 qPrintable(QString("%1 x %2").arg(plot.width).arg(plot.height)));
        const bool isSquare = near(plot.width, plot.height);
        QVERIFY(isSquare || std::min(size.width() - 110, size.height()) < 280); // as many queries as keys
        if (isSquare) {
            QVERIFY2(plot.width > size.width() - 175 || plot.height > size.height() - 145,
                     qPrintable(QString::number(plot.width)));
            QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            return;
        }
        const bool isWidest = plot.width > kWidestMap * plot.height - 2,
                   isHighest = plot.height > kHighestMap * (size.width() - kBesidePlot) - 2;
        QVERIFY2(isWidest || right > size.width() - 60,
                 qPrintable(QString::number(right))); // nothing is empty at the right
        const bool captionBeside = size.height() < 170 && size.width() >= 520;
        QVERIFY2(isWidest || plot.width > size.width() - (size.width() < 300 ? 80 : 175) - (captionBeside ? 200 : 0),
                 qPrintable(QString::number(plot.width)));
        QVERIFY2(isHighest || plot.height > size.height() - 130, qPrintable(QString::number(plot.height)));
        QVERIFY2(plot.height > (captionBeside || size.height() > 120 ? 46 : 32),
                 qPrintable(QString::number(plot.height)));
        QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
    }

    // In every dock whose labels fit, the low ones too.
    void theColourColumnStays_data() { addShapes(); }
    void theColourColumnStays() {
        QFETCH(QSize, size);
        const ParameterValues options = optionsOf(m_view);
        const Scene scene = sceneOf(inputFor(options, size), options, size);
        const std::vector<std::string> texts = scene_checks::textsOf(scene);
        const bool labelled = std::ranges::count_if(texts, [](const auto& text) { return text.starts_with("≤"); }) == 1;
        const Point foot{scene.plot.right() + 30, scene.plot.bottom()}, head{foot.x, scene.plot.y};
        QCOMPARE(labelled, size.width() >= 300);
        QCOMPARE(placeOnColumn(scene, foot).has_value(), labelled);
        if (labelled) QVERIFY(near(*placeOnColumn(scene, foot), 0) && near(*placeOnColumn(scene, head), 1));
    }

    void railsAndCurveLieAlongTheMap_data() { addShapes(); }
    void railsAndCurveLieAlongTheMap() {
        QFETCH(QSize, size);
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(options, size);
        const Scene scene = sceneOf(input, options, size);
        int lying = 0, standing = 0;
        for (const ImageItem* image : imagesOf(scene)) {
            lying += near(image->box.x, scene.plot.x) && near(image->box.width, scene.plot.width) &&
                     near(image->box.height, size.height() < 140 ? 4 : 8) && image->box.bottom() < scene.plot.y;
            standing += near(image->box.y, scene.plot.y) && near(image->box.height, scene.plot.height) &&
                        near(image->box.width, 8);
        }
        QCOMPARE(lying, 3);
        QCOMPARE(standing, 1);
        const std::vector<std::string> texts = scene_checks::textsOf(scene);
        QCOMPARE(std::count(texts.begin(), texts.end(), "lg Σ"), size.height() >= 150 ? 1 : 0); // the map comes first
    }

    // More pixels than tokens: a kept run is one bar, not a comb.
    void aRailHasNoHolesBetweenKeptNeighbours() {
        const ParameterValues options = optionsOf(m_view);
        const QSize size(2500, 2500);
        const ViewInput input = inputFor(options, size);
        const Scene scene = sceneOf(input, options, size);
        const auto states = tokenStates(input, input.panes[2]);
        const ImageItem* rail = nullptr; // the lowest that lies
        for (const ImageItem* image : imagesOf(scene))
            if (near(image->box.height, 8) && near(image->box.width, scene.plot.width) &&
                (!rail || image->box.y > rail->box.y))
                rail = image;
        QVERIFY(rail && rail->width > 2 * 1028);
        const auto redAt = [&](int x) { return (*rail->rgba)[static_cast<std::size_t>(4 * x)]; };
        const auto redOf = [&](TokenState state) { // of a token's middle
            const auto token = std::find(states.begin() + 500, states.end(), state) - states.begin();
            return redAt(static_cast<int>((static_cast<double>(token) + 0.5) / 1028 * rail->width));
        };
        QVERIFY(redOf(TokenState::Kept) != redOf(TokenState::Evicted));
        for (int x = 0; x < rail->width; ++x) {
            const TokenState state = states[static_cast<std::size_t>((x + 0.5) / rail->width * 1028)];
            QCOMPARE(redAt(x), redOf(state == TokenState::Protected ? TokenState::Kept : state));
        }
    }

    // Unequal scales: what is pointed at is what lies there, by its row and its column.
    void theReadOutFollowsBothScales() {
        const ParameterValues options = optionsOf(m_view);
        for (const auto& [size, range] : {std::pair{QSize(1600, 172), std::optional<Viewport::Range>{}},
                                          {QSize(300, 700), Viewport::Range{500, 700, 100, 1000}},
                                          {QSize(940, 98), Viewport::Range{500, 700, 800, 1000}}}) {
            const ViewInput input = inputFor(options, size, range);
            const Scene scene = sceneOf(input, options, size, range);
            const double keys = (scene.xMax - scene.xMin) / scene.plot.width,
                         queries = (scene.yMax - scene.yMin) / scene.plot.height;
            QVERIFY(keys > 1.4 * queries || queries > 1.4 * keys);
            const auto at = [&](double key, double query) {
                return Point{scene.plot.x + (key - scene.xMin) / keys, scene.plot.y + (query - scene.yMin) / queries};
            };
            const PointFacts facts = m_view.factsAt(input, options, scene, at(615.5, 920.5));
            QVERIFY(facts.rows.size() > 2);
            const auto names = [](const std::string& text, int token) { // one token, or the first and the last of many
                int first = 0, last = 0;
                const bool isRange = std::sscanf(text.c_str(), "%d to %d", &first, &last) == 2;
                return isRange ? first <= token && token <= last : first == token;
            };
            QVERIFY2(names(facts.rows[0].second, 920) && names(facts.rows[1].second, 615),
                     facts.rows[0].second.c_str());
        }
    }

    // A pixel of the image is one of the screen, wherever the hand has moved it.
    void pixelsOfThePictureLieOnThoseOfTheScreen() {
        const ParameterValues options = optionsOf(m_view);
        const QSize size(640, 420);
        const ViewInput input = inputFor(options, size);
        for (const double scale : {1.0, 1.25, 1.5, 2.0})
            for (const double moved : {0.0, 0.3, 17.77, -40.5}) {
                Viewport shown = viewport(size.width(), size.height(), m_text);
                shown.pixelScale = scale;
                shown.range = Viewport::Range{moved, 1028 + moved, moved / 3, 1028 + moved / 3};
                const Scene scene = m_view.buildScene(input, options, shown);
                const ImageItem* map = scene_checks::mapImage(scene);
                QVERIFY(map);
                const auto whole = [&](double length) { return near(length * scale, std::round(length * scale)); };
                if (map->width < 640) QVERIFY(whole(map->box.x) && near(map->box.width * scale, map->width));
                if (map->height < 420) QVERIFY(whole(map->box.y) && near(map->box.height * scale, map->height));
                QVERIFY(whole(scene.plot.x) && whole(scene.plot.y) && whole(scene.plot.width) &&
                        whole(scene.plot.height));
            }
    }

    // The hand moves the map: its pixels are the same ones, and the picture is that of data which nobody has drawn yet.
    void panningKeepsThePixelsAndThePicture() {
        const QSize size(700, 500);
        for (const Set& set : {Set{}, Set{{"scale", "rank"}}, Set{{"map", "cosine"}}}) {
            const ParameterValues options = optionsOf(m_view, set);
            const ViewInput input = inputFor(options, size, Viewport::Range{100, 600, 300, 800});
            const std::uint8_t* pixels = nullptr;
            for (const double moved : {0.0, 3.3, -25.0, 60.0}) {
                const Viewport::Range range{100 + moved, 600 + moved, 300 - moved, 800 - moved};
                const Scene scene = sceneOf(input, options, size, range);
                const ImageItem* map = scene_checks::mapImage(scene);
                QVERIFY(map && (!pixels || map->rgba->data() == pixels));
                pixels = map->rgba->data();
                ViewInput untouched = input;
                untouched.data.value = std::make_shared<const AttentionMapData>(*dataAs<AttentionMapData>(input));
                const Scene fresh = sceneOf(untouched, options, size, range);
                QVERIFY(scene_checks::mapImage(fresh)->rgba->data() != pixels);
                QCOMPARE(renderScene(scene, 2), renderScene(fresh, 2));
            }
        }
    }

    // Everything that the pixels depend on makes others.
    void anotherLookMakesOtherPixels() {
        const QSize size(700, 500);
        const ViewInput input = inputFor(optionsOf(m_view), size);
        std::vector<std::pair<std::string, QImage>> seen;
        for (const auto& [option, value] : {std::pair{"scale", "log"},
                                            {"scale", "linear"},
                                            {"scale", "row"},
                                            {"scale", "rank"},
                                            {"floor", "-6"},
                                            {"invert", "on"},
                                            {"colours", "magma"},
                                            {"range", "weight:0.001..0.5"},
                                            {"range", "weight:0.01..0.5"},
                                            {"scale", "log"}}) {
            const ParameterValues options = optionsOf(m_view, {{option, value}});
            const QImage now = renderScene(sceneOf(input, options, size), 1);
            ViewInput untouched = input;
            untouched.data.value = std::make_shared<const AttentionMapData>(*dataAs<AttentionMapData>(input));
            QVERIFY2(now == renderScene(sceneOf(untouched, options, size), 1), value);
            for (const auto& [other, picture] : seen) QVERIFY2((picture == now) == (other == value), value);
            seen.emplace_back(value, now);
        }
        Viewport dark = viewport(size.width(), size.height(), m_text, ThemeId::Dark);
        const ParameterValues options = optionsOf(m_view);
        const ImageItem light = *scene_checks::mapImage(sceneOf(input, options, size));
        QVERIFY(*scene_checks::mapImage(m_view.buildScene(input, options, dark))->rgba != *light.rgba); // masked ground
    }

    // A part with far more queries than keys has no square cells to keep.
    void aLongPartUsesTheRoom() {
        const QSize size(940, 372);
        const ParameterValues options = optionsOf(m_view);
        const auto tokens = static_cast<double>(inputFor(options, size).capture->info().numTokens);
        const Viewport::Range part{0, 64, 0, tokens}, square{0, 64, 0, 64};
        const Scene scene = sceneOf(inputFor(options, size, part), options, size, part);
        QVERIFY2(scene.plot.width > 1.5 * scene.plot.height, qPrintable(QString::number(scene.plot.width)));
        const Box cells = sceneOf(inputFor(options, size, square), options, size, square).plot;
        QVERIFY(near(cells.width, cells.height));
    }

    // The map stands in the middle where that leaves room for the magnified cells, and stays there when a cell is
    // locked.
    void aSquareMapStandsTowardsTheMiddle() {
        for (const auto& [size, leastAtLeft] : {std::pair{QSize(836, 420), 100.0}, {QSize(1600, 500), 400.0}})
            for (const bool forExport : {false, true}) {
                const ParameterValues options = optionsOf(m_view), locked = optionsOf(m_view, {{"cell", "920,615"}});
                const Box plot = sceneOf(inputFor(options, size), options, size, {}, forExport).plot;
                QVERIFY2(plot.x > leastAtLeft && size.width() - plot.right() > 200,
                         qPrintable(QString::number(plot.x)));
                QCOMPARE(sceneOf(inputFor(locked, size), locked, size, {}, forExport).plot.x, plot.x);
            }
        const ParameterValues options = optionsOf(m_view);
        QVERIFY(sceneOf(inputFor(options, {620, 600}), options, {620, 600}).plot.x < 80); // no room to move
    }

    // On paper as on the screen: square, but where a low figure would waste its room.
    void aFigureIsSquareWhereThatFits() {
        const ParameterValues options = optionsOf(m_view);
        for (const auto& [size, square] : {std::pair{QSize(900, 700), true},
                                           {QSize(620, 600), true},
                                           {QSize(900, 155), false},
                                           {QSize(430, 700), true}}) {
            const Scene scene = sceneOf(inputFor(options, size), options, size, {}, true);
            QCOMPARE(near(scene.plot.width, scene.plot.height), square);
            QVERIFY(square || scene.plot.width > std::min(kWidestMap * scene.plot.height - 2,
                                                          size.width() - 175.0 - (size.height() < 170 ? 200 : 0)));
            QCOMPARE(scene_checks::clippedTexts(scene, m_text), QStringList());
        }
    }

    // What columns of pixels can say of keys: of one column all, of the half no more than a bound.
    void theFindingClaimsNoMoreThanItsPixels() {
        const ParameterValues options = optionsOf(m_view);
        ViewInput input = inputFor(options, {428, 660});
        auto data = std::make_shared<AttentionMapData>(*dataAs<AttentionMapData>(input));
        data->keyBegin = 0, data->keyEnd = 12;
        const auto findingOf = [&](std::vector<float> sums) {
            data->columnSums = {{std::ssize(sums)}, std::move(sums)};
            input.data.value = data;
            return m_view.finding(input, options);
        };
        QCOMPARE(findingOf({6, 1, 1, 0}), std::string("Keys 0–2 take 75.0 % of the weight shown"));
        QCOMPARE(
            findingOf({1, 3, 2, 2}),
            std::string("Keys 0–2 take 12.5 % of the weight shown; half of it falls on at most 50.0 % of the keys"));
        data->keyEnd = 4;
        QCOMPARE(findingOf({1, 3, 2, 2}),
                 std::string("Key 0 takes 12.5 % of the weight shown; half of it falls on 50.0 % of the keys"));
        data->keyEnd = 7; // columns of 1, 2, 2 and 2 keys
        QCOMPARE(findingOf({1, 3, 2, 2}),
                 std::string("Key 0 takes 12.5 % of the weight shown; half of it falls on at most 42.9 % of the keys"));
        data->cells = {{1, 2}, {-5, 35}}; // of logits
        data->rowBegin = 0, data->rowEnd = 1, data->keyEnd = 2;
        QCOMPARE(findingOf({}), std::string("Cells shown range from −5 to 35"));
        data->keyEnd = 4; // two cells a pixel: a smaller one may be hidden
        QCOMPARE(findingOf({}), std::string("The largest values of the pixels range from −5 to 35"));
        data->rowEnd = 2, data->keyEnd = 2;
        QCOMPARE(findingOf({}), std::string("The largest values of the pixels range from −5 to 35"));
    }

    // Queries 100 to 300 see none of the keys from 700 on.
    void aPartWithoutVisibleCellsSaysSo() {
        for (const char* map : {"logits", "causal"}) {
            const ParameterValues options = optionsOf(m_view, {{"map", map}});
            QCOMPARE(m_view.finding(inputFor(options, {428, 660}, Viewport::Range{700, 900, 100, 300}), options),
                     std::string("All cells shown are masked: none of these queries sees any of these keys"));
        }
    }

    void theCaptionNamesKeysAndQueriesOfAPixel() {
        const ParameterValues options = optionsOf(m_view);
        const auto textOf = [&](const Set& set, QSize size) {
            const ParameterValues chosen = optionsOf(m_view, set);
            const auto range = size.height() > 200 ? std::optional(Viewport::Range{0, 200, 0, 1028}) : std::nullopt;
            return paintSceneAsText(sceneOf(inputFor(chosen, size, range), chosen, size, range));
        };
        QVERIFY(textOf({}, {620, 600}).find("max of 1 key × 3 queries a pixel") != std::string::npos);
        QVERIFY(textOf({{"map", "cosine"}}, {620, 600}).find("max of 1 × 3 keys a pixel") != std::string::npos);
        const std::string low = textOf({}, {940, 98}); // beside the map, and in the place of the axis titles
        for (const char* words : {"\"causal\"", "\"query head 4\"", "\"log10, ", "\"→ key, ↓ query, from 0\""})
            QVERIFY2(low.find(words) != std::string::npos, words);
    }

    // A cell is locked in a dock that is too low for the inset on the masked half: the map makes room.
    void aLockedCellIsMagnifiedInLowDocksToo() {
        for (const char* map : {"causal", "non_causal"})
            for (const QSize size : {QSize(940, 98), QSize(940, 172), QSize(1600, 372)}) {
                const ParameterValues options = optionsOf(m_view, {{"cell", "920,615"}, {"map", map}});
                const Scene scene = sceneOf(inputFor(options, size), options, size);
                const RectangleItem* grid = nullptr;
                for (const Drawable& item : scene.items)
                    if (const auto* box = std::get_if<RectangleItem>(&item);
                        box && box->pick == PickId{PickId::Kind::Cell, -300})
                        grid = box;
                QVERIFY(grid);
                QVERIFY(grid->box.x > scene.plot.right() + 90 && grid->box.right() < size.width() &&
                        grid->box.bottom() < size.height());
                QVERIFY(scene.plot.width > 1.5 * scene.plot.height || near(scene.plot.width, scene.plot.height));
                QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            }
    }

private:
    using Set = std::vector<std::pair<std::string, std::string>>;
};

KVSCOPE_OFFSCREEN_TEST(MapLayoutTest)
#include "map_layout_test.moc"
