// The key projection: every kept token has its filled mark, kept marks lie on top, texts neither collide nor leave the
// picture, and the sentence below it counts right.
#include "app/export/scene_export.h"
#include "app/text/qt_text_service.h"
#include "core/engine/forwarding_engine.h"
#include "tests/support/random_capture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_fixture.h"
#include "views/key_projection/projection_marks.h"
#include "views/scene/theme.h"
#include "views/view.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace kvscope;
using namespace kvscope::scene_checks;
using namespace kvscope::view_fixture;

class KeyProjectionViewTest : public QObject {
    Q_OBJECT

    QtTextService* m_text = nullptr;
    ParameterValues m_options{viewById("key_projection").card().options};

    Scene build(const ViewInput& input, const ParameterValues& options, double width = 640, double height = 420,
                ThemeId theme = ThemeId::Light) {
        return viewById("key_projection").buildScene(input, options, viewport(width, height, *m_text, theme));
    }
    static std::set<std::int64_t> idsOf(const PointCloudItem& cloud) { return {cloud.ids->begin(), cloud.ids->end()}; }

private slots:
    void initTestCase() { m_text = new QtTextService; }
    void cleanupTestCase() { delete m_text; }

    void everyTokenBeforeTheCutHasTheMarkOfItsState() {
        const ViewInput input = needleInput({"snapkv@0.1"});
        const Scene scene = build(input, m_options);
        const auto& head = input.panes[0].result->selection.heads[1];
        const std::set<std::int64_t> kept(head.kept.begin(), head.kept.end());
        std::set<std::int64_t> drawn = idsOf(*cloudNamed(scene, "kept"));
        drawn.merge(idsOf(*cloudNamed(scene, "protected")));
        QCOMPARE(drawn, kept);
        QCOMPARE(cloudNamed(scene, "protected")->ids->size(), std::size_t{32}); // SnapKV's window
        QCOMPARE(cloudNamed(scene, "evicted")->ids->size(), std::size_t(995 - head.kept.size()));
        QVERIFY(cloudNamed(scene, "after the cut")->ids->empty());
        QCOMPARE(cloudNamed(scene, "evicted")->fill.a, std::uint8_t{0}); // hollow
        QCOMPARE(cloudNamed(scene, "kept")->fill, themeOf(ThemeId::Light).kept);
    }

    void keptMarksLieOnTop() {
        const std::string text = paintSceneAsText(build(needleInput({"keydiff@0.1"}), m_options));
        const auto at = [&](const char* name) { return text.find(std::string("cloud \"") + name + "\""); };
        QVERIFY(at("evicted") < at("protected") && at("protected") < at("kept"));
        QVERIFY(at("kept") != std::string::npos);
    }

    void retainedOnlyHidesTheEvicted() {
        ParameterValues options = m_options;
        options.set("retained_only", 1);
        const Scene scene = build(needleInput({"keydiff@0.1"}), options);
        QVERIFY(cloudNamed(scene, "evicted")->ids->empty());
        QCOMPARE(cloudNamed(scene, "kept")->ids->size(), std::size_t{100}); // ceil(99.5)
    }

    void marksStandWhereTheProjectionSays() {
        const ViewInput input = needleInput({"keydiff@0.1"});
        ParameterValues options = m_options;
        options.set("x_component", 3);
        options.set("y_component", 1);
        const Scene scene = build(input, options);
        const PointCloudItem& kept = *cloudNamed(scene, "kept");
        for (std::size_t i = 0; i < kept.ids->size(); i += 17) {
            const auto token = static_cast<std::size_t>((*kept.ids)[i]);
            const auto projection = dataAs<ProjectionData>(input);
            const double x = projection->keys.data[token * 5 + 2], y = projection->keys.data[token * 5];
            const double px = scene.plot.x + (x - scene.xMin) / (scene.xMax - scene.xMin) * scene.plot.width;
            const double py = scene.plot.bottom() - (y - scene.yMin) / (scene.yMax - scene.yMin) * scene.plot.height;
            QVERIFY(std::abs((*kept.points)[i].x - px) < 1e-6 && std::abs((*kept.points)[i].y - py) < 1e-6);
            QCOMPARE(pickAt(scene, (*kept.points)[i], 0).kind, PickId::Kind::Token);
        }
    }

    void axesStateComponentsVarianceAndEqualUnits() {
        const Scene scene = build(needleInput({"keydiff@0.1"}), m_options);
        QVERIFY(hasTextFrom(scene, "PC 1 (8.3 % of variance") && hasTextFrom(scene, "PC 2 (7.2 % of variance"));
        QVERIFY(std::abs((scene.xMax - scene.xMin) / scene.plot.width - (scene.yMax - scene.yMin) / scene.plot.height) <
                1e-9);
    }

    void panesShareOneRange() {
        ViewInput input = needleInput({"keydiff@0.1", "streaming_llm@0.3"});
        const Scene first = build(input, m_options);
        input.activePane = 1;
        const Scene second = build(input, m_options);
        QCOMPARE(first.xMin, second.xMin);
        QCOMPARE(first.yMax, second.yMax);
    }

    void textsNeitherCollideNorLeave_data() {
        QTest::addColumn<int>("width");
        QTest::addColumn<int>("height");
        for (const auto& [w, h] : {std::pair{220, 160}, {300, 220}, {270, 470}, {640, 400}, {1400, 900}})
            QTest::addRow("%dx%d", w, h) << w << h;
    }
    void textsNeitherCollideNorLeave() {
        QFETCH(int, width);
        QFETCH(int, height);
        for (const char* policy : {"keydiff@0.1", "snapkv@0.5", "keydiff,prompt_block=128@0.2"})
            for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark}) {
                const Scene scene = build(needleInput({policy}), m_options, width, height, theme);
                QCOMPARE(misplacedTexts(scene, *m_text), QStringList());
            }
    }

    void aLowAndWidePictureNamesItsMarksBesideThePlot() {
        const ViewInput input = needleInput({"snapkv@0.25", "keydiff@0.25"});
        Viewport frame = viewport(340, 130, *m_text);
        frame.besideOthers = true;
        const Scene scene = viewById("key_projection").buildScene(input, m_options, frame);
        for (const char* entry : {"kept 217", "evicted 746", "protected 32", "needle"})
            QVERIFY2(scene_checks::hasTextFrom(scene, entry), entry);
        QVERIFY(scene.plot.x > 110 && scene.plot.width > 150);
        QCOMPARE(misplacedTexts(scene, *m_text), QStringList());
    }

    void findingCountsTheNeedle() {
        const ViewInput input = needleInput({"keydiff:kvpress@0.1"});
        std::int64_t evicted = 0;
        const auto& kept = input.panes[0].result->selection.heads[1].kept;
        for (const TokenIndex t : input.focus.selected) evicted += std::find(kept.begin(), kept.end(), t) == kept.end();
        QCOMPARE(viewById("key_projection").finding(input, m_options),
                 QString("%1 of 48 needle tokens evicted by KeyDiff at 99 tokens (9.9 %)").arg(evicted).toStdString());
    }

    void simulatedRunsSaySo() {
        ViewInput input = needleInput({"keydiff,prompt_block=128@0.2"});
        Viewport v = viewport(700, 500, *m_text);
        for (const bool forExport : {false, true}) {
            v.forExport = forExport;
            QVERIFY(says(viewById("key_projection").buildScene(input, m_options, v),
                         "simulated on full-attention tensors"));
        }
    }

    void crowdsAreThinnedOutAloud() {
        const auto capture = makeRandomCapture(5, 30000, 1, 4, 2, 8);
        const ViewInput input = makeInput(capture, {"uniform@0.05"}, 0, 1);
        const Scene scene = build(input, optionsOf(viewById("key_projection"), {{"crowd", "marks"}}));
        const auto kept = cloudNamed(scene, "kept")->ids->size(), evicted = cloudNamed(scene, "evicted")->ids->size();
        QCOMPARE(kept, std::size_t(1125)); // all kept: ceil(0.05 * 22,500)
        QVERIFY(evicted <= 20'000 && evicted >= 10'000);
        QVERIFY(says(scene, "of 21,375 evicted; all kept shown"));
    }

    // The plane of the values, of the queries: their own mean and axes, recomputed by plain loops.
    void valuesAndQueriesHaveAPlaneOfTheirOwn() {
        for (const auto& [source, role, head] :
             {std::tuple{"values", TensorRole::Values, 1}, {"queries", TensorRole::Queries, 4}}) {
            ParameterValues options = m_options;
            options.setText("source", source);
            ViewInput input = needleInput({"keydiff@0.1"});
            fillData(input, viewById("key_projection"), options);
            const auto data = dataAs<ProjectionData>(input);
            const HostTensor all = needleCapture()->read(LayerIndex(3), role, {});
            const std::int64_t n = all.shape[1], d = all.shape[2];
            const float* rows = all.data.data() + head * n * d;
            QCOMPARE(data->keys.shape[0], n);
            QVERIFY(data->queries.empty()); // queries have no place among values
            for (std::int64_t t = 0; t < n; t += 97) {
                double x = 0, squares = 0;
                for (std::int64_t c = 0; c < d; ++c) {
                    double mean = 0;
                    for (std::int64_t i = 0; i < n; ++i) mean += double(rows[i * d + c]) / double(n);
                    x += (double(rows[t * d + c]) - mean) * double(data->axes.axes.data[std::size_t(c)]);
                    squares += double(rows[t * d + c]) * double(rows[t * d + c]);
                }
                QVERIFY(std::abs(double(data->keys.data[std::size_t(t * 5)]) - x) < 1e-4);
                QVERIFY(std::abs(double(data->norms[std::size_t(t)]) - std::sqrt(squares)) < 1e-4);
            }
            QVERIFY(hasTextFrom(build(input, options), source));
        }
    }

    void coloursSayPositionAndAgreement() {
        ParameterValues options = m_options;
        options.setText("colour_by", "position");
        ViewInput input = needleInput({"keydiff@0.1", "streaming_llm@0.3"});
        input.focus.selected.clear();
        std::size_t kept = 0, evicted = 0;
        const auto stepColour = [](float shade) {
            return colourMap("viridis", (std::min(23, static_cast<int>(shade * 24)) + 0.5) / 24);
        };
        const Scene byPosition = build(input, options);
        for (const Drawable& item : byPosition.items)
            if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name == "kept")
                for (const std::int64_t token : *cloud->ids) {
                    ++kept;
                    QCOMPARE(cloud->fill, stepColour(float(token) / 994.0F));
                }
        QCOMPARE(kept, std::size_t{100});
        options.setText("colour_by", "panes");
        const auto keptBy = [&](std::size_t pane, std::int64_t token) {
            const auto& list = input.panes[pane].result->selection.heads[1].kept;
            return std::binary_search(list.begin(), list.end(), TokenIndex(token)) ? 1 : 0;
        };
        const Scene byPanes = build(input, options);
        for (const Drawable& item : byPanes.items)
            if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name == "evicted") {
                QCOMPARE(cloud->fill.a, std::uint8_t{0}); // still rings
                evicted += cloud->ids->size();
                for (const std::int64_t token : *cloud->ids)
                    QCOMPARE(cloud->stroke.colour, stepColour(0.5F * float(keptBy(0, token) + keptBy(1, token))));
            }
        QVERIFY2(evicted > 800, qPrintable(QString::number(evicted)));
        for (const char* colour : {"position", "score", "norm", "cluster", "panes"}) {
            options.setText("colour_by", colour);
            fillData(input, viewById("key_projection"), options);
            for (const double width : {220.0, 300.0, 640.0}) {
                const Scene scene = build(input, options, width, 260);
                QCOMPARE(misplacedTexts(scene, *m_text), QStringList());
            }
        }
        const auto texts = textsOf(build(input, options));
        QVERIFY(std::count(texts.begin(), texts.end(), std::string("colour: panes that keep it")) == 1);
    }

    // Centres and nearest centres of the keys in the head, by plain loops; ties to the earlier one.
    void clustersAreThoseOfTheGreedyCentres() {
        const ParameterValues options =
            optionsOf(viewById("key_projection"), {{"colour_by", "cluster"}, {"centres", "7"}});
        const ViewInput input = inputFor(viewById("key_projection"), {"snapkv@0.2"}, options);
        const HostTensor keys = needleCapture()->read(LayerIndex(3), TensorRole::Keys, {});
        const std::int64_t n = keys.shape[1], d = keys.shape[2];
        std::vector<std::int64_t> centres = {0}, nearest(std::size_t(n), 0);
        std::vector<double> best(std::size_t(n), INFINITY);
        while (true) {
            for (std::int64_t t = 0; t < n; ++t) {
                double square = 0;
                for (std::int64_t c = 0; c < d; ++c)
                    square += std::pow(double(keys.data[std::size_t((n + t) * d + c)]) -
                                           double(keys.data[std::size_t((n + centres.back()) * d + c)]),
                                       2);
                if (square < best[std::size_t(t)]) {
                    best[std::size_t(t)] = square;
                    nearest[std::size_t(t)] = std::int64_t(centres.size()) - 1;
                }
            }
            if (centres.size() == 7) break;
            centres.push_back(std::max_element(best.begin(), best.end()) - best.begin());
        }
        const Scene scene = build(input, options, 900, 700);
        std::vector<std::int64_t> marked;
        for (const Drawable& item : scene.items)
            if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name == "centres") {
                QCOMPARE(cloud->fill, categoryColour(marked.size(), ThemeId::Light)); // its cluster's
                QCOMPARE(cloud->stroke.colour, themeOf(ThemeId::Light).ink);
                marked.insert(marked.end(), cloud->ids->begin(), cloud->ids->end());
            }
        QCOMPARE(marked, centres);
        const ViewTable table = viewById("key_projection").table(input, options);
        for (std::int64_t t = 0; t < n; ++t) QCOMPARE(table.cell(t, 6), std::to_string(nearest[std::size_t(t)]));
        for (const Drawable& item : scene.items)
            if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name == "kept")
                for (const std::int64_t token : *cloud->ids)
                    QCOMPARE(cloud->fill, categoryColour(std::size_t(nearest[std::size_t(token)]), ThemeId::Light));
        QVERIFY(hasTextFrom(scene, "7 greedy centres, radius "));
        std::set<std::string> names;
        for (const Drawable& item : scene.items)
            if (const auto* text = std::get_if<TextItem>(&item); text && text->style.weight == FontWeight::Bold)
                names.insert(text->text);
        QCOMPARE(names, (std::set<std::string>{"0", "1", "2", "3", "4", "5", "6"}));
    }

    // More centres than colours: whoever shares one lies farther away than it would under any other colour.
    void colourRepeatsFarAway() {
        const ParameterValues options =
            optionsOf(viewById("key_projection"), {{"colour_by", "cluster"}, {"centres", "40"}});
        const ViewInput input = inputFor(viewById("key_projection"), {"snapkv@0.2"}, options);
        const auto& data = *dataAs<ProjectionData>(input);
        const ProjectionMarks marks = makeMarks(input, input.panes[0], options);
        QCOMPARE(marks.categoryOfCentre.size(), std::size_t{40});
        const auto gap = [&](std::size_t centre, std::int32_t colour) {
            double least = INFINITY;
            for (std::size_t other = 0; other < centre; ++other)
                if (marks.categoryOfCentre[other] == colour) {
                    const Point a = keyPoint(data, marks, data.centres[centre]),
                                b = keyPoint(data, marks, data.centres[other]);
                    least = std::min(least, std::hypot(a.x - b.x, a.y - b.y));
                }
            return least;
        };
        for (std::size_t centre = 0; centre < 40; ++centre) {
            if (centre < kCategoryColours) QCOMPARE(marks.categoryOfCentre[centre], std::int32_t(centre));
            for (std::int32_t colour = 0; centre >= kCategoryColours && colour < std::int32_t(kCategoryColours);
                 ++colour)
                QVERIFY(gap(centre, marks.categoryOfCentre[centre]) >= gap(centre, colour));
        }
        for (std::size_t token = 0; token < marks.category.size(); ++token)
            QCOMPARE(marks.category[token], marks.categoryOfCentre[std::size_t(data.cluster[token])]);
        QVERIFY(says(build(input, options, 1200, 700), "colours repeat"));
    }

    // A pass over the keys for every centre: nobody pays for it who looks at another colour.
    void centresAreSoughtOnlyWhereTheyAreShown() {
        struct Watched final : ForwardingEngine {
            using ForwardingEngine::ForwardingEngine;
            mutable std::map<std::string, int> calls;
            const Engine& to(const char* primitive) const override {
                ++calls[primitive];
                return ForwardingEngine::to(primitive);
            }
        };
        const auto engine = makeCpuEngine(2);
        const auto watched = std::make_shared<Watched>(*engine);
        const LayerRunner fresh(watched);
        ViewInput input = needleInput({"keydiff@0.1"});
        const ViewDataMaker& maker = *makerFor(viewById("key_projection"));
        const auto make = [&](const ParameterValues& options) {
            ViewDataRequest request = dataRequest(input, options);
            input.data.value = maker.make(fresh, request, {}, [](const auto&) {});
            return request;
        };
        std::set<std::string> keys, identities;
        for (const char* colour : {"state", "position", "score", "norm", "panes"}) {
            const ViewDataRequest request =
                make(optionsOf(viewById("key_projection"), {{"colour_by", colour}, {"centres", "9"}}));
            keys.insert(maker.key(request));
            identities.insert(maker.identity(request));
            QVERIFY(dataAs<ProjectionData>(input)->cluster.empty() && dataAs<ProjectionData>(input)->centres.empty());
        }
        QCOMPARE(watched->calls["greedyCenters"], 0);
        QCOMPARE(keys.size(), std::size_t{1}); // another colour, the same data
        // Until the centres are there the old picture stays, and says what it waits for.
        const ParameterValues clusters =
            optionsOf(viewById("key_projection"), {{"colour_by", "cluster"}, {"centres", "9"}});
        const Scene before = build(input, clusters);
        const auto texts = textsOf(before);
        QVERIFY(std::count(texts.begin(), texts.end(), std::string("looking for the greedy centres…")) == 1);
        QVERIFY(!cloudNamed(before, "centres"));
        QCOMPARE(cloudNamed(before, "kept")->fill, themeOf(ThemeId::Light).kept);
        QCOMPARE(viewById("key_projection").table(input, clusters).cell(3, 6), std::string());
        const ViewDataRequest asked = make(clusters);
        QVERIFY(!keys.contains(maker.key(asked)) && identities.contains(maker.identity(asked)));
        QCOMPARE(watched->calls["greedyCenters"], 1);
        QCOMPARE(dataAs<ProjectionData>(input)->centres.size(), std::size_t{9});
        QCOMPARE(dataAs<ProjectionData>(input)->cluster.size(), std::size_t{1028});
        QVERIFY(!viewById("key_projection").table(input, clusters).cell(3, 6).empty());
        make(optionsOf(viewById("key_projection")));
        make(clusters); // both are kept
        QCOMPARE(watched->calls["greedyCenters"], 1);
        QCOMPARE(watched->calls["principalAxes"], 1);
    }

    void emptyStatesSayWhy() {
        ViewInput input = needleInput({"keydiff@0.1"});
        input.panes[0].result = nullptr;
        QCOMPARE(textsOf(build(input, m_options)).front(), std::string("Computing the first selection…"));
        input.panes[0].error = "H2O needs all queries";
        QCOMPARE(textsOf(build(input, m_options)).front(), std::string("H2O needs all queries."));
        input.panes.clear();
        QVERIFY(!textsOf(build(input, m_options)).empty());
        QVERIFY(!textsOf(build(ViewInput{}, m_options)).empty());
        QVERIFY(!viewById("key_projection").finding(ViewInput{}, m_options).empty());
    }

    void tableHoldsEveryToken() {
        const ViewInput input = needleInput({"keydiff@0.1"});
        const ViewTable table = viewById("key_projection").table(input, m_options);
        QCOMPARE(table.rowCount, std::int64_t{1028});
        QCOMPARE(table.cell(1000, 3), std::string("after the cut"));
        std::int64_t kept = 0;
        for (std::int64_t row = 0; row < table.rowCount; ++row) kept += table.cell(row, 3) == "kept";
        QCOMPARE(kept, std::int64_t{100});
    }

    void pictureShowsKeptBlueAndEvictedOrange() {
        const Scene scene = build(needleInput({"streaming_llm@0.3"}), m_options, 800, 600);
        const QImage image = renderScene(scene, 1);
        int blue = 0, orange = 0, ink = 0;
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) {
                const QColor c = image.pixelColor(x, y);
                blue += c.blue() > 150 && c.red() < 60;
                orange += c.red() > 190 && c.blue() < 90;
                ink += c.lightness() < 60;
            }
        QVERIFY2(blue > 1500 && orange > 1500 && ink > 200,
                 qPrintable(QString("%1 blue, %2 orange, %3 ink").arg(blue).arg(orange).arg(ink)));
    }
};

KVSCOPE_OFFSCREEN_TEST(KeyProjectionViewTest)
#include "key_projection_view_test.moc"
