// Geometry statistics: histograms and theorem points against plain loops in double, the figures' series, bounds and
// words.
#include "app/export/scene_export.h"
#include "core/engine/engine.h"
#include "core/metrics/geometry.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/theory.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/geometry/geometry_data.h"
#include "views/geometry/geometry_painter.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

HostTensor tensorOf(TensorRole role, int layer = 3) { return needleCapture()->read(LayerIndex(layer), role, {}); }

std::vector<double> row(const HostTensor& t, std::int64_t head, std::int64_t i) {
    const std::int64_t n = t.shape[1], d = t.shape[2];
    const auto begin = t.data.begin() + (head * n + i) * d;
    return {begin, begin + d};
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
    return sum;
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
    return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
}

std::vector<double> meanOf(const HostTensor& t, std::int64_t head, std::int64_t rows) {
    std::vector<double> mean(static_cast<std::size_t>(t.shape[2]), 0.0);
    for (std::int64_t i = 0; i < rows; ++i) {
        const auto x = row(t, head, i);
        for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += x[c] / static_cast<double>(rows);
    }
    return mean;
}

std::shared_ptr<const GeometryData> dataFor(const std::string& figure, const std::string& scope,
                                            const std::vector<std::string>& specs = {"keydiff@0.25"}) {
    return dataAs<GeometryData>(
        inputFor(viewById("geometry"), specs, optionsOf(viewById("geometry"), {{"figure", figure}, {"scope", scope}})));
}

} // namespace

class GeometryViewTest : public ViewTest {
    Q_OBJECT

public:
    GeometryViewTest() : ViewTest(viewById("geometry")) {}

private slots:
    void histogramsGrowByDoubling() {
        Histogram histogram(0, 4, 4);
        for (const double number : {0.5, 1.5, 1.7, 3.9}) histogram.add(number);
        QCOMPARE(histogram.counts(), (std::vector<std::int64_t>{1, 2, 0, 1}));
        histogram.add(11.0); // 0 to 16: bins of 4
        QCOMPARE(histogram.high(), 16.0);
        QCOMPARE(histogram.counts(), (std::vector<std::int64_t>{4, 0, 1, 0}));
        Histogram odd(0, 5, 5);                                    // the last bin is joined by none
        for (const double number : {0.5, 1.5, 2.5, 4.5, 4.6, 7.0}) // 0 to 10: bins of 2
            odd.add(number);
        QCOMPARE(odd.high(), 10.0);
        QCOMPARE(odd.counts(), (std::vector<std::int64_t>{2, 1, 2, 1, 0}));
        odd.add(19.0); // 0 to 20: bins of 4
        QCOMPARE(odd.counts(), (std::vector<std::int64_t>{3, 3, 0, 0, 1}));
        histogram.add(NAN);
        histogram.add(-3.0); // below the range: the first bin
        QCOMPARE(histogram.counts(), (std::vector<std::int64_t>{5, 0, 1, 0}));
        const std::vector<double> numbers = {0.5, 1.5, 1.7, 3.9, 11.0, -3.0};
        const Summary expected = summaryOf(numbers), summary = histogram.summary();
        QCOMPARE(summary.count, expected.count);
        QVERIFY(std::abs(summary.mean - expected.mean) < 1e-12 &&
                std::abs(summary.deviation - expected.deviation) < 1e-12);
        const Histogram over = Histogram::over(numbers, 8);
        QCOMPARE(over.low(), -3.0);
        QCOMPARE(over.counts().back(), std::int64_t{1});
        QCOMPARE(Histogram::over({}, 4).summary().count, std::int64_t{0});
    }

    void cosinesAndNormsAreThoseOfPlainLoops() {
        const HostTensor keys = tensorOf(TensorRole::Keys), queries = tensorOf(TensorRole::Queries),
                         values = tensorOf(TensorRole::Values);
        const auto cosines = dataFor("cosines", "head");
        std::vector<double> ofKeys, ofQueries;
        const auto kbar = meanOf(keys, 1, 995);
        for (std::int64_t i = 0; i < 995; ++i) ofKeys.push_back(cosine(row(keys, 1, i), kbar));
        for (std::int64_t head = 4; head < 8; ++head) {
            const auto qbar = meanOf(queries, head, 995);
            for (std::int64_t i = 0; i < 995; ++i) ofQueries.push_back(cosine(row(queries, head, i), qbar));
        }
        const Summary k = cosines->series[0].histogram.summary(), q = cosines->series[1].histogram.summary();
        QCOMPARE(k.count, std::int64_t{995});
        QCOMPARE(q.count, std::int64_t{4 * 995});
        QVERIFY(std::abs(k.mean - summaryOf(ofKeys).mean) < 1e-5 &&
                std::abs(k.deviation - summaryOf(ofKeys).deviation) < 1e-5);
        QVERIFY(std::abs(q.mean - summaryOf(ofQueries).mean) < 1e-5);
        const auto table3 = dataFor("table3", "head"); // queries, shifted keys, values
        double shifted = 0, length = 0;
        for (std::int64_t i = 0; i < 995; ++i) {
            auto x = row(keys, 1, i);
            for (std::size_t c = 0; c < x.size(); ++c) x[c] -= kbar[c];
            shifted += std::sqrt(dot(x, x)) / 995;
            length += std::sqrt(dot(row(values, 1, i), row(values, 1, i))) / 995;
        }
        QVERIFY(std::abs(table3->series[1].histogram.summary().mean - shifted) < 1e-4);
        QVERIFY(std::abs(table3->series[2].histogram.summary().mean - length) < 1e-4);
    }

    void scopesCountTheirHeads() {
        QCOMPARE(dataFor("norms", "head")->series[0].histogram.summary().count, std::int64_t{995});
        QCOMPARE(dataFor("norms", "layer")->series[0].histogram.summary().count, std::int64_t{2 * 995});
        const auto model = dataFor("norms", "model");
        QCOMPARE(model->series[1].histogram.summary().count, std::int64_t{6 * 8 * 995});
        QCOMPARE(model->where, std::string("6 of 6 layers"));
        QCOMPARE(dataFor("means", "model")->series[0].numbers.size(), std::size_t{48});
        QCOMPARE(dataFor("means", "head")->series[0].numbers.size(), std::size_t{4});
    }

    void figuresOfHeadsAreTheMeasures() {
        const auto logDet = dataFor("log_det", "layer", {"keydiff@0.25", "snapkv@0.25"});
        QCOMPARE(logDet->series.size(), std::size_t{2});
        const std::vector<std::string> ids = {"log_det"}, means = {"cos_distinct", "cos_means"};
        QCOMPARE(logDet->series[1].numbers, runner().measure(*measured("snapkv@0.25", 3), ids, {}).front().perHead);
        const auto distinct = dataFor("distinct", "layer");
        const auto expected = runner().measure(*measured("keydiff@0.25", 3), means, {}); // whatever is kept
        QCOMPARE(distinct->series[0].numbers, expected[0].perHead);
        QCOMPARE(distinct->series[1].numbers, expected[1].perHead);
    }

    // Every evaluation query of query head 5 by hand: its weights, its top key, the three cosines, M and both bounds.
    void theoremPointsAreThoseOfPlainLoops() {
        const HostTensor keys = tensorOf(TensorRole::Keys), queries = tensorOf(TensorRole::Queries);
        const LayerInfo& layer = needleCapture()->info().layerInfo(LayerIndex(3));
        const Engine& engine = runner().engine();
        const TheoremInput input{engine.rows(engine.upload(queries), 995, 1028),
                                 engine.upload(keys),
                                 995,
                                 995,
                                 {layer.scaling, 0, 0, layer.gqaGroupOf},
                                 5};
        const auto points = theoremPoints(engine, input, {});
        QVERIFY(points.size() > 20);
        const auto kbar = meanOf(keys, 1, 995);
        for (const TheoremPoint& point : points) {
            const auto q = row(queries, 5, point.query);
            std::vector<double> logits;
            double longest = 0; // of the keys that the query sees
            for (std::int64_t i = 0; i <= point.query; ++i) {
                logits.push_back(layer.scaling * dot(q, row(keys, 1, i)));
                longest = std::max(longest, dot(row(keys, 1, i), row(keys, 1, i)));
            }
            const auto top = std::max_element(logits.begin(), logits.end());
            double sum = 0;
            for (const double logit : logits) sum += std::exp(logit - *top);
            QCOMPARE(point.key, static_cast<TokenIndex>(top - logits.begin()));
            QVERIFY(std::abs(point.weight - 1 / sum) < 1e-5);
            const auto k = row(keys, 1, point.key);
            QVERIFY(std::abs(point.cosKey - cosine(k, q)) < 1e-6 && std::abs(point.cosMean - cosine(kbar, q)) < 1e-5 &&
                    std::abs(point.cosMeanKey - cosine(kbar, k)) < 1e-5);
            const double m = layer.scaling * layer.scaling * dot(q, q) * longest;
            QVERIFY(std::abs(point.squaredNorm / m - 1) < 1e-5);
            const double n = point.query; // the other keys
            QVERIFY(std::abs(point.leastCosKey - ((std::log(n / (n + 1)) - std::log(1 - point.weight)) / (2 * m) - 1)) <
                    1e-4);
            QVERIFY(std::abs(point.mostCosMeanKey - (1 - std::pow(point.cosMean - point.cosKey, 2) / 2)) < 1e-9);
            QVERIFY(holdsBound(point, true) && holdsBound(point, false)); // both are theorems
        }
    }

    void scatterShowsBoundAndWhatBreaksIt() {
        const ParameterValues options = optionsOf(m_view, {{"figure", "theorem"}});
        ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        auto data = std::make_shared<GeometryData>(*dataAs<GeometryData>(input));
        data->points.resize(2);
        data->evaluated = 2;
        data->points[0] = {1000, 10, 0.4, 0.5, -0.5, 0.2, 9, -0.9, 0.5};
        data->points[1] = {1001, 11, 0.4, 0.5, -0.5, 0.9, 9, -0.9, 0.5}; // beyond the bound
        input.data.value = data;
        const Scene scene = m_view.buildScene(input, options, viewport(600, 400, m_text));
        QCOMPARE(*scene_checks::cloudNamed(scene, "holds")->ids, (std::vector<std::int64_t>{0}));
        QCOMPARE(*scene_checks::cloudNamed(scene, "broken")->ids, (std::vector<std::int64_t>{1}));
        QVERIFY(paintSceneAsText(scene).find("1 beyond their bound") != std::string::npos);
        QVERIFY(m_view.finding(input, options).starts_with("1 of 2 queries lie within the bound of Theorem 3.2"));
        QVERIFY(m_view.finding(input, options).find("a < 0 < b holds for 2") != std::string::npos);
        // The curve at a - b = -1 is 0.5: as high as the bound of the first point.
        const auto curve = std::find_if(scene.items.begin(), scene.items.end(), [](const Drawable& d) {
            const auto* line = std::get_if<PolylineItem>(&d);
            return line && line->points.size() > 150;
        });
        QVERIFY(curve != scene.items.end());
        const Point at = scene_checks::cloudNamed(scene, "holds")->points->front();
        double nearest = 1e9, y = 0;
        for (const Point& p : std::get<PolylineItem>(*curve).points)
            if (std::abs(p.x - at.x) < nearest) nearest = std::abs(p.x - at.x), y = p.y;
        const double expected = at.y - (0.5 - 0.2) / (scene.yMax - scene.yMin) * scene.plot.height;
        QVERIFY2(std::abs(y - expected) < 2, qPrintable(QString("%1 %2").arg(y).arg(expected)));
        const PointFacts facts = m_view.factsAt(input, options, scene, at);
        QCOMPARE(facts.token, TokenIndex{10});
        QCOMPARE(facts.rows.back().second, std::string("0.5000"));
    }

    // The theorems take the last 256 queries of a head; behind an early cut there are more.
    void theTheoremsSayHowManyQueriesTheyTook() {
        const ParameterValues options = optionsOf(m_view, {{"figure", "lemma"}});
        ViewInput input = needleInput({"keydiff@0.25"});
        input.cut = Cut::resolve("500", *input.capture);
        fillData(input, m_view, options);
        const std::string text = m_view.finding(input, options);
        QVERIFY2(text.find(" queries, the last 256 of 528, lie within the bound") != std::string::npos, text.c_str());
        const std::string scene = paintSceneAsText(build(input, options, 900, 420));
        QVERIFY2(scene.find(" of the last 256 of 528") != std::string::npos, scene.c_str());
    }

    void theSampleIsJudged() {
        const ParameterValues lemma = optionsOf(m_view, {{"figure", "lemma"}});
        const std::string text = m_view.finding(inputFor(m_view, {"keydiff@0.25"}, lemma), lemma);
        QVERIFY2(text.find(" queries lie within the bound of Theorem C.1 here; ") != std::string::npos, text.c_str());
        const ParameterValues means = optionsOf(m_view, {{"figure", "means"}});
        QVERIFY(m_view.finding(inputFor(m_view, {"keydiff@0.25"}, means), means).find("of 48 query heads") !=
                std::string::npos);
    }

    // Twelve KV heads do not fill two dozen bins, and each of them is seen.
    void fewHeadsHaveFewBinsAndADotEach() {
        const ParameterValues options = optionsOf(m_view, {{"figure", "log_det"}, {"scope", "model"}});
        const ViewInput input = inputFor(m_view, {"keydiff@0.25", "snapkv@0.25"}, options);
        const auto data = dataAs<GeometryData>(input);
        QCOMPARE(data->series[0].numbers.size(), std::size_t{12});
        QCOMPARE(data->series[0].histogram.counts().size(), std::size_t{5}); // Sturges: ⌈log2 12⌉ + 1
        const Scene scene = m_view.buildScene(input, options, viewport(620, 420, m_text));
        for (std::size_t i = 0; i < 2; ++i) {
            const PointCloudItem* dots = scene_checks::cloudNamed(scene, "heads of " + data->series[i].name);
            QVERIFY(dots && dots->points->size() == 12);
            const double span = scene.xMax - scene.xMin;
            for (std::size_t head = 0; head < 12; ++head) {
                const double value = scene.xMin + ((*dots->points)[head].x - scene.plot.x) / scene.plot.width * span;
                QVERIFY(std::abs(value - data->series[i].numbers[head]) < 1e-6 * span);
            }
        }
        const ParameterValues many = optionsOf(m_view, {{"figure", "means"}, {"scope", "model"}});
        const ViewInput heads = inputFor(m_view, {"keydiff@0.25"}, many); // 48
        QVERIFY(!scene_checks::cloudNamed(m_view.buildScene(heads, many, viewport(620, 420, m_text)),
                                          "heads of " + dataAs<GeometryData>(heads)->series[0].name));
    }

    void aFigureOfAllLayersNamesNone() {
        for (const char* scope : {"model", "layer"}) {
            const ParameterValues options = optionsOf(m_view, {{"figure", "norms"}, {"scope", scope}});
            Viewport frame = viewport(700, 400, m_text);
            frame.forExport = true;
            const std::string text =
                paintSceneAsText(m_view.buildScene(inputFor(m_view, {"keydiff@0.25"}, options), options, frame));
            QCOMPARE(text.find("layer 3, KV head 1 (0-based)") != std::string::npos, std::string(scope) == "layer");
            QVERIFY(text.find("cut: end of context") != std::string::npos);
        }
    }

    void everyFigureFits_data() {
        QTest::addColumn<QString>("figure");
        QTest::addColumn<QSize>("size");
        for (const char* figure : {"cosines", "means", "norms", "distinct", "log_det", "table3", "lemma", "theorem"})
            for (const QSize size : {QSize(300, 220), QSize(930, 260), QSize(1400, 900), QSize(940, 126),
                                     QSize(490, 150), QSize(345, 130), QSize(246, 176)})
                QTest::newRow(qPrintable(QString("%1 %2x%3").arg(figure).arg(size.width()).arg(size.height())))
                    << QString(figure) << size;
    }
    void everyFigureFits() {
        QFETCH(QString, figure);
        QFETCH(QSize, size);
        const ParameterValues options = optionsOf(m_view, {{"figure", figure.toStdString()}, {"scope", "layer"}});
        const ViewInput input = inputFor(m_view, {"keydiff@0.25", "keydiff@0.5"}, options);
        QVERIFY(!m_view.finding(input, options).empty());
        QVERIFY(m_view.table(input, options).rowCount > 0);
        QCOMPARE(misplacedTexts(m_view, input, options, size, m_text), QStringList());
    }

    // Two labels are no scale: where there is room for four or more, there are as many.
    void axesHaveFourTicksWhereTheyFit_data() {
        QTest::addColumn<QString>("figure");
        for (const char* figure : {"cosines", "means", "norms", "distinct", "log_det", "table3"})
            QTest::newRow(figure) << QString(figure);
    }
    void axesHaveFourTicksWhereTheyFit() {
        QFETCH(QString, figure);
        const ParameterValues options = optionsOf(m_view, {{"figure", figure.toStdString()}, {"scope", "model"}});
        const ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        for (const QSize size : {QSize(345, 130), QSize(943, 128), QSize(1788, 263), QSize(1181, 477)}) {
            const Scene scene = m_view.buildScene(input, options, viewport(size.width(), size.height(), m_text));
            std::size_t across = 0, upwards = 0;
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item); text && text->style.face == FontFace::Monospace)
                    (text->horizontal == HorizontalAlign::Right ? upwards : across) += 1;
            QVERIFY2(across >= 4 && across <= 8, qPrintable(QString("%1 at %2").arg(across).arg(size.width())));
            QVERIFY2(upwards >= (size.height() > 200 ? 4u : 2u),
                     qPrintable(QString("%1 at %2").arg(upwards).arg(size.height())));
        }
    }

    // On the screen no riser is lower than a pixel: its joints would be a blob.
    void stepsLieOnPixels() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        for (const double scale : {1.0, 2.0}) {
            Viewport screen = viewport(700, 400, m_text);
            screen.pixelScale = scale;
            int risers = 0;
            for (const Drawable& item : m_view.buildScene(input, options, screen).items)
                if (const auto* line = std::get_if<PolylineItem>(&item);
                    line && line->stroke.width == 1.5 && line->points.size() > 8)
                    for (std::size_t i = 2; i + 1 < line->points.size(); ++i) {
                        const Point before = line->points[i - 1], at = line->points[i];
                        QVERIFY(before.x == at.x || before.y == at.y);
                        QVERIFY(before.y == at.y || std::abs(before.y - at.y) * scale > 1 - 1e-6);
                        QVERIFY(before.x != at.x || before.y != at.y);
                        risers += before.y != at.y;
                    }
            QVERIFY(risers > 20);
        }
    }

    void meansHaveEqualDecimals() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        QCOMPARE(m_view.finding(input, options),
                 std::string("Means with 95 % intervals: keys 0.424 ± 0.003, queries 0.386 ± 0.002 (6 of 6 layers)"));
        const ParameterValues norms = optionsOf(m_view, {{"figure", "log_det"}});
        const std::string text = m_view.finding(inputFor(m_view, {"keydiff@0.25", "snapkv@0.25"}, norms), norms);
        std::vector<std::size_t> decimals;
        for (std::size_t at = text.find(" ± "); at != std::string::npos; at = text.find(" ± ", at + 1))
            for (const std::size_t number : {text.rfind(' ', at - 1) + 1, at + std::string(" ± ").size()}) {
                const std::size_t end = text.find_first_of(" ,", number), point = text.find('.', number);
                decimals.push_back(point < end ? end - point - 1 : 0);
            }
        QCOMPARE(decimals.size(), std::size_t{4});
        QVERIFY2(std::count(decimals.begin(), decimals.end(), decimals.front()) == 4, text.c_str());
    }

    // By Student's t: 1.96 would make ± 6 of two heads. One head has no interval and no mean.
    void fewHeadsHaveWideIntervals() {
        const auto finding = [&](const std::string& scope) {
            const ParameterValues options = optionsOf(m_view, {{"figure", "log_det"}, {"scope", scope}});
            return m_view.finding(inputFor(m_view, {"keydiff@0.25"}, options), options);
        };
        const std::string layer = finding("layer"), head = finding("head");
        QVERIFY2(layer.starts_with("Means with 95 % intervals: KeyDiff 352 ± 36 ("), layer.c_str());
        QVERIFY2(head.starts_with("KeyDiff 3") && head.find("±") == std::string::npos, head.c_str());
    }

    // The marks of the means and the line at 0 are in the legend or not in the picture.
    void marksAreExplainedOrNotDrawn() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        for (const QSize size : {QSize(943, 128), QSize(345, 130), QSize(700, 400)}) {
            const Scene scene = m_view.buildScene(input, options, viewport(size.width(), size.height(), m_text));
            const std::vector<std::string> texts = scene_checks::textsOf(scene);
            const auto says = [&](const char* words) {
                return std::find(texts.begin(), texts.end(), words) != texts.end();
            };
            int marks = 0, zeros = 0;
            for (const Drawable& item : scene.items) {
                const auto* mark = std::get_if<PolygonItem>(&item);
                marks += mark && mark->points.front().y == scene.plot.bottom();
                const auto* line = std::get_if<PolylineItem>(&item);
                zeros += line && !line->stroke.dash.empty() && line->points.front().x == line->points.back().x;
            }
            const bool wide = size.width() > 600;
            QVERIFY(says("mean; ± is half the 95 % interval") == wide && says("0: at right angles") == wide);
            QCOMPARE(marks, wide ? 2 : 0);
            QCOMPARE(zeros, wide ? 1 : 0);
        }
    }

    void thePictureShowsTwoOutlines() {
        const ParameterValues options = optionsOf(m_view);
        const QImage image = renderScene(
            m_view.buildScene(inputFor(m_view, {"keydiff@0.25"}, options), options, viewport(700, 400, m_text)), 1);
        int ink = 0, purple = 0;
        for (int y = 40; y < image.height() - 50; ++y)
            for (int x = 70; x < image.width(); ++x) {
                const QColor c = image.pixelColor(x, y);
                ink += c.lightness() < 60;
                purple += c.red() > 120 && c.green() < 110 && c.blue() < 160;
            }
        QVERIFY2(ink > 150 && purple > 150, qPrintable(QString("%1 ink, %2 purple").arg(ink).arg(purple)));
    }

    void emptyStatesSayWhatIsMissing() {
        const ParameterValues options = optionsOf(m_view);
        QVERIFY(m_view.finding({}, options).find("Open one") != std::string::npos);
        ViewInput waiting = needleInput({"keydiff@0.25"});
        waiting.data = {};
        QVERIFY(m_view.finding(waiting, options).find("first layer") != std::string::npos);
    }
};

KVSCOPE_OFFSCREEN_TEST(GeometryViewTest)
#include "geometry_view_test.moc"
