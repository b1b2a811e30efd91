// What the attention map does not know yet does not look like what is masked; what is sampled says so; a range belongs
// to its map; a small map says where one is.
#include "app/export/scene_export.h"
#include "app/study/session.h"
#include "tests/support/random_capture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/attention_map/attention_map_data.h"
#include "views/attention_map/map_picture.h"
#include "views/view.h"

#include <QtTest>

#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

using Set = std::vector<std::pair<std::string, std::string>>;

Point pointOf(const Scene& scene, double key, double query) {
    return {scene.plot.x + scene.plot.width * (key - scene.xMin) / (scene.xMax - scene.xMin),
            scene.plot.y + scene.plot.height * (query - scene.yMin) / (scene.yMax - scene.yMin)};
}

/// How many pixels of a square around the point have the colour.
int countColour(const QImage& image, Point at, Colour colour) {
    int count = 0;
    for (int y = -6; y <= 6; ++y)
        for (int x = -6; x <= 6; ++x)
            count += image.pixelColor(static_cast<int>(at.x) + x, static_cast<int>(at.y) + y) ==
                     QColor(colour.r, colour.g, colour.b);
    return count;
}

} // namespace

class MapTruthTest : public ViewTest {
    Q_OBJECT

public:
    MapTruthTest() : ViewTest(viewById("attention_map")) {}

private:
    ViewInput inputOf(const ParameterValues& options, std::optional<Viewport::Range> range) const {
        ViewInput input = needleInput({"keydiff@0.25", "snapkv@0.25"});
        ViewDataRequest request = dataRequest(input, options);
        request.width = request.height = 600;
        request.range = range;
        input.data.value = makerFor(m_view)->make(runner(), request, {}, [](const auto&) {});
        return input;
    }
    Scene sceneOf(const ViewInput& input, const ParameterValues& options, std::optional<Viewport::Range> range,
                  ThemeId theme = ThemeId::Light) const {
        Viewport shown = viewport(620, 600, m_text, theme);
        shown.range = range;
        return m_view.buildScene(input, options, shown);
    }

private slots:
    // The map was moved: the new part has not come yet.
    void whatIsNotComputedDoesNotLookMasked() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputOf(options, Viewport::Range{300, 700, 500, 900});
        ViewInput unknown = input; // before the coarse picture is there, too
        auto without = std::make_shared<AttentionMapData>(*dataAs<AttentionMapData>(input));
        without->overview = nullptr;
        unknown.data.value = without;
        const Viewport::Range moved{-100, 500, 400, 1000};
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark}) {
            const Colour masked = themeOf(theme).masked;
            for (const ViewInput& shown : {input, unknown}) {
                const Scene scene = sceneOf(shown, options, moved, theme);
                const QImage picture = renderScene(scene, 1);
                QCOMPARE(countColour(picture, pointOf(scene, 150, 700), masked), 0); // below the diagonal, not computed
                QVERIFY(countColour(picture, pointOf(scene, 150, 700), colourMap("viridis", 0.5)) < 169);
                QCOMPARE(countColour(picture, pointOf(scene, -60, 700), masked), 0); // there is nothing at all
                QVERIFY(m_view.factsAt(shown, options, scene, pointOf(scene, 150, 700)).rows.empty());
            }
            const Scene whole = sceneOf(input, options, Viewport::Range{300, 700, 500, 900}, theme);
            QCOMPARE(countColour(renderScene(whole, 1), pointOf(whole, 650, 620), masked), 13 * 13); // computed: masked
        }
    }

    // Every fourth row stands for four: no pixel is "the maximum of all its queries", and nothing is told as if.
    void sampledRowsAreSaidEverywhere() {
        const ParameterValues options = optionsOf(m_view);
        ViewInput input = inputOf(options, std::nullopt);
        auto data = std::make_shared<AttentionMapData>(*dataAs<AttentionMapData>(input));
        data->sampled = true;
        data->rowsLookedAt = 257;
        input.data.value = data;
        const Scene scene = sceneOf(input, options, std::nullopt);
        std::string words;
        for (const std::string& text : scene_checks::textsOf(scene)) words += text + " ";
        QVERIFY2(words.find("keys × 1 of 3 queries a pixel") != std::string::npos, words.c_str());
        QVERIFY2(words.find("sampled rows (257 of 1,028)") != std::string::npos, words.c_str());
        QVERIFY(m_view.finding(input, options).ends_with("(sampled rows)"));
        QCOMPARE(m_view.factsAt(input, options, scene, pointOf(scene, 300, 900)).rows[2].first,
                 std::string("largest weight, sampled rows"));
        QCOMPARE(m_view.table(input, options).columns.back(), std::string("value (sampled rows)"));
    }

    // Weights of the softmax over a chunk are larger than those over all keys: a range of these is none of theirs.
    void aRangeBelongsToItsMap() {
        const Set range{{"range", "weight:1e-06..0.0001"}};
        const auto highOf = [&](const char* map, const Set& set) {
            Set all = set;
            all.emplace_back("map", map);
            const ParameterValues options = optionsOf(m_view, all);
            return *m_view.colourScale(inputOf(options, std::nullopt), options)->range().high;
        };
        QVERIFY(std::abs(highOf("causal", range) - 1e-4) < 1e-9);
        for (const char* map : {"chunks", "non_causal"}) QCOMPARE(highOf(map, range), highOf(map, {}));
        QVERIFY(std::abs(highOf("chunks", {{"range", "chunk-weight:0.001..0.25"}}) - 0.25) < 1e-9);
    }

    void aSmallMapSaysWhereOneIsAndMoves() {
        const ParameterValues options = optionsOf(m_view);
        const Viewport::Range part{300, 400, 700, 800};
        const ViewInput input = inputOf(options, part);
        const Scene scene = sceneOf(input, options, part);
        const auto box = boxOfPick(scene, kMinimap);
        QVERIFY(box && box->width >= 56 && std::abs(box->width - box->height) < 1);
        QCOMPARE(scene_checks::overlappingTexts(scene, m_text), QStringList());
        const Point at{box->x + box->width * 350 / 1028, box->y + box->height * 750 / 1028};
        const RectangleItem* frame = nullptr; // of the part: the last rectangle in ink
        for (const Drawable& item : scene.items)
            if (const auto* rectangle = std::get_if<RectangleItem>(&item);
                rectangle && rectangle->stroke.colour == themeOf(ThemeId::Light).ink && rectangle->stroke.width == 2)
                frame = rectangle;
        QVERIFY(frame && frame->box.grown(0.5).contains(at) && frame->box.width < 0.2 * box->width);
        QCOMPARE(pickAt(scene, at, 0), kMinimap);
        QVERIFY(m_view.factsAt(input, options, scene, at).rows.empty()); // not of the cell behind it
        const Point to{box->x + box->width * 600 / 1028, box->y + box->height * 900 / 1028};
        const auto moved = m_view.draggedTo(input, options, scene, kMinimap, to);
        QVERIFY(moved && moved->range);
        QVERIFY(std::abs(moved->range->xMin - 550) < 1 && std::abs(moved->range->xMax - 650) < 1);
        QVERIFY(std::abs(moved->range->yMin - 850) < 1 && std::abs(moved->range->yMax - 950) < 1);
        const auto edge = m_view.draggedTo(input, options, scene, kMinimap, {box->x - 50, box->bottom() + 50});
        QVERIFY(edge->range->xMin == 0 && edge->range->yMax == 1028); // never beyond what was captured
        QVERIFY(!boxOfPick(sceneOf(inputOf(options, std::nullopt), options, std::nullopt), kMinimap));
    }

    // A locked cell goes along to another capture, unless that is too short to have it.
    void aLockedCellStaysWhereTheCaptureHasIt() {
        const auto capture = makeRandomCapture(5, 300, 1, 2, 1, 8);
        Session before = firstSession(*needleCapture());
        const auto cellOn = [&](const char* cell) {
            setViewOption(before, m_view.card().id, "cell", cell);
            const CarriedSession carried = carriedTo(*capture, before);
            return std::pair{viewOptions(carried.session, m_view).text("cell"), carried.adapted.size()};
        };
        const auto [inside, few] = cellOn("299,120");
        QCOMPARE(inside, std::string("299,120"));
        const auto [outside, more] = cellOn("920-922,120-121");
        QCOMPARE(outside, std::string("none"));
        QCOMPARE(more, few + 1); // and it is said
    }

    // The magnified cells and the small map do not cover each other.
    void theSmallMapLeavesTheMagnifiedCellsFree() {
        for (const char* map : {"causal", "non_causal"})
            for (const QSize size : {QSize(620, 600), QSize(1600, 420), QSize(400, 380)}) {
                const ParameterValues options = optionsOf(m_view, {{"map", map}, {"cell", "750,350"}});
                const Viewport::Range part{300, 400, 700, 800};
                Viewport shown = viewport(size.width(), size.height(), m_text);
                shown.range = part;
                const Scene scene = m_view.buildScene(inputOf(options, part), options, shown);
                const auto minimap = boxOfPick(scene, kMinimap), inset = insetOf(scene);
                QVERIFY(minimap && inset);
                QVERIFY(minimap->right() <= inset->x || inset->right() <= minimap->x || minimap->bottom() <= inset->y ||
                        inset->bottom() <= minimap->y);
            }
    }
};

KVSCOPE_OFFSCREEN_TEST(MapTruthTest)
#include "map_truth_test.moc"
