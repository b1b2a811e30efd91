// One colour column for every view that has values: what its scale says about any list, and that head grid, phase map
// and key projection draw, choose and read it as the attention map does.
#include "core/base/error.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/colour_scale.h"
#include "views/head_grid/head_grid_data.h"
#include "views/phase_map/phase_map_data.h"
#include "views/view.h"
#include "views/walk/walk_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

using Set = std::vector<std::pair<std::string, std::string>>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A view with a column, as a test asks for it.
struct Case {
    const View* view;
    Set set;
    const char* quantity;
    std::vector<std::string> panes = {"keydiff@0.25"};
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {&viewById("head_grid"), {}, "output_error"},
        {&viewById("head_grid"), {{"quantity", "kept_tokens"}}, "kept_tokens", {"pyramidkv@0.25"}},
        {&viewById("phase_map"), {{"x", "budget=0.1,0.2,0.4"}, {"y", "window=8,64"}}, "output_error", {"snapkv@0.25"}},
        {&viewById("key_projection"), {{"colour_by", "score"}}, "keydiff"},
        {&viewById("key_projection"), {{"colour_by", "norm"}}, "norm"},
        {&viewById("key_projection"), {{"colour_by", "position"}}, "position"}};
    return all;
}

Set joined(Set set, const Set& more) {
    set.insert(set.end(), more.begin(), more.end());
    return set;
}

ValueScale scaleOf(std::vector<double> values, bool isSigned = false, const char* range = "auto") {
    return {std::move(values), isSigned, "error", "heads", "magma", ValueRange::parse(range)};
}

} // namespace

class ColourScaleTest : public ViewTest {
    Q_OBJECT

public:
    ColourScaleTest() : ViewTest(viewById("head_grid")) {}

private slots:
    void coloursRunOverTheValues() {
        const ValueScale scale = scaleOf({3, kNaN, 1, 2, 5});
        QCOMPARE(*scale.range().low, 1.0);
        QCOMPARE(*scale.range().high, 5.0);
        QCOMPARE(scale.colourOf(2), colourMap("magma", 0.25));
        QCOMPARE(scale.colourOf(7), colourMap("magma", 1));
        QCOMPARE(scale.sharesBeyond(), (std::pair<double, double>{0, 0}));
        QVERIFY(scaleOf({kNaN}).isEmpty() && !scale.isEmpty());
        const ValueScale alike = scaleOf({0.25, 0.25});
        QVERIFY(*alike.range().low == 0.25 && *alike.range().high > 0.25);
        const ColourColumnSpec column = scale.column();
        QCOMPARE(column.lowLabel, std::string("1")); // nothing lies beyond
        QCOMPARE(std::count(column.histogram.begin(), column.histogram.end(), 1.0), std::ptrdiff_t{4});
    }

    // To 1e18 no double is nearer than 128: an end 1 above would be the same end.
    void hugeEqualValuesHaveARangeToo() {
        for (const double value : {1e16, -1e16, 1e18, 3e38}) {
            const ValueScale scale = scaleOf({value, value});
            QVERIFY(*scale.range().low < *scale.range().high);
            QVERIFY(std::isfinite(scale.place(value)));
            const ColourColumnSpec column = scale.column();
            QCOMPARE(std::accumulate(column.histogram.begin(), column.histogram.end(), 0.0), 2.0);
        }
    }

    /// One number stands beside the colours, where its colour is; the other colours are of no value.
    void equalValuesHaveOneTick() {
        const auto ticksOf = [](const ValueScale& scale) {
            const ColourColumnSpec column = scale.column();
            std::string texts = column.lowLabel + column.highLabel;
            for (const Tick& tick : column.ticks) {
                texts += (texts.empty() ? "" : " ") + tick.label;
                if (scale.onlyValue() && tick.value != scale.place(*scale.onlyValue())) texts += " misplaced";
            }
            return texts;
        };
        QCOMPARE(ticksOf(scaleOf({249, kNaN, 249})), std::string("249"));
        QCOMPARE(ticksOf(scaleOf({0.25})), std::string("0.250"));
        QCOMPARE(ticksOf(scaleOf({0, 0}, true)), std::string("0"));
        QCOMPARE(scaleOf({0, 0}, true).column().ticks[0].value, 0.5);
        QVERIFY(!scaleOf({0.3, 0.3}, true).onlyValue()); // how far from 0 is to be seen
        const ValueScale chosen = scaleOf({249, 249}, false, "200..300");
        QVERIFY(!chosen.onlyValue());
        QCOMPARE(chosen.column().highLabel, std::string("300"));
    }

    /// Beside a picture that has a range, it takes no part of what equal values have for one.
    void equalValuesWidenNoSharedRange() {
        const Case one = cases()[1];
        const ParameterValues options = optionsOf(m_view, one.set);
        ViewInput spread = inputWith(one, options), alike = spread;
        const auto with = [](std::vector<double> values) {
            auto data = std::make_shared<HeadGridData>();
            data->quantity = "kept_tokens";
            data->what = "kept tokens";
            data->columns = 2;
            data->rows.push_back({.layer = 0, .computed = true, .values = std::move(values)});
            return data;
        };
        spread.data.value = with({100, 300});
        alike.data.value = with({249, 249});
        const ParameterValues shared = withCommonRange(m_view, {&alike, &spread}, options);
        QCOMPARE(shared.text(kValueRangeOption), std::string("kept_tokens:100..300"));
        QCOMPARE(withCommonRange(m_view, {&alike, &alike}, options), options);
        spread.data.value = with({0.123456, 1.235197}); // rounded outwards to the digits that a bar shows
        alike.data.value = with({0.5, 0.7});
        QCOMPARE(withCommonRange(m_view, {&alike, &spread}, options).text(kValueRangeOption),
                 std::string("kept_tokens:0.123..1.24"));
    }

    void signedValuesKeepZeroInTheMiddle() {
        const ValueScale scale = scaleOf({-0.5, 2}, true);
        QCOMPARE(*scale.range().low, -2.0);
        QCOMPARE(scale.colourOf(0), colourMap("rdbu", 0.5));
        const ValueScale narrow = scaleOf({-0.5, 2}, true, "-1..0.5"); // the farther end moves both
        QCOMPARE(*narrow.range().low, -1.0);
        QCOMPARE(*narrow.range().high, 1.0);
    }

    void aChosenRangeAppliesToItsOwnQuantity() {
        const ValueScale chosen = scaleOf({1, 2, 3, 4, 10}, false, "error:2..4"),
                         other = scaleOf({1, 10}, false, "mass:2..4");
        QCOMPARE(chosen.colourOf(3), colourMap("magma", 0.5));
        QCOMPARE(chosen.sharesBeyond(), (std::pair<double, double>{0.2, 0.2}));
        QCOMPARE(chosen.column().lowLabel, std::string("≤2"));
        QCOMPARE(chosen.column().highLabel, std::string("≥4"));
        QVERIFY(std::abs(chosen.column().low - 1.0 / 9) < 1e-12); // the column still holds all values
        QCOMPARE(*other.range().high, 10.0);
        QCOMPARE(scaleOf({1, 10}, false, "..20").column().high, 1.0); // and what was chosen beyond them
        QCOMPARE(scaleOf({1, 2, 3, 4, 10}).middle(0.2), (std::pair<double, double>{2, 4}));
        QVERIFY(!rangeSetTo(chosen, 3, 3) && !rangeSetTo(chosen, 4, INFINITY));
    }

    void picturesSideBySideShareARange() {
        const Case one{&viewById("key_projection"), {{"colour_by", "norm"}}, "norm"};
        const ParameterValues options = optionsOf(*one.view, one.set);
        const ViewInput a = inputWith(one, options);
        ViewInput b = a;
        b.layer = LayerIndex(0);
        fillData(b, *one.view, options);
        const ValueRange first = one.view->colourScale(a, options)->range(),
                         second = one.view->colourScale(b, options)->range();
        QVERIFY(*first.low != *second.low && *first.high != *second.high);
        const ParameterValues shared = withCommonRange(*one.view, {&a, &b}, options);
        const ValueRange common = ValueRange::parse(shared.text("range"));
        QCOMPARE(common.quantity, std::string("norm"));
        const auto near = [](double x, double y) { return std::abs(x - y) < 1e-8 * std::abs(y); };
        const double low = std::min(*first.low, *second.low), high = std::max(*first.high, *second.high);
        QVERIFY(*common.low <= low && *common.low > 0.98 * low); // rounded outwards
        QVERIFY(*common.high >= high && *common.high < 1.02 * high);
        QVERIFY(near(*one.view->colourScale(a, shared)->range().high, *common.high));
        QCOMPARE(withCommonRange(*one.view, {&a}, options), options); // nothing is beside it
        for (const char* own : {"each", "norm:1..2"}) {
            const ParameterValues chosen = optionsOf(*one.view, joined(one.set, {{"range", own}}));
            QCOMPARE(withCommonRange(*one.view, {&a, &b}, chosen), chosen);
        }
        const ParameterValues each = optionsOf(*one.view, joined(one.set, {{"range", "each"}}));
        QCOMPARE(one.view->colourScale(a, each)->range().text(), first.text()); // as automatic
        QCOMPARE(ValueRange::parse("each").text(), std::string("each"));
    }

    void everyColumnCanBeChosenAndRead() {
        for (const Case& one : cases()) {
            const ParameterValues options = optionsOf(*one.view, one.set);
            const ViewInput input = inputWith(one, options);
            const Scene scene = one.view->buildScene(input, options, viewport(700, 420, m_text));
            const auto bar = scene_checks::barOf(scene);
            QVERIFY2(bar && bar->height > 50, one.quantity);
            const auto scale = one.view->colourScale(input, options);
            QVERIFY2(scale, one.quantity);
            const ValueRange now = scale->range();
            QCOMPARE(now.quantity, std::string(one.quantity));
            const double middle = (*now.low + *now.high) / 2;
            const auto change = rangeSetTo(*scale, *now.low, middle);
            QVERIFY2(change && change->options.size() == 1, one.quantity);
            const ParameterValues chosen = optionsOf(*one.view, joined(one.set, change->options));
            QCOMPARE(*one.view->colourScale(input, chosen)->range().high, middle);
            const PointFacts facts = one.view->factsAt(input, options, scene, {bar->x + 4, bar->y + bar->height / 2});
            QVERIFY2(facts.rows.size() == 3 && facts.rows[0].first == "here", one.quantity);
        }
    }

    void marksAndCellsTakeTheirColoursFromTheRange() {
        const ParameterValues options = optionsOf(viewById("head_grid"), {{"range", "output_error:0.2..0.6"}});
        const ViewInput input = inputFor(viewById("head_grid"), {"keydiff@0.25"}, options);
        const auto data = dataAs<HeadGridData>(input);
        const Scene scene = build(input, options);
        std::size_t looked = 0;
        for (const Drawable& item : scene.items)
            if (const auto* box = std::get_if<RectangleItem>(&item); box && box->pick.kind == PickId::Kind::Cell) {
                const double value = data->rows[std::size_t(box->pick.index / data->columns)]
                                         .values[std::size_t(box->pick.index % data->columns)];
                QCOMPARE(box->fill, colourMap("viridis", std::clamp((value - 0.2) / 0.4, 0.0, 1.0)));
                ++looked;
            }
        QCOMPARE(looked, data->rows.size() * std::size_t(data->columns));
        // Norms: the tokens below the range have its first colour.
        const View& projection = viewById("key_projection");
        const ParameterValues byNorm = optionsOf(projection, {{"colour_by", "norm"}, {"range", "norm:1000..2000"}});
        const Scene cloud =
            projection.buildScene(inputFor(projection, {"keydiff@0.25"}, byNorm), byNorm, viewport(700, 420, m_text));
        int clouds = 0;
        for (const Drawable& item : cloud.items)
            if (const auto* points = std::get_if<PointCloudItem>(&item); points && points->name == "kept") {
                QCOMPARE(points->fill, colourMap("viridis", 0.5 / 24));
                ++clouds;
            }
        QVERIFY(clouds > 0);
    }

    // Entries by their signed root or in proportion, 0 white; the column goes on towards the diagonal.
    void aKernelMatrixIsColouredAboutZero() {
        for (const bool root : {true, false}) {
            const Set set = {{"show", "kernel"}, {"scale", root ? "root" : "linear"}, {"range", "kernel:-50..50"}};
            const ParameterValues options = optionsOf(viewById("walk"), set);
            const ViewInput input = inputFor(viewById("walk"), {"balancekv,sink=32,recent=32@0.5"}, options);
            const auto data = dataAs<WalkData>(input);
            const WalkData::Walk& walk = data->walks.back();
            const Scene scene = viewById("walk").buildScene(input, options, viewport(700, 500, m_text));
            const auto image = std::find_if(scene.items.begin(), scene.items.end(), [](const Drawable& item) {
                const auto* map = std::get_if<ImageItem>(&item);
                return map && map->pick.kind == PickId::Kind::Cell;
            });
            QVERIFY(image != scene.items.end());
            const auto& pixels = *std::get<ImageItem>(*image).rgba;
            for (std::size_t i = 0; i < walk.kernel.size(); i += 97) {
                const double t = std::clamp(double(walk.kernel[i]) / 50, -1.0, 1.0),
                             shade = root ? std::copysign(std::sqrt(std::abs(t)), t) : t;
                const Colour expected = colourMap("rdbu", (1 + shade) / 2);
                QVERIFY(std::abs(pixels[4 * i] - expected.r) <= 1 && std::abs(pixels[4 * i + 1] - expected.g) <= 1 &&
                        std::abs(pixels[4 * i + 2] - expected.b) <= 1);
            }
            const ParameterValues automatic = optionsOf(viewById("walk"), {set[0], set[1]});
            QVERIFY(std::abs(*viewById("walk").colourScale(input, automatic)->range().high - walk.range) <
                    1e-9 * walk.range);
            QVERIFY(!viewById("walk").colourScale(input, optionsOf(viewById("walk"))));
        }
    }

    void rangesOfOtherThingsAreRefused() {
        for (const View* view :
             {&viewById("head_grid"), &viewById("phase_map"), &viewById("key_projection"), &viewById("walk")}) {
            QVERIFY_THROWS_EXCEPTION(Error, optionsOf(*view, {{"range", "weight:0..1"}}));
            QVERIFY_THROWS_EXCEPTION(Error, optionsOf(*view, {{"range", "1..0"}}));
            QCOMPARE(optionsOf(*view, {{"range", "0..1"}}).text("range"), std::string("0..1"));
        }
        // Winners and states have no scale, so there is no range to choose.
        for (const Case& one : {Case{&viewById("phase_map"),
                                     {{"colour", "winner"}, {"x", "budget=0.1,0.4"}, {"y", "window=8"}},
                                     "",
                                     {"snapkv@0.25", "keydiff@0.25"}},
                                Case{&viewById("key_projection"), {}, ""}}) {
            const ParameterValues options = optionsOf(*one.view, one.set);
            const ViewInput input = inputWith(one, options);
            QVERIFY(!one.view->colourScale(input, options));
        }
    }

    void nothingOverlapsOrIsClipped() {
        for (const Case& one : cases())
            for (const QSize size : {QSize(420, 300), QSize(600, 420), QSize(1400, 900)}) {
                const ParameterValues options = optionsOf(*one.view, one.set);
                const Scene scene = one.view->buildScene(inputWith(one, options), options,
                                                         viewport(size.width(), size.height(), m_text));
                QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            }
    }

    // The predicted rise says nothing about some heads, as the help explains: a dash, not the colour of an error.
    void aHeadWithoutARiseHasADash() {
        ViewInput input = needleInput({"keydiff@0.25"});
        const auto fillOf = [&](const char* quantity) {
            auto data = std::make_shared<HeadGridData>();
            data->quantity = quantity, data->perQueryHead = false, data->columns = 2;
            data->rows = {{.layer = 3, .computed = true, .values = {0.5, NAN}}};
            input.data.value = data;
            const Scene scene = build(input, optionsOf(m_view), 600, 300);
            for (const Drawable& item : scene.items)
                if (const auto* box = std::get_if<RectangleItem>(&item);
                    box && box->pick == PickId{PickId::Kind::Cell, 1})
                    return box->fill;
            return kTransparent;
        };
        QCOMPARE(fillOf("output_error"), themeOf(ThemeId::Light).notANumber);
        QCOMPARE(fillOf("answer_rise"), themeOf(ThemeId::Light).sunken);
    }

private:
    static ViewInput inputWith(const Case& one, const ParameterValues& options) {
        return inputFor(*one.view, one.panes, options);
    }
};

KVSCOPE_OFFSCREEN_TEST(ColourScaleTest)
#include "colour_scale_test.moc"
