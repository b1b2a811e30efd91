// Phase map: cells against their own runs, axes from the parameter table, the winner, what a click gives, and the
// picture.
#include "app/export/scene_export.h"
#include "app/study/makers/phase_axis.h"
#include "core/metrics/fidelity.h"
#include "tests/support/error_message.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/policy_style.h"
#include "views/phase_map/phase_map_data.h"
#include "views/phase_map/phase_painter.h"
#include "views/view.h"

#include <QRegularExpression>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stop_token>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

double groupError(const std::string& spec) {
    double sum = 0;
    for (std::size_t q = 4; q < 8; ++q) // the query heads of KV head 1
        sum += measured(spec, 3)->fidelity->meanOutputError[q] / 4;
    return sum;
}

PhaseAxis axisOf(const std::string& typed, const std::string& policy, std::size_t points = 8) {
    return phaseAxisOf(typed, PolicySpec::parse(policy), points, 995);
}

const RectangleItem* cellOf(const Scene& scene, std::int64_t index) {
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item); box && box->pick == PickId{PickId::Kind::Cell, index})
            return box;
    return nullptr;
}

ViewDataRequest requestFor(const ParameterValues& options, const std::string& spec) {
    ViewDataRequest request;
    request.capture = needleCapture();
    request.layer = LayerIndex(3);
    request.kvHead = KvHeadIndex(1);
    request.cut = Cut::resolve("default", *request.capture);
    request.panes.push_back({needleRequest(spec), {}});
    request.options = options;
    return request;
}

std::string refusalOf(const ParameterValues& options, const std::string& spec) {
    return errorMessage(
        [&] { makerFor(viewById("phase_map"))->make(runner(), requestFor(options, spec), {}, [](const auto&) {}); });
}

} // namespace

class PhaseMapViewTest : public ViewTest {
    Q_OBJECT

public:
    PhaseMapViewTest() : ViewTest(viewById("phase_map")) {}

private slots:
    void cellsAreTheRunsOfTheirSetting() {
        const ParameterValues options = optionsOf(m_view, {{"x", "budget=0.1,0.3"}, {"y", "window=8,32,64"}});
        const auto data = dataAs<PhaseMapData>(inputFor(m_view, {"snapkv@0.25", "keydiff@0.25"}, options));
        QCOMPARE(data->panes.size(), std::size_t{1});
        QCOMPARE(data->cells.size(), std::size_t{6});
        for (std::size_t x = 0; x < 2; ++x)
            for (std::size_t y = 0; y < 3; ++y) {
                QVERIFY(data->cells[y * data->x.texts.size() + x].computed);
                QCOMPARE(data->cells[y * data->x.texts.size() + x].values[0],
                         groupError("snapkv,window=" + data->y.texts[y] + "@" + data->x.texts[x]));
                QVERIFY(std::abs(data->cells[y * data->x.texts.size() + x].kept[0] -
                                 std::ceil(std::stod(data->x.texts[x]) * 995 - 1e-9) / 995) < 1e-12);
            }
    }

    void theWinnerIsThePaneWithTheSmallestError() {
        const ParameterValues options =
            optionsOf(m_view, {{"x", "budget=0.05,0.25,0.6"}, {"y", "window=8,64"}, {"colour", "winner"}});
        const auto data = dataAs<PhaseMapData>(inputFor(m_view, {"snapkv@0.25", "keydiff@0.25"}, options));
        QCOMPARE(data->panes.size(), std::size_t{2});
        for (std::size_t x = 0; x < 3; ++x)
            for (std::size_t y = 0; y < 2; ++y) {
                // KeyDiff has no window: it stays as it is, and its budget follows.
                const double snapkv = groupError("snapkv,window=" + data->y.texts[y] + "@" + data->x.texts[x]);
                const double keydiff = groupError("keydiff@" + data->x.texts[x]);
                QCOMPARE(data->cells[y * data->x.texts.size() + x].values, (std::vector<double>{snapkv, keydiff}));
                QCOMPARE(data->winner(data->cells[y * data->x.texts.size() + x]), snapkv < keydiff ? 0 : 1);
            }
        PhaseMapData mass;
        mass.higherIsBetter = true;
        QCOMPARE(mass.winner({true, {0.2, NAN, 0.5}, {}, {}}), 2);
        QCOMPARE(mass.winner({true, {NAN, NAN}, {}, {}}), -1);
    }

    // Two anchors that rank the tokens alike keep the same ones everywhere: neither wins.
    void equalValuesAreATie() {
        PhaseMapData three;
        QCOMPARE(three.winner({true, {0.2, NAN, 0.2}, {}, {}}), PhaseMapData::kTie);
        QCOMPARE(three.winner({true, {0.3, 0.3, 0.2}, {}, {}}), 2); // a tie for the second place is none
        QCOMPARE(three.winner({true, {0.2, 0.3, 0.3}, {}, {}}), 0);
        const ParameterValues options =
            optionsOf(m_view, {{"colour", "winner"}, {"x", "budget=0.1,0.5"}, {"y", "window_share=0,0.3"}});
        const ViewInput input =
            inputFor(m_view, {"keydiff,anchor=normalised_mean@0.25", "keydiff,anchor=pairwise@0.25"}, options);
        const std::string text = m_view.finding(input, options);
        QVERIFY2(text.find("wins 0, B KeyDiff") < text.size() && text.ends_with("wins 0, tied 4 of 4 settings"),
                 text.c_str());
        const ViewTable table = m_view.table(input, options);
        for (std::int64_t row = 0; row < table.rowCount; ++row) QCOMPARE(table.cell(row, 6), std::string());
        const Scene scene = m_view.buildScene(input, options, viewport(600, 400, m_text));
        QCOMPARE(cellOf(scene, 0)->fill, themeOf(ThemeId::Light).sunken);
        const auto texts = scene_checks::textsOf(scene);
        QVERIFY(std::ranges::count(texts, "=") == 4 && std::ranges::count(texts, "= tie") == 1);
    }

    // 0.5 lies between the numbers 0.1 and 100, and yet not between a tenth and 100 tokens.
    void theRingStandsAmongBudgetsOfItsUnit() {
        const auto placeOf = [&](const char* x, const char* pane) {
            const ParameterValues options = optionsOf(m_view, {{"x", x}, {"y", "window=8,64"}});
            const ViewInput input = inputFor(m_view, {pane}, options);
            const Scene scene = m_view.buildScene(input, options, viewport(600, 400, m_text));
            const bool hasRing = std::ranges::count(scene_checks::textsOf(scene), "now") == 1;
            return hasRing ? phasePresentPlace(*dataAs<PhaseMapData>(input), input)->x : -1.0;
        };
        QCOMPARE(placeOf("budget=0.1,100t,0.9", "snapkv@0.5"), -1.0);
        QCOMPARE(placeOf("budget=0.1,0.9,100t", "snapkv@0.5"), 0.5);
        QCOMPARE(placeOf("budget=0.1,100t,300t", "snapkv@200t"), 1.5);
    }

    void axesComeFromTheParameterTable() {
        QCOMPARE(axisOf("anchor", "keydiff").texts,
                 (std::vector<std::string>{"mean", "normalised_mean", "median", "pairwise"}));
        QCOMPARE(axisOf("centred", "compactor").texts, (std::vector<std::string>{"false", "true"}));
        QCOMPARE(axisOf("window=64,8,64", "snapkv").texts, (std::vector<std::string>{"64", "8"})); // as typed, once
        QCOMPARE(axisOf("budget=0.1,100t", "snapkv").texts, (std::vector<std::string>{"0.1", "100t"}));
        const PhaseAxis window = axisOf("window", "snapkv"); // 1 to 1024 about 32: factors
        QVERIFY(window.numbers.front() == 4 && window.numbers.back() == 256 &&
                std::is_sorted(window.numbers.begin(), window.numbers.end()));
        const PhaseAxis share = axisOf("window_share", "keydiff", 10); // 0 to 0.9: equal steps
        QCOMPARE(share.numbers.front(), 0.0);
        QCOMPARE(share.numbers.back(), 0.9);
        QVERIFY(std::abs(share.numbers[1] - 0.1) < 1e-9);
        QCOMPARE(axisOf("recent_share", "h2o").texts[4], std::string("0.57")); // not 0.5700000000000001
        QVERIFY(axisOf("protect_last", "keydiff").numbers.back() <= 995);      // no protection beyond the prompt
        QCOMPARE(axisOf("budget", "keydiff").numbers.front(), 0.02);
    }

    void emptyAxesAreTheBudgetAndTheFirstNumber() {
        const PolicyCard& keydiff = policyById("keydiff").card();
        QCOMPARE(standardAxis(keydiff, ""), std::string("budget"));
        QCOMPARE(standardAxis(keydiff, "budget"), std::string("window_share"));
        QCOMPARE(standardAxis(keydiff, "window_share"), std::string("budget"));
    }

    void whatCannotBeVariedIsRefusedByName() {
        QVERIFY(refusalOf(optionsOf(m_view, {{"x", "windw"}}), "snapkv@0.25").find("window") != std::string::npos);
        QVERIFY(refusalOf(optionsOf(m_view, {{"x", "window="}}), "snapkv@0.25").find("no values") != std::string::npos);
        QVERIFY(refusalOf(optionsOf(m_view, {{"x", "window=1,9999"}}), "snapkv@0.25").find("1024") !=
                std::string::npos);
        QVERIFY(refusalOf(optionsOf(m_view, {{"x", "window"}, {"y", "window=3"}}), "snapkv@0.25").find("both axes") !=
                std::string::npos);
        QVERIFY(refusalOf(optionsOf(m_view), "exact").find("nothing that could be varied") != std::string::npos);
    }

    void partsComeCoarseToFineAndStop() {
        const ParameterValues options = optionsOf(m_view, {{"grid", "5"}});
        std::vector<std::size_t> done;
        std::shared_ptr<const PhaseMapData> fourth;
        makerFor(viewById("phase_map"))
            ->make(runner(), requestFor(options, "keydiff@0.25"), {}, [&](const ViewDataMaker::Value& value) {
                const auto data = std::dynamic_pointer_cast<const PhaseMapData>(value);
                done.push_back(static_cast<std::size_t>(std::count_if(data->cells.begin(), data->cells.end(),
                                                                      [](const PhaseCell& c) { return c.computed; })));
                if (done.size() == 4) fourth = data;
            });
        QCOMPARE(done.size(), std::size_t{25});
        for (std::size_t i = 0; i < done.size(); ++i) QCOMPARE(done[i], i + 1);
        QVERIFY(fourth->cells[0].computed && fourth->cells[4].computed && fourth->cells[20].computed &&
                fourth->cells[24].computed); // the corners
        std::stop_source stop;
        int parts = 0;
        const auto cancelAfterThree = [&] {
            makerFor(viewById("phase_map"))
                ->make(runner(), requestFor(options, "keydiff@0.25"), Checkpoint(stop.get_token()), [&](const auto&) {
                    if (++parts == 3) stop.request_stop();
                });
        };
        QVERIFY_THROWS_EXCEPTION(Cancelled, cancelAfterThree());
        QCOMPARE(parts, 3);
    }

    void aClickGivesTheCellsValues() {
        const ParameterValues options = optionsOf(m_view, {{"x", "budget=0.1,0.3"}, {"y", "window=8,32,64"}});
        const ViewInput input = inputFor(m_view, {"snapkv@0.25"}, options);
        const Scene scene = m_view.buildScene(input, options, viewport(500, 400, m_text));
        const Box box = cellOf(scene, 5)->box; // x 1, y 2: the upper right corner
        QVERIFY(box.x > cellOf(scene, 0)->box.x && box.y < cellOf(scene, 0)->box.y);
        const PointFacts facts = m_view.factsAt(input, options, scene, {box.x + 3, box.y + 3});
        QVERIFY(facts.settingChange.has_value());
        QCOMPARE(facts.settingChange->pane, 0);
        QCOMPARE(facts.settingChange->budget->text(), std::string("0.3"));
        QCOMPARE(facts.settingChange->values, (std::vector<std::pair<std::string, std::string>>{{"window", "64"}}));
        QCOMPARE(facts.rows[0].second, std::string("budget 30 %, observation window W 64"));
    }

    void theRingStandsAtThePresentSetting() {
        PhaseAxis axis{"budget", "", {"0.1", "0.3", "0.5"}, {0.1, 0.3, 0.5}, true};
        QCOMPARE(placeOnAxis(axis, "0.3").value(), 1.0);
        QVERIFY(std::abs(placeOnAxis(axis, "0.4").value() - 1.5) < 1e-12);
        QVERIFY(!placeOnAxis(axis, "0.7") && !placeOnAxis(axis, "") &&
                !placeOnAxis({"a", "", {"x", "y"}, {0, 1}, false}, "0.5"));
        const ParameterValues options = optionsOf(m_view, {{"x", "budget=0.1,0.3"}, {"y", "window=8,32,64"}});
        const ViewInput input = inputFor(m_view, {"snapkv@0.3"}, options);
        const Scene scene = m_view.buildScene(input, options, viewport(500, 400, m_text));
        const Box cell = cellOf(scene, 3)->box; // 0.3, window 32
        const auto ring = std::find_if(scene.items.rbegin(), scene.items.rend(), [](const Drawable& d) {
            const auto* circle = std::get_if<CircleItem>(&d);
            return circle && circle->stroke.width == 2; // not a mark of the legend
        });
        QVERIFY(ring != scene.items.rend());
        const Point centre = std::get<CircleItem>(*ring).centre;
        QVERIFY(std::abs(centre.x - cell.x - cell.width / 2) < 1 && std::abs(centre.y - cell.y - cell.height / 2) < 1);
    }

    // Nobody guesses what the axes are: where they have no room for their names, or not for the whole of one, the
    // legend has them.
    void theAxesAreNamedAtEverySize() {
        const ParameterValues options = optionsOf(m_view, {{"x", "budget=0.1,0.3"}, {"y", "window=8,32,64"}});
        const ViewInput input = inputFor(m_view, {"snapkv@0.3"}, options);
        const auto data = dataAs<PhaseMapData>(input);
        for (const QSize size : {QSize(940, 126), QSize(490, 150), QSize(490, 200), QSize(500, 400)}) {
            const Scene scene = build(input, options, size.width(), size.height());
            const auto texts = scene_checks::textsOf(scene);
            const auto isThere = [&](const std::string& words) {
                return std::find(texts.begin(), texts.end(), words) != texts.end();
            };
            QVERIFY2((isThere(data->x.title) && isThere(data->y.title)) !=
                         isThere("across: budget, up: observation window W"),
                     paintSceneAsText(scene).c_str());
            QVERIFY(isThere("now"));
            QVERIFY(isThere("A SnapKV, relative output error, KV head 1"));
            QCOMPARE(scene_checks::overlappingTexts(scene, m_text), QStringList());
            // No swatch of the policy's colour beside cells that have the colours of values.
            for (const Drawable& item : scene.items)
                if (const auto* swatch = std::get_if<PolygonItem>(&item))
                    QVERIFY(swatch->fill != policyStyle("snapkv", ThemeId::Light).colour);
        }
        const ViewInput elsewhere = inputFor(m_view, {"snapkv@0.9"}, options); // off the map: no ring, no word for it
        const auto texts = scene_checks::textsOf(build(elsewhere, options, 500, 400));
        QVERIFY(std::find(texts.begin(), texts.end(), std::string("now")) == texts.end());
    }

    void aRefusedSettingIsShownAsSuch() {
        auto data = std::make_shared<PhaseMapData>();
        data->x = {"budget", "Budget", {"0.1", "0.2"}, {0.1, 0.2}, true};
        data->y = {"window", "Window", {"8"}, {8}, true};
        data->panes = {{'A', "snapkv", "SnapKV"}};
        data->cells = {{true, {0.5}, {0.1}, ""}, {true, {NAN}, {NAN}, "the window is too long"}};
        ViewInput input = needleInput({"snapkv@0.25"});
        input.data.value = data;
        const ParameterValues options = optionsOf(m_view);
        const Scene scene = m_view.buildScene(input, options, viewport(500, 300, m_text));
        QCOMPARE(cellOf(scene, 1)->fill, themeOf(ThemeId::Light).notANumber);
        const auto low = scene_checks::textsOf(
            build(input, options, 500, 130)); // "Window" is short, and yet has no room beside the axis
        QVERIFY(std::find(low.begin(), low.end(), std::string("across: budget, up: window")) != low.end());
        const Box box = cellOf(scene, 1)->box;
        const PointFacts facts = m_view.factsAt(input, options, scene, {box.x + 3, box.y + 3});
        QCOMPARE(facts.rows[1].second, std::string("refused"));
        QCOMPARE(facts.rows[2].second, std::string("the window is too long"));
        QCOMPARE(m_view.table(input, options).cell(1, 2), std::string());
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(300, 220), QSize(460, 300), QSize(930, 260), QSize(1400, 900)})
            QTest::newRow(qPrintable(QString("%1x%2").arg(size.width()).arg(size.height()))) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        for (const char* colour : {"measure", "winner"}) {
            const ParameterValues options = optionsOf(m_view, {{"colour", colour}, {"y", "anchor"}});
            const ViewInput input = inputFor(m_view, {"keydiff@0.25", "snapkv@0.25"}, options);
            QCOMPARE(misplacedTexts(m_view, input, options, size, m_text), QStringList());
        }
    }

    void thePictureShowsTheTerritories() {
        const ParameterValues options = optionsOf(m_view, {{"colour", "winner"}, {"y", "window=4,16,64"}});
        const ViewInput input = inputFor(m_view, {"snapkv@0.25", "keydiff@0.25"}, options);
        const auto data = dataAs<PhaseMapData>(input);
        const QImage image = renderScene(m_view.buildScene(input, options, viewport(600, 400, m_text)), 1);
        std::vector<int> pixels(2, 0), wins(2, 0);
        for (const PhaseCell& cell : data->cells) ++wins[static_cast<std::size_t>(data->winner(cell))];
        const QColor colours[] = {QColor(0x5D, 0x50, 0x04), QColor(0x03, 0x65, 0x69)};
        for (int y = 28; y < image.height(); ++y)
            for (int x = 60; x < image.width(); ++x)
                for (const std::size_t i : {0, 1}) pixels[i] += image.pixelColor(x, y) == colours[i];
        for (const std::size_t i : {0, 1}) // the area is that of the cells won, less their letters
            QVERIFY2(std::abs(pixels[i] / static_cast<double>(pixels[0] + pixels[1]) - wins[i] / 24.0) < 0.03,
                     qPrintable(QString("%1 %2").arg(pixels[i]).arg(wins[i])));
    }

    // Nobody should take the number behind a setting for the setting's.
    void theSentenceNamesItsNumbers() {
        const ParameterValues options = optionsOf(m_view, {{"x", "budget=0.1,0.9"}, {"y", "window=4,16"}});
        const std::string text = m_view.finding(inputFor(m_view, {"snapkv@0.25"}, options), options);
        QVERIFY2(QRegularExpression("^The .* of SnapKV is best at budget [19]0 %, [^,]* (4|16), where it is [0-9.]+; "
                                    "worst at budget [19]0 %, [^,]* (4|16), where it is [0-9.]+$")
                     .match(text.c_str())
                     .hasMatch(),
                 text.c_str());
    }

    void emptyStatesSayWhatIsMissing() {
        const ParameterValues options = optionsOf(m_view);
        QVERIFY(m_view.finding({}, options).find("Open one") != std::string::npos);
        ViewInput none = needleInput({});
        none.data = {};
        QVERIFY(m_view.finding(none, options).find("add a pane") != std::string::npos);
        QCOMPARE(m_view.table(none, options).rowCount, std::int64_t{0});
    }
};

KVSCOPE_OFFSCREEN_TEST(PhaseMapViewTest)
#include "phase_map_view_test.moc"
