// The attention map on the sample: what its pixels, rails, marks and words say, against the attention itself.
#include "app/text/qt_text_service.h"
#include "core/base/error.h"
#include "core/engine/forwarding_engine.h"
#include "tests/support/error_message.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/causal_row.h"
#include "tests/views/view_fixture.h"
#include "views/attention_map/attention_map_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <fmt/format.h>

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

/// Counts the rows of each map whose sum is not known when it is asked for.
class WatchedEngine final : public ForwardingEngine {
public:
    WatchedEngine() : WatchedEngine(makeCpuEngine(2)) {}

    AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const override {
        if (input.rowsPerPixel == 1)
            return m_engine->attentionMap(input, checkpoint); // the coarse picture of the whole
        std::int64_t unknown = 0;
        for (std::int64_t row = input.rowBegin - input.firstQuery; row < input.rowEnd - input.firstQuery; ++row)
            unknown +=
                input.rowLogSumExps.empty() || std::isnan(input.rowLogSumExps.data[static_cast<std::size_t>(row)]);
        m_unknown.push_back(unknown);
        return m_engine->attentionMap(input, checkpoint);
    }
    std::vector<std::int64_t> takeUnknown() const { return std::exchange(m_unknown, {}); }

private:
    explicit WatchedEngine(std::unique_ptr<Engine> engine) : ForwardingEngine(*engine), m_engine(std::move(engine)) {}
    std::unique_ptr<Engine> m_engine;
    mutable std::vector<std::int64_t> m_unknown;
};

} // namespace

class AttentionMapViewTest : public QObject {
    Q_OBJECT

    std::unique_ptr<QtTextService> m_service;
    const View& m_view = viewById("attention_map");

    ParameterValues optionsWith(const std::vector<std::pair<std::string, std::string>>& set) const {
        ParameterValues options(m_view.card().options);
        for (const auto& [id, text] : set) options.setText(id, text);
        return options;
    }
    ViewInput inputWith(const ParameterValues& options) const {
        ViewInput input = needleInput({"keydiff@0.25", "snapkv@0.25", "streaming_llm@0.25"});
        fillData(input, m_view, options);
        return input;
    }

    /// A part of the map, a pixel per cell up to `pixels`.
    ViewDataMaker::Value part(const ParameterValues& options, const Viewport::Range& range, int pixels) const {
        const ViewInput input = needleInput({"keydiff@0.25"});
        ViewDataRequest request = dataRequest(input, options);
        request.range = range;
        request.width = request.height = pixels;
        return makerFor(m_view)->make(runner(), request, {}, [](const auto&) {});
    }

private slots:
    void initTestCase() { m_service = std::make_unique<QtTextService>(); }

    // A pixel shows the largest of its cells: compared with plain loops for rows near, before and after the cut.
    void pixelsAreTheLargestOfTheirCells() {
        const ParameterValues options = optionsWith({});
        const ViewInput input = inputWith(options);
        const auto data = dataAs<AttentionMapData>(input);
        QCOMPARE(data->cells.shape, (Shape{400, 600})); // as the fixture's frame
        QVERIFY(!data->sampled && data->isWeight);
        const std::int64_t n = input.capture->info().numTokens, width = 600, height = 400;
        for (const std::int64_t y : {0, 131, 260, 399}) {
            std::vector<double> best(600, -1);
            for (std::int64_t row = n * y / height; row < n * (y + 1) / height; ++row) {
                const std::vector<double> weights = causalRow(*input.capture, 3, input.queryHead.value, row);
                for (std::size_t i = 0; i < weights.size(); ++i)
                    for (std::int64_t x = 0; x < width; ++x)
                        if (std::cmp_less_equal(n * x / width, i) && std::cmp_less(i, n * (x + 1) / width))
                            best[static_cast<std::size_t>(x)] = std::max(best[static_cast<std::size_t>(x)], weights[i]);
            }
            for (std::size_t x = 0; x < 600; ++x) {
                const float cell = data->cells.data[static_cast<std::size_t>(y * width) + x];
                QVERIFY2(best[x] < 0 ? std::isnan(cell) : std::abs(cell - best[x]) <= 1e-6 * best[x] + 1e-30,
                         qPrintable(QString("pixel %1, %2: %3, not %4").arg(x).arg(y).arg(cell).arg(best[x])));
            }
        }
    }

    void columnSumsAddUpToTheRows() {
        const ViewInput input = inputWith(optionsWith({{"heads", "mean"}}));
        const auto data = dataAs<AttentionMapData>(input);
        double sum = 0;
        for (const float column : data->columnSums.data) sum += double(column);
        QVERIFY(std::abs(sum - 1028) < 1e-2); // each row of the softmax sums to 1
        QVERIFY(data->heads.find("mean of query heads 4–7") != std::string::npos);
    }

    // A part asked for after the whole finds the sums of its rows known, and its cells are those of a first look.
    void zoomingDoesNotSumTheRowsAgain() {
        const auto engine = std::make_shared<const WatchedEngine>();
        const LayerRunner kept(engine), untouched(std::shared_ptr<const Engine>(makeCpuEngine(1)));
        ViewDataRequest request;
        request.capture = needleCapture();
        request.layer = LayerIndex(3);
        request.kvHead = KvHeadIndex(1);
        request.queryHead = QueryHeadIndex(4);
        const auto draw = [&](const LayerRunner& runner, const std::vector<std::pair<std::string, std::string>>& set,
                              std::optional<Viewport::Range> range) {
            request.options = optionsWith(set);
            request.range = range;
            return std::dynamic_pointer_cast<const AttentionMapData>(
                makerFor(m_view)->make(runner, request, {}, [](const auto&) {}));
        };
        using Counts = std::vector<std::int64_t>;
        const Viewport::Range part{100, 300, 500, 710};
        draw(kept, {}, std::nullopt);
        QCOMPARE(engine->takeUnknown(), Counts{1028});
        const auto zoomed = draw(kept, {}, part), fresh = draw(untouched, {}, part);
        QCOMPARE(engine->takeUnknown(), Counts{0});
        QCOMPARE(zoomed->cells.shape, fresh->cells.shape);
        for (std::size_t i = 0; i < fresh->cells.data.size(); ++i)
            QVERIFY(std::isnan(fresh->cells.data[i])
                        ? std::isnan(zoomed->cells.data[i])
                        : std::abs(zoomed->cells.data[i] - fresh->cells.data[i]) <= 3e-6F * fresh->cells.data[i]);
        draw(kept, {{"map", "logits"}}, part); // needs no sums and leaves none behind
        draw(kept, {{"minus", "chunks"}}, part);
        draw(kept, {{"minus", "chunks"}}, Viewport::Range{110, 290, 520, 700});
        draw(kept, {{"minus", "chunks"}}, part); // a picture that is there already is not drawn again
        std::int64_t coarse = 0;                 // rows that the coarse picture of the whole has summed
        for (int y = 0; y < 160; ++y) coarse += 1028 * y / 160 >= 500 && 1028 * y / 160 < 710;
        QCOMPARE(engine->takeUnknown(), (Counts{210, 0, 210 - coarse, 0, 0})); // of the chunks, once
        draw(kept, {{"map", "chunks"}, {"chunk", "128"}}, part);               // other chunks, other sums
        draw(kept, {{"heads", "mean"}}, part);
        request.queryHead = QueryHeadIndex(5);
        draw(kept, {}, part);
        QCOMPARE(engine->takeUnknown(), (Counts{210 - coarse, 210 - coarse, 210 - coarse}));
    }

    void aDifferenceIsTheFirstMinusTheSecond() {
        const ViewInput causal = inputWith(optionsWith({}));
        const ViewInput chunks = inputWith(optionsWith({{"map", "chunks"}, {"chunk", "128"}}));
        const ViewInput both = inputWith(optionsWith({{"minus", "chunks"}, {"chunk", "128"}}));
        const auto a = dataAs<AttentionMapData>(causal), b = dataAs<AttentionMapData>(chunks),
                   d = dataAs<AttentionMapData>(both);
        QVERIFY(d->isDifference && !d->isWeight && d->columnSums.empty());
        const auto number = [](float x) { return std::isnan(x) ? 0.0F : x; };
        for (std::size_t i = 0; i < d->cells.data.size(); i += 37)
            QCOMPARE(number(d->cells.data[i]), number(a->cells.data[i]) - number(b->cells.data[i]));
        const std::string finding = m_view.finding(both, optionsWith({{"minus", "chunks"}, {"chunk", "128"}}));
        float high = 0, low = 0;
        for (const float cell : d->cells.data) high = std::max(high, number(cell)), low = std::min(low, number(cell));
        QVERIFY2(low < 0 && high > 0 &&
                     finding.find("up to " + formatShort(static_cast<double>(high)) +
                                  " above the chunks one, and up to " + formatShort(-static_cast<double>(low)) +
                                  " below") != std::string::npos,
                 finding.c_str());
        const ParameterValues options = optionsWith({{"minus", "chunks"}, {"chunk", "128"}});
        const Scene scene = m_view.buildScene(both, options, viewport(600, 560, *m_service));
        const PointFacts facts = m_view.factsAt(both, options, scene, {scene.plot.x + 3, scene.plot.y + 50});
        QVERIFY(facts.rows.size() > 2 && facts.rows[2].first.starts_with("difference"));
    }

    // Never a picture that looks as if nothing had been asked for.
    void whatHasNoDifferenceIsRefused() {
        const auto sentenceOf = [&](const std::string& map, const std::string& minus) {
            return errorMessage([&] { inputWith(optionsWith({{"map", map}, {"minus", minus}})); });
        };
        for (const std::string minus : {"causal", "non_causal", "chunks"}) {
            QVERIFY2(sentenceOf("logits", minus).find("logits are no attention weights") != std::string::npos,
                     minus.c_str());
            QVERIFY2(sentenceOf("cosine", minus).find("cosines of keys are no attention weights") != std::string::npos,
                     minus.c_str());
            for (const std::string map : {"causal", "non_causal", "chunks"}) {
                const std::string sentence = sentenceOf(map, minus);
                QCOMPARE(sentence.empty(), map != minus);
                QVERIFY2(map != minus || sentence.find("0 in every cell") != std::string::npos, sentence.c_str());
            }
        }
        QCOMPARE(sentenceOf("logits", "nothing"), std::string());
        QCOMPARE(sentenceOf("cosine", "nothing"), std::string());
    }

    void cosinesOfKeysAreSymmetricWithOnesOnTheDiagonal() {
        const ViewDataMaker::Value value = part(optionsWith({{"map", "cosine"}}), {0, 1028, 0, 1028}, 400);
        const auto data = std::dynamic_pointer_cast<const AttentionMapData>(value);
        for (std::size_t i = 0; i < 400; ++i) {
            QVERIFY(std::abs(data->cells.data[i * 400 + i] - 1) < 1e-5);
            for (std::size_t j = 0; j < i; j += 29)
                QVERIFY(std::abs(data->cells.data[i * 400 + j] - data->cells.data[j * 400 + i]) < 1e-6);
        }
    }

    // The brightest colour of the scale at the sink, the masked ground above the diagonal.
    void thePictureShowsSinkAndMask() {
        const ParameterValues options = optionsWith({{"scale", "linear"}});
        const ViewInput input = inputWith(options);
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark}) {
            const Scene scene = m_view.buildScene(input, options, viewport(600, 560, *m_service, theme));
            const ImageItem* image = scene_checks::mapImage(scene);
            QVERIFY(image && image->width > 300);
            const auto colourAt = [&](int x, int y) {
                const std::uint8_t* p = image->rgba->data() + 4 * (y * image->width + x);
                return Colour{p[0], p[1], p[2], p[3]};
            };
            QCOMPARE(colourAt(image->width - 1, 0), themeOf(theme).masked);
            QCOMPARE(colourAt(0, 0), colourMap("viridis", 1)); // the first token sees only itself
        }
    }

    void railsMarksAndWordsAreThere() {
        const ParameterValues options = optionsWith({});
        const ViewInput input = inputWith(options);
        const Scene scene = m_view.buildScene(input, options, viewport(600, 560, *m_service));
        const std::string text = paintSceneAsText(scene);
        for (const char* wanted :
             {"causal · query head 4", "max of 3 keys × 3 queries a pixel", "Key position (0-based)",
              "Query position (0-based)", "lg Σ", "\"A\"", "\"B\"", "\"C\"", "≤", "log10, "})
            QVERIFY2(text.find(wanted) != std::string::npos,
                     qPrintable(QString::fromStdString(std::string(wanted) + "\n" + text)));
        QVERIFY(scene.yDown && scene.yMin == 0 && scene.yMax == 1028);
    }

    // A small picture pools more cells into a pixel than were computed: the caption says what is seen. And the sink,
    // the first column, is seen: the frame lies around the map.
    void theCaptionCountsWhatAPixelHolds() {
        const ParameterValues options = optionsWith({});
        const ViewInput input = inputWith(options);
        for (const double side : {440.0, 600.0, 900.0}) { // wide enough for the whole caption
            const Scene scene = m_view.buildScene(input, options, viewport(side, side, *m_service));
            const ImageItem* map = nullptr;
            const RectangleItem* frame = nullptr;
            for (const Drawable& item : scene.items) {
                if (const auto* image = std::get_if<ImageItem>(&item); image && image->pick.kind == PickId::Kind::Cell)
                    map = image;
                if (const auto* box = std::get_if<RectangleItem>(&item);
                    box && map && !frame && box->stroke.colour == themeOf(ThemeId::Light).axis)
                    frame = box;
            }
            QVERIFY(map && frame);
            QVERIFY(frame->box.x + frame->stroke.width / 2 <= map->box.x &&
                    frame->box.y + frame->stroke.width / 2 <= map->box.y);
            QVERIFY(frame->box.right() - frame->stroke.width / 2 >= map->box.right() &&
                    frame->box.bottom() - frame->stroke.width / 2 >= map->box.bottom());
            const std::string words =
                fmt::format("max of {} keys × {} queries a pixel", (1028 + map->width - 1) / map->width,
                            (1028 + map->height - 1) / map->height);
            QVERIFY2(paintSceneAsText(scene).find(words) != std::string::npos, words.c_str());
        }
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(300, 220), QSize(420, 400), QSize(600, 560), QSize(1200, 900)})
            QTest::addRow("%dx%d", size.width(), size.height()) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        for (const char* map : {"causal", "cosine"}) {
            const ParameterValues options = optionsWith({{"map", map}});
            const ViewInput input = inputWith(options);
            const Scene scene = m_view.buildScene(input, options, viewport(size.width(), size.height(), *m_service));
            QCOMPARE(scene_checks::misplacedTexts(scene, *m_service), QStringList());
        }
    }

    // A pixel of several cells shows the largest weight of them: no token of it is named with that weight.
    void theReadOutOfPooledCellsNamesThemAll() {
        const ParameterValues options = optionsWith({});
        const ViewInput input = inputWith(options);
        const Scene scene = m_view.buildScene(input, options, viewport(600, 560, *m_service));
        const Point at{scene.plot.x + scene.plot.width * 615.5 / 1028, scene.plot.y + scene.plot.height * 920.5 / 1028};
        const PointFacts facts = m_view.factsAt(input, options, scene, at);
        QCOMPARE(facts.token, 615);
        QCOMPARE(facts.rows.size(), std::size_t{7});
        const auto data = dataAs<AttentionMapData>(input);
        const auto cellsOf = [](double position, std::int64_t pixels) {
            const auto pixel = std::int64_t(position * double(pixels) / 1028);
            return std::pair(1028 * pixel / pixels, 1028 * (pixel + 1) / pixels - 1);
        };
        const auto [query, lastQuery] = cellsOf(920.5, data->cells.shape[0]);
        const auto [key, lastKey] = cellsOf(615.5, data->cells.shape[1]);
        QVERIFY(lastQuery > query || lastKey > key);
        const auto text = [](std::int64_t first, std::int64_t last) {
            return first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
        };
        QCOMPARE(facts.rows[0], std::pair(std::string("queries"), text(query, lastQuery)));
        QCOMPARE(facts.rows[1], std::pair(std::string("keys"), text(key, lastKey)));
        QCOMPARE(facts.rows[2].first, std::string("largest weight"));
        for (std::size_t pane = 0; pane < 3; ++pane) {
            const std::vector<TokenState> states = tokenStates(input, input.panes[pane]);
            std::int64_t kept = 0;
            for (std::int64_t i = key; i <= lastKey; ++i)
                kept += states[std::size_t(i)] == TokenState::Kept || states[std::size_t(i)] == TokenState::Protected;
            const std::string one = kept > 0 ? "this key kept" : "this key not kept";
            QCOMPARE(facts.rows[4 + pane].second,
                     lastKey == key ? one : fmt::format("{} of these {} keys kept", kept, lastKey - key + 1));
        }
        QVERIFY(m_view.factsAt(input, options, scene, {1, 1}).rows.empty());
        const Point masked{scene.plot.right() - 2, scene.plot.y + 2};
        QCOMPARE(m_view.factsAt(input, options, scene, masked).rows[2].second, std::string("masked"));
    }

    // A pixel per cell: the rank is that of the key among all that its query sees, by plain loops.
    void theReadOutRanksTheKeyInItsRow() {
        const ParameterValues options = optionsWith({});
        const std::vector<double> weights = causalRow(*needleCapture(), 3, 4, 920);
        std::vector<std::int64_t> order(weights.size());
        std::iota(order.begin(), order.end(), std::int64_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](auto a, auto b) { return weights[std::size_t(a)] > weights[std::size_t(b)]; });
        for (const Viewport::Range& range : {Viewport::Range{0, 1028, 900, 940}, Viewport::Range{600, 640, 900, 940}}) {
            ViewInput input = inputWith(options);
            input.data.value = part(options, range, 2000);
            Viewport frame = viewport(1300, 900, *m_service);
            frame.range = range;
            const Scene scene = m_view.buildScene(input, options, frame);
            const auto ranked = [&](std::int64_t key) {
                const double x = (double(key) + 0.5 - range.xMin) / (range.xMax - range.xMin),
                             y = (920.5 - range.yMin) / (range.yMax - range.yMin);
                const PointFacts facts = m_view.factsAt(
                    input, options, scene, {scene.plot.x + scene.plot.width * x, scene.plot.y + scene.plot.height * y});
                return facts.rows.size() > 3 && facts.rows[3].first.starts_with("rank in its row")
                           ? facts.rows[3].second
                           : std::string("nothing");
            };
            const bool all = range.xMin == 0;
            std::int64_t among = 0;
            for (std::size_t place = 0; place < order.size(); ++place) {
                if (double(order[place]) < range.xMin || double(order[place]) >= range.xMax) continue;
                ++among;
                if (place % 7 == 0 || !all)
                    QCOMPARE(ranked(order[place]),
                             fmt::format(fmt::runtime(all ? "{} of 921 keys" : "{} of the 40 keys shown"), among));
            }
            QCOMPARE(all ? ranked(925) : "nothing", std::string("nothing")); // masked
        }
        // Several cells a pixel: the words say so.
        const ViewInput input = inputWith(options);
        const Scene scene = m_view.buildScene(input, options, viewport(600, 560, *m_service));
        const Point sink{scene.plot.x + 0.5, scene.plot.y + scene.plot.height * 920.5 / 1028};
        const auto data = dataAs<AttentionMapData>(input);
        const float* pixels = data->cells.data.data() + 358 * 600; // rows 920 and 921
        const auto larger = std::count_if(pixels, pixels + 600, [&](float cell) { return cell > pixels[0]; });
        QCOMPARE(m_view.factsAt(input, options, scene, sink).rows[3].second,
                 fmt::format("{} of the {} pixels shown", larger + 1,
                             std::count_if(pixels, pixels + 600, [](float cell) { return !std::isnan(cell); })));
    }

    void theReadOutSaysWhereTheKeyStandsInEachPane() {
        const ParameterValues options = optionsWith({});
        const Viewport::Range range{600, 640, 900, 940};
        ViewInput input = inputWith(options);
        input.data.value = part(options, range, 2000);
        Viewport frame = viewport(600, 560, *m_service);
        frame.range = range;
        const Scene scene = m_view.buildScene(input, options, frame);
        const Point at{scene.plot.x + scene.plot.width * 15.5 / 40, scene.plot.y + scene.plot.height * 20.5 / 40};
        const auto rows = m_view.factsAt(input, options, scene, at).rows;
        QVERIFY(rows[0].second.starts_with("920 “") && rows[1].second.starts_with("615 “"));
        const HostTensor& scores = input.panes[0].result->scores;
        const float* head = scores.data.data() + input.kvHead.value * scores.shape[1];
        const auto better = std::count_if(head, head + scores.shape[1], [&](float score) { return score > head[615]; });
        const bool kept = tokenStates(input, input.panes[0])[615] == TokenState::Kept;
        QCOMPARE(rows[4].second, fmt::format("{}, score rank {} from 0", kept ? "kept" : "evicted", better));
    }

    void theTableHoldsThePixels() {
        const ParameterValues options = optionsWith({});
        const ViewInput input = inputWith(options);
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.rowCount, 240000);
        QCOMPARE(table.cell(0, 4), std::string("1"));
        QCOMPARE(table.cell(599, 4), std::string("masked"));
        QCOMPARE(table.cell(239999, 1), std::string("1027"));
    }

    void withoutDataItSaysWhy() {
        ViewInput input = needleInput({"keydiff@0.25"});
        input.data = {};
        const ParameterValues options = optionsWith({});
        QVERIFY(m_view.finding(input, options).find("Computing") != std::string::npos);
        input.data.error = "layer 3 holds no queries";
        QCOMPARE(m_view.finding(input, options), input.data.error);
    }
};

KVSCOPE_OFFSCREEN_TEST(AttentionMapViewTest)
#include "attention_map_view_test.moc"
