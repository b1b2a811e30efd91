// The words around the calibration curves where there is little room: whole labels, a plot that stays the picture, a
// title no longer than its axis, and r* of poor fits drawn as unsure.
#include <QtTest>

#include "core/metrics/measure_values.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/calibration/calibration_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace kvscope;
using namespace kvscope::view_fixture;
using kvscope::scene_checks::says;

namespace {

/// All three are poor fits, the last two proxies.
const std::vector<std::string> kPanes = {"keydiff:kvpress@0.25", "snapkv@0.25", "streaming_llm@0.25"};
const std::vector<QSize> kSizes = {QSize(345, 150),  QSize(401, 200),  QSize(490, 200),
                                   QSize(579, 221),  QSize(654, 260),  QSize(943, 200),
                                   QSize(1122, 200), QSize(1788, 263), QSize(1860, 848)};

CalibrationSeries seriesOf(char letter, double k, std::vector<std::pair<double, double>> points) {
    CalibrationSeries series{{letter, "snapkv", "SnapKV"}};
    series.context = "x";
    series.own = true;
    series.k = k;
    for (const auto& [retention, quality] : points) series.triples.push_back({"x", retention, NAN, quality});
    return series;
}

} // namespace

class CalibrationLabelsTest : public ViewTest {
    Q_OBJECT

public:
    CalibrationLabelsTest() : ViewTest(viewById("calibration"), 700, 520) {}

private slots:
    void noLabelIsCutAndEveryPoorFitIsCalledOne() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, kPanes, options);
        for (const QSize size : kSizes) {
            const Scene scene = build(input, options, size.width(), size.height());
            const std::string where = std::to_string(size.width()) + " px: " + paintSceneAsText(scene);
            QVERIFY2(!says(scene, "…"), where.c_str());
            QVERIFY2(says(scene, "poor fit") && says(scene, "proxy"), where.c_str());
            QVERIFY2(!says(scene, "no model's"), where.c_str());
        }
    }

    void thePlotKeepsTwoThirdsOfAWideDock() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, kPanes, options);
        for (const QSize size :
             {QSize(943, 200), QSize(1122, 200), QSize(1416, 220), QSize(1788, 263), QSize(1860, 848)}) {
            const Scene scene = build(input, options, size.width(), size.height());
            QVERIFY2(scene_checks::clipOf(scene).width >= 0.65 * size.width(),
                     qPrintable(QString("%1 of %2").arg(scene_checks::clipOf(scene).width).arg(size.width())));
        }
        QVERIFY(says(build(input, options, 1122, 200), "residual")); // the list is there
    }

    void theTitleIsNoLongerThanItsAxis() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, kPanes, options);
        std::set<std::string> titles;
        for (double height = 160; height < 600; height += 20) {
            const Scene scene = build(input, options, 900, height);
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item); text && text->angleDegrees != 0) {
                    QVERIFY2(m_text.measure(text->text, text->style).width <= scene_checks::clipOf(scene).height + 0.5,
                             text->text.c_str());
                    titles.insert(text->text);
                }
        }
        QCOMPARE(titles, (std::set<std::string>{"Quality", "Quality = NLL(full) / NLL(compressed)",
                                                "Quality = NLL(full) / NLL(compressed); hollow: proxy"}));
    }

    void anUnsureRetentionIsDashedAndHasTwoDigits() {
        const ParameterValues options = optionsOf(m_view);
        auto data = std::make_shared<CalibrationViewData>();
        data->weight = 5;
        data->series = {seriesOf('A', 0, {{0.2, 0.2}, {0.6, 0.6}}), seriesOf('B', -5, {{0.2, 0.01}, {0.6, 0.99}})};
        ViewInput input = needleInput({"snapkv@0.25", "snapkv@0.5"});
        input.data.value = data;
        const Scene scene = build(input, options);
        QVERIFY2(says(scene, "A SnapKV r* 0.950") && says(scene, "B SnapKV points 0.60, r* 0.58"),
                 paintSceneAsText(scene).c_str());
        std::vector<bool> dashed;
        for (const Drawable& item : scene.items)
            if (const auto* line = std::get_if<PolylineItem>(&item);
                line && line->points.size() == 2 && line->points[0].x == line->points[1].x &&
                line->stroke.width == 1.2 && line->points[1].y == scene_checks::clipOf(scene).bottom())
                dashed.push_back(!line->stroke.dash.empty());
        std::sort(dashed.begin(), dashed.end());
        QCOMPARE(dashed, (std::vector<bool>{false, true}));
    }

    void pointsSayTheSmallestRetentionFromWhichOnAllKeep() {
        const auto of = [](std::vector<std::pair<double, double>> points, double tau) {
            std::vector<CalibrationTriple> triples;
            for (const auto& [retention, quality] : points) triples.push_back({"c", retention, NAN, quality});
            return retentionOfPoints(triples, tau);
        };
        QCOMPARE(of({{0.5, 0.96}, {0.1, 0.2}, {1, 1}, {0.2, 0.95}}, 0.95), 0.2);
        QCOMPARE(of({{0.1, 0.99}, {0.2, 0.9}, {0.5, 0.97}}, 0.95), 0.5); // a lucky point below does not count
        QCOMPARE(of({{0.5, 0.99}, {0.5, 0.9}, {0.9, 0.97}}, 0.95), 0.9); // nor one of two at one retention
        QVERIFY(std::isnan(of({{0.5, 0.99}, {0.9, 0.94}}, 0.95)));
        QVERIFY(std::isnan(of({}, 0.95)));
    }

    void measuredAndProxyAreRankedApart() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"snapkv@0.25", "compactor:kvpress@0.25"}, options);
        const std::string finding = m_view.finding(input, options);
        const auto measured = finding.find(", measured: B Compactor"), proxy = finding.find("; by proxy: A SnapKV");
        QVERIFY2(measured != std::string::npos && proxy != std::string::npos && measured < proxy, finding.c_str());
        const Scene scene = build(input, options, 1860, 850);
        const auto heightOf = [&](const std::string& words) {
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item); text && text->text.starts_with(words))
                    return text->position.y;
            return -1.0;
        };
        QVERIFY(heightOf("B Compactor") > 0 && heightOf("by proxy") > heightOf("B Compactor") &&
                heightOf("A SnapKV") > heightOf("by proxy"));
    }
};

KVSCOPE_OFFSCREEN_TEST(CalibrationLabelsTest)
#include "calibration_labels_test.moc"
