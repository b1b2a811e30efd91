// The range of the attention map's colours: what its text means, what is drawn, and what typing it stores.
#include "app/export/scene_export.h"
#include "core/base/error.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/attention_map/attention_map_data.h"
#include "views/attention_map/map_colours.h"
#include "views/view.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <set>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

using Set = std::vector<std::pair<std::string, std::string>>;

Colour colourOf(const ImageItem& image, std::int64_t x, std::int64_t y) {
    const std::uint8_t* p = image.rgba->data() + 4 * (y * image.width + x);
    return {p[0], p[1], p[2], p[3]};
}

std::string rangeOf(const std::optional<SettingChange>& settingChange) {
    return settingChange && settingChange->options.size() == 1 && settingChange->options[0].first == "range"
               ? settingChange->options[0].second
               : "nothing";
}

} // namespace

class MapColourRangeTest : public ViewTest {
    Q_OBJECT

public:
    MapColourRangeTest() : ViewTest(viewById("attention_map"), 760, 640) {}

private:
    ViewInput inputWith(const ParameterValues& options) const {
        ViewInput input = needleInput({"keydiff@0.25"});
        fillData(input, m_view, options);
        return input;
    }
    ValueRange rangeIn(const ViewInput& input, const ParameterValues& options) const {
        return m_view.colourScale(input, options)->range();
    }

private slots:
    void textsReadBackAndBadOnesAreRefused() {
        for (const char* text : {"auto", "0.001..0.2", "..0.2", "-3..", "weight:1e-05..1", "logit:-7.5..7.5"})
            QCOMPARE(ValueRange::parse(text).text(), std::string(text));
        for (const char* text : {"", "0.1", "0.2..0.1", "0.1..0.1", "..", "weight:..", "a..b", "0.1..x", "nan..1",
                                 "0..inf", "weights:0..1"})
            QVERIFY_THROWS_EXCEPTION(Error, optionsOf(m_view, {{"range", text}}));
        QCOMPARE(formatBound(1e-4), std::string("1e−4"));
        QCOMPARE(formatBound(3.124e-5), std::string("3.12e−5"));
        QCOMPARE(formatBound(-0.25), std::string("−0.25"));
        QCOMPARE(roundedValue(0.012345), 0.0123);
    }

    void coloursRunFromLowToHigh() {
        const ParameterValues options = optionsOf(m_view, {{"range", "weight:0.001..0.1"}});
        const ViewInput input = inputWith(options);
        const auto data = dataAs<AttentionMapData>(input);
        const Scene scene = build(input, options, 800, 800);
        const ImageItem* image = scene_checks::mapImage(scene);
        QCOMPARE(image->width, 600); // a pixel per cell of the data
        QCOMPARE(image->height, 400);
        int below = 0, between = 0, above = 0;
        for (std::int64_t y = 0; y < 400; y += 3)
            for (std::int64_t x = 0; 2 * x <= 3 * y; ++x) { // not masked
                const float cell = data->cells.data[static_cast<std::size_t>(y * 600 + x)];
                const double place = std::clamp((std::log10(double(cell)) + 3) / 2, 0.0, 1.0);
                QCOMPARE(colourOf(*image, x, y), colourMap("viridis", std::lround(255 * place) / 255.0));
                ++(place <= 0 ? below : place >= 1 ? above : between);
            }
        QVERIFY(below > 100 && between > 100 && above > 10); // all three were looked at
        const std::string text = paintSceneAsText(scene);
        QVERIFY2(text.find("≤1e−3") != std::string::npos && text.find("≥1e−1") != std::string::npos,
                 qPrintable(QString::fromStdString(text)));
        QVERIFY(text.find("log10, 1e−3 to 0.1") != std::string::npos);
    }

    // Zooming changes the largest cell shown and the length of the column, but the colour of no cell.
    void aChosenRangeHoldsUnderZoom() {
        std::int64_t brightest = -1; // key and query of the largest cell of the first part, as one number
        const auto colourIn = [&](const Set& set, const Viewport::Range& range) {
            const ParameterValues options = optionsOf(m_view, set);
            ViewInput input = needleInput({"keydiff@0.25"});
            ViewDataRequest request = dataRequest(input, options);
            request.range = range;
            request.width = request.height = 2000; // a pixel per cell
            input.data.value = makerFor(m_view)->make(runner(), request, {}, [](const auto&) {});
            Viewport frame = viewport(1200, 1000, m_text);
            frame.range = range;
            const Scene scene = m_view.buildScene(input, options, frame);
            const auto data = dataAs<AttentionMapData>(input);
            const std::int64_t width = data->cells.shape[1];
            if (brightest < 0) {
                const std::int64_t at =
                    std::max_element(data->cells.data.begin(), data->cells.data.end()) - data->cells.data.begin();
                brightest = (data->rowBegin + at / width) * 1028 + data->keyBegin + at % width;
            }
            return colourOf(*scene_checks::mapImage(scene), brightest % 1028 - data->keyBegin,
                            brightest / 1028 - data->rowBegin);
        };
        const Viewport::Range near{600, 640, 900, 940},
            withSink{0, 640, 600, 940}; // the first key takes most of the weight
        for (const char* scale : {"linear", "log"}) {
            const Colour first = colourIn({{"scale", scale}, {"range", "weight:1e-05..0.5"}}, near);
            QCOMPARE(colourIn({{"scale", scale}, {"range", "weight:1e-05..0.5"}}, withSink), first);
        }
        QVERIFY(colourIn({{"scale", "linear"}}, near) !=
                colourIn({{"scale", "linear"}}, withSink)); // automatic: as far as what is shown
    }

    void theHistogramCountsTheCellsShown() {
        const ParameterValues options = optionsOf(m_view, {{"range", "0.01..0.5"}});
        const ViewInput input = inputWith(options);
        const auto data = dataAs<AttentionMapData>(input);
        const MapScale scale(*data, options);
        const ColourColumnSpec column = scale.column();
        const double foot = data->logEnds.first - 2; // two decades below the automatic end
        std::int64_t shown = 0, below = 0, above = 0;
        std::vector<double> bins(column.histogram.size(), 0.0);
        for (const float cell : data->cells.data)
            if (!std::isnan(cell)) {
                ++shown;
                below += cell < 0.01F;
                above += cell > 0.5F;
                const double place = (std::log10(double(cell)) - foot) / -foot; // to 1, the next power of ten
                bins[static_cast<std::size_t>(std::clamp(place * double(bins.size()), 0.0, double(bins.size()) - 1))] +=
                    1;
            }
        QCOMPARE(column.histogram, bins);
        QCOMPARE(scale.sharesBeyond().first, double(below) / double(shown));
        QCOMPARE(scale.sharesBeyond().second, double(above) / double(shown));
        QVERIFY(std::abs(column.low - (-2 - foot) / -foot) < 1e-12);
        QVERIFY(std::abs(column.high - (std::log10(0.5) - foot) / -foot) < 1e-12);
        QCOMPARE(column.lowNote, formatFixed(100.0 * double(below) / double(shown), 1) + " %");
        QCOMPARE(column.highNote, formatFixed(100.0 * double(above) / double(shown), 1) + " %");
    }

    void typedAndFittedRanges() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputWith(options);
        const auto scale = m_view.colourScale(input, options);
        QCOMPARE(rangeOf(rangeSetTo(*scale, 0.0123456, 0.2)), std::string("weight:0.0123456..0.2")); // as typed
        QVERIFY(!rangeSetTo(*scale, 0, 0.2));                                                        // no logarithm
        QVERIFY(!rangeSetTo(*scale, 0.2, 0.2));
        QCOMPARE(rangeOf(automaticRange()), std::string("auto"));
        const auto [low, high] = scale->middle(0.01);
        const ParameterValues fitted = optionsOf(m_view, {rangeSetTo(*scale, low, high)->options[0]});
        const auto [below, above] = MapScale(*dataAs<AttentionMapData>(input), fitted).sharesBeyond();
        QVERIFY2(below > 0.005 && below < 0.015 && above > 0.005 && above < 0.015,
                 qPrintable(QString("%1 %2").arg(below).arg(above)));
    }

    // A range of weights says nothing about logits: it waits until weights are shown again.
    void aRangeOfSomethingElseDoesNotApply() {
        const ParameterValues logits = optionsOf(m_view, {{"map", "logits"}, {"range", "weight:0.001..0.1"}});
        const ViewInput input = inputWith(logits);
        const ValueRange range = rangeIn(input, logits);
        QVERIFY(range.quantity == "logit" && *range.high > 1);
        const ParameterValues any = optionsOf(m_view, {{"map", "logits"}, {"range", "-2..2"}});
        QCOMPARE(*rangeIn(input, any).high, 2.0);
    }

    void theColumnIsReadAtThePointer() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputWith(options);
        const Scene scene = build(input, options);
        const Box bar = scene_checks::barOf(scene).value();
        const PointFacts facts = m_view.factsAt(input, options, scene, {bar.x + 5, bar.bottom() - bar.height / 3});
        QCOMPARE(facts.rows.size(), std::size_t{3});
        QCOMPARE(facts.rows[0].second, formatBound(roundedValue(m_view.colourScale(input, options)->valueAt(1.0 / 3))));
        QVERIFY2(facts.rows[1].second.find("% of the cells") != std::string::npos, facts.rows[1].second.c_str());
        QVERIFY(m_view.factsAt(input, options, scene, {scene.width - 3, scene.height - 3}).rows.empty());
    }

    void thePictureShowsEndColours() {
        const ParameterValues options = optionsOf(m_view, {{"range", "0.001..0.1"}});
        const ViewInput input = inputWith(options);
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark}) {
            const Scene scene = m_view.buildScene(input, options, viewport(760, 640, m_text, theme));
            const QImage picture = renderScene(scene, 2);
            const auto colourAt = [&](double x, double y) {
                const QColor c = picture.pixelColor(static_cast<int>(2 * x), static_cast<int>(2 * y));
                return Colour{static_cast<std::uint8_t>(c.red()), static_cast<std::uint8_t>(c.green()),
                              static_cast<std::uint8_t>(c.blue())};
            };
            const Box bar = scene_checks::barOf(scene).value();
            const double x = bar.x + 5, decade = bar.height / (2 - dataAs<AttentionMapData>(input)->logEnds.first),
                         high = bar.y + decade, low = high + 2 * decade;       // the bar ends at 1
            QCOMPARE(colourAt(x, high - decade / 2), colourMap("viridis", 1)); // beyond the range: the end colours
            QCOMPARE(colourAt(x, low + decade), colourMap("viridis", 0));
            const Colour middle = colourAt(x, (low + high) / 2);
            QVERIFY(middle != colourMap("viridis", 0) && middle != colourMap("viridis", 1));
        }
    }

    // The ends against sorted cells, for heads of every sharpness and maps of every kind.
    void automaticEndsFollowTheCellsShown() {
        std::set<double> lows;
        for (const char* map : {"causal", "non_causal", "chunks"})
            for (const int layer : {0, 2, 3})
                for (const int head : {0, 4}) {
                    const ParameterValues options = optionsOf(m_view, {{"map", map}});
                    ViewInput input = needleInput({"keydiff@0.25"});
                    input.layer = LayerIndex(layer);
                    input.queryHead = QueryHeadIndex(head);
                    input.kvHead = KvHeadIndex(head / 4);
                    fillData(input, m_view, options);
                    std::vector<double> cells;
                    for (const float cell : dataAs<AttentionMapData>(input)->cells.data)
                        if (!std::isnan(cell)) cells.push_back(cell);
                    std::ranges::sort(cells);
                    const auto below = [&](double bound) {
                        return double(std::ranges::lower_bound(cells, bound * (1 - 1e-6)) - cells.begin()) /
                               double(cells.size());
                    };
                    std::vector<double> steps;
                    for (int exponent = -30; exponent < 0; ++exponent)
                        for (const int first : {1, 3}) steps.push_back(first * std::pow(10.0, exponent));
                    steps.push_back(1);
                    const auto most = std::ranges::find_if(steps, [&](double s) { return below(s) >= 0.995; });
                    const double high = most == steps.end() ? 1 : *most;
                    double low = steps.front();
                    for (const double step : steps)
                        if (below(step) <= 0.01) low = step;
                    low = std::min(std::max(low, high * 1e-10), high / 10);
                    const ValueRange range = rangeIn(input, options);
                    QVERIFY2(std::abs(*range.low / low - 1) < 1e-6 && std::abs(*range.high / high - 1) < 1e-6,
                             qPrintable(QString("%1 %2 %3: %4 %5, not %6 %7")
                                            .arg(map)
                                            .arg(layer)
                                            .arg(head)
                                            .arg(*range.low)
                                            .arg(*range.high)
                                            .arg(low)
                                            .arg(high)));
                    lows.insert(low);
                }
        QVERIFY(lows.size() > 4); // it was 1e-4 for every map of 1,028 tokens
    }

    void automaticEndsOfOddCells() {
        const auto endsOf = [](std::vector<float> weights) {
            for (float& weight : weights) weight = std::log10(weight);
            const auto count = static_cast<std::int64_t>(weights.size());
            const auto [low, high] = endsOfWeights({{1, count}, std::move(weights)});
            return std::pair(low, high);
        };
        QCOMPARE(endsOf({}), std::pair(-4.0, 0.0));
        QCOMPARE(endsOf({NAN, NAN}), std::pair(-4.0, 0.0));
        QCOMPARE(endsOf({1, 1, 1}), std::pair(-1.0, 0.0));       // all alike: a power of ten
        QCOMPARE(endsOf({0, 0, 1, NAN}), std::pair(-10.0, 0.0)); // no more than ten powers of ten
        std::vector<float> many(1000, 2e-5F);
        std::fill_n(many.begin(), 10, 1e-9F); // 1 %
        std::fill_n(many.end() - 5, 5, 0.5F); // 0.5 %
        const auto [low, high] = endsOf(many);
        QVERIFY(std::abs(high - std::log10(3e-5)) < 1e-9 && std::abs(low - (high - 1)) < 1e-9);
        many[10] = 1e-9F; // more than 1 %
        many[994] = 0.5F; // more than 0.5 %
        const auto [wideLow, wideHigh] = endsOf(many);
        QVERIFY(std::abs(wideHigh) < 1e-9 && std::abs(wideLow + 9) < 1e-9);
    }

    // A difference of 0.04 is seen beside one of 1; logits use the whole scale though most lie on one side of 0.
    void differencesAndLogitsAreSeen() {
        AttentionMapData data;
        data.isWeight = false;
        data.isDifference = true;
        data.cells = {{2, 2}, {1.0F, -0.04F, 0.0F, NAN}};
        const MapScale difference(data, optionsOf(m_view));
        QCOMPARE(difference.place(0.0F, 0), 0.5);
        QVERIFY(std::abs(*difference.range().high - 0.04) < 1e-7); // of two that differ, one stays below 1
        QCOMPARE(difference.name(), std::string("signed root, to the 99th percentile"));
        const MapScale whole(data, optionsOf(m_view, {{"range", "difference:-1..1"}}));
        QCOMPARE(whole.place(1.0F, 0), 1.0);
        QVERIFY(std::abs(whole.place(-0.04F, 0) - 0.4) < 1e-7); // a fifth of the way from the middle
        QVERIFY(std::abs(whole.valueAt(0.4) + 0.04) < 1e-7);
        data.isDifference = false;
        data.cells = {{2, 2}, {35.0F, -5.0F, 15.0F, NAN}};
        const MapScale logits(data, optionsOf(m_view));
        QCOMPARE(logits.place(-5.0F, 0), 0.0);
        QCOMPARE(logits.place(35.0F, 0), 1.0);
        QCOMPARE(logits.place(15.0F, 0), 0.5);
        QCOMPARE(logits.colourMapName(), std::string("viridis"));
        data.cells = {{1, 2}, {NAN, NAN}};
        QVERIFY(std::isfinite(MapScale(data, optionsOf(m_view)).place(0.0F, 0)));
    }

    void nothingOverlapsOrIsClipped() {
        for (const char* range : {"auto", "0.00312..0.00345", "1e-06..1e-05", "1e-9..1"})
            for (const QSize size : {QSize(420, 400), QSize(760, 640), QSize(1600, 1000)}) {
                const ParameterValues options = optionsOf(m_view, {{"range", range}});
                const Scene scene = build(inputWith(options), options, size.width(), size.height());
                QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            }
    }
};

KVSCOPE_OFFSCREEN_TEST(MapColourRangeTest)
#include "map_colour_range_test.moc"
