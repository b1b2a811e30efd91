// The picture of the budget curves: an axis that ends where nothing can be kept any more, marks that stand whole on its
// ends, and the line of the present budget or value with its number, where no curve runs under it.
#include "core/base/error.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/colour_scale.h"
#include "views/curves/curves_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace kvscope;
using namespace kvscope::view_fixture;
using kvscope::scene_checks::cloudNamed;

namespace {

using Set = std::vector<std::pair<std::string, std::string>>;
const std::vector<QSize> kSizes = {QSize(940, 126), QSize(490, 150), QSize(345, 130), QSize(700, 420),
                                   QSize(1780, 260)};

const TextItem* textNamed(const Scene& scene, const std::string& start) {
    for (const Drawable& item : scene.items)
        if (const auto* text = std::get_if<TextItem>(&item); text && text->text.starts_with(start)) return text;
    return nullptr;
}

/// The dashed line from the top of the plot to its bottom.
const PolylineItem* presentLine(const Scene& scene) {
    for (const Drawable& item : scene.items)
        if (const auto* line = std::get_if<PolylineItem>(&item); line && line->points.size() == 2 &&
                                                                 line->points[0].x == line->points[1].x &&
                                                                 line->stroke.dash == std::vector<double>{4, 3})
            return line;
    return nullptr;
}

/// The numbers beside the vertical axis with their heights.
std::map<std::string, double> numbersUpwards(const Scene& scene) {
    std::map<std::string, double> numbers;
    for (const Drawable& item : scene.items)
        if (const auto* text = std::get_if<TextItem>(&item); text && text->horizontal == HorizontalAlign::Right)
            numbers[text->text] = text->position.y;
    return numbers;
}

double rightEndOfTheAxis(const Scene& scene) {
    double right = 0;
    for (const Drawable& item : scene.items)
        if (const auto* line = std::get_if<PolylineItem>(&item);
            line && line->points.size() == 2 && line->stroke.colour == themeOf(ThemeId::Light).axis)
            right = std::max(right, line->points[1].x);
    return right;
}

} // namespace

class CurvesViewTest : public ViewTest {
    Q_OBJECT

public:
    CurvesViewTest() : ViewTest(viewById("curves")) {}

private slots:
    // 256 sinks and 256 recents are 51 % of the 995 tokens before the cut: up to 50 % there is nothing to balance, and
    // the legend, the table and the finding say so.
    void pointsThatBalancedNothingSaySo() {
        const ParameterValues options = optionsOf(m_view, {{"seeds", "1"}});
        const ViewInput input = inputFor(m_view, {"balancekv@0.25"}, options);
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.columns.back(), std::string("notes"));
        QCOMPARE(table.rowCount, std::int64_t{11});
        for (std::int64_t row = 0; row < table.rowCount; ++row)
            QCOMPARE(table.cell(row, 13).find("nothing was balanced") != std::string::npos,
                     std::stod(table.cell(row, 5)) < 0.51);
        const std::string scene = paintSceneAsText(m_view.buildScene(input, options, viewport(940, 500, m_text)));
        QVERIFY2(scene.find("nothing balanced up to 50 %") != std::string::npos, scene.c_str());
        const std::string finding = m_view.finding(input, options);
        QVERIFY2(finding.find("BalanceKV balanced nothing: its sinks and recents take the whole budget") !=
                     std::string::npos,
                 finding.c_str());
    }

    // Two captures, or the heads of a layer: a height means the same in all their pictures.
    void picturesSideBySideHaveOneVerticalAxis() {
        for (const char* scale : {"log", "linear"}) {
            const ParameterValues options = optionsOf(m_view, {{"seeds", "1"}, {"scale", scale}});
            const ViewInput a = inputFor(m_view, {"keydiff@0.25", "snapkv@0.25"}, options);
            ViewInput b = a;
            auto data = std::make_shared<CurvesData>(*dataAs<CurvesData>(a));
            for (Curve& curve : data->curves)
                for (CurvePoint& point : curve.points)
                    for (double* value : {&point.mean, &point.low, &point.high}) *value *= 3;
            b.data.value = std::move(data);
            QVERIFY(numbersUpwards(build(a, options)) != numbersUpwards(build(b, options)));
            const ParameterValues shared = withCommonRange(m_view, {&a, &b}, options);
            const ValueRange range = ValueRange::parse(shared.text(kValueRangeOption)),
                             first = *m_view.valueRange(a, options), second = *m_view.valueRange(b, options);
            QCOMPARE(range.quantity, std::string("output_error"));
            QVERIFY(*range.low <= std::min(*first.low, *second.low));
            QVERIFY(*range.high >= std::max(*first.high, *second.high));
            const auto numbers = numbersUpwards(build(a, shared));
            QVERIFY(numbers.size() > 2);
            QCOMPARE(numbers, numbersUpwards(build(b, shared)));
            const ParameterValues masses = optionsOf(m_view, {{"scale", scale}, {"range", "retained_mass:0..1"}});
            QCOMPARE(numbersUpwards(build(a, masses)), numbersUpwards(build(a, options))); // of another measure
        }
        QVERIFY_THROWS_EXCEPTION(Error, optionsOf(m_view, {{"range", "no_measure:0..1"}}));
    }

    // What lies below a chosen axis is left out, not drawn on its lower end.
    void aLevelBelowTheAxisIsNotMovedOntoIt() {
        const ParameterValues options =
            optionsOf(m_view, {{"seeds", "1"}, {"scale", "linear"}, {"range", "output_error:0.4..1"}});
        ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        auto data = std::make_shared<CurvesData>(*dataAs<CurvesData>(input));
        data->level = {0.1, "full"};
        input.data.value = data;
        const Scene scene = build(input, options);
        std::vector<double> heights;
        for (const Drawable& item : scene.items)
            if (const auto* line = std::get_if<PolylineItem>(&item);
                line && line->points.size() == 2 && !line->stroke.dash.empty() &&
                line->points[1].x - line->points[0].x > 200 && line->points[0].y == line->points[1].y)
                heights.push_back(line->points[0].y);
        double bottom = 0;
        for (const auto& [number, height] : numbersUpwards(scene)) bottom = std::max(bottom, height);
        QVERIFY(bottom > 200);
        QCOMPARE(heights.size(), std::size_t{1});
        QVERIFY2(heights[0] > bottom + 20, qPrintable(QString("%1 below %2").arg(heights[0]).arg(bottom)));
    }

    // Where a parameter varies all points have one budget: the legend names the values.
    void valuesThatBalancedNothingAreNamed() {
        const ParameterValues options = optionsOf(m_view, {{"seeds", "1"}, {"vary", "sink=0,16,250"}});
        const ViewInput input = inputFor(m_view, {"balancekv,recent=64@0.3"}, options);
        const std::string scene = paintSceneAsText(m_view.buildScene(input, options, viewport(940, 500, m_text)));
        QVERIFY2(scene.find("(nothing balanced at sink = 250)") != std::string::npos, scene.c_str());
    }

    // Exact keeps all: its mark is the end of the axis, whole.
    void theAxisEndsAtAllTokens() {
        for (const char* scale : {"log", "linear"}) {
            const ParameterValues options = optionsOf(m_view, {{"seeds", "1"}, {"scale", scale}});
            const ViewInput input = inputFor(m_view, {"keydiff@0.25", "exact"}, options);
            for (const QSize size : kSizes) {
                const Scene scene = build(input, options, size.width(), size.height());
                const PointCloudItem& exact = *cloudNamed(scene, "B Exact");
                const Point end = exact.points->back();
                QVERIFY2(std::abs(end.x - rightEndOfTheAxis(scene)) < 1,
                         qPrintable(QString("%1, axis to %2").arg(end.x).arg(rightEndOfTheAxis(scene))));
                const auto clip = std::find_if(scene.items.begin(), scene.items.end(), [](const Drawable& item) {
                    return std::holds_alternative<PushClipItem>(item);
                });
                const Box& room = std::get<PushClipItem>(*clip).box;
                QVERIFY(end.x + exact.radius <= room.right() && end.y + exact.radius <= room.bottom());
            }
        }
    }

    // A curve that is high from the present budget on, or low from there on, or high and low on both sides of it.
    void theWordsStandWhereNoCurveRuns() {
        const ParameterValues options = optionsOf(m_view, {{"scale", "linear"}});
        ViewInput input = needleInput({"snapkv@0.25"});
        for (const std::vector<double>& values :
             {std::vector<double>{0.1, 0.9, 0.9}, {0.9, 0.1, 0.1}, {0.9, 0.9, 0.1}, {0.1, 0.1, 0.9}}) {
            auto data = std::make_shared<CurvesData>();
            Curve curve{{'A', "snapkv", "SnapKV"}};
            for (std::size_t i = 0; i < 3; ++i)
                curve.points.push_back({.asked = 0,
                                        .setting = "",
                                        .retention = std::vector<double>{0.05, 0.25, 0.9}[i],
                                        .mean = values[i],
                                        .low = values[i],
                                        .high = values[i]});
            data->curves = {curve};
            input.data.value = data;
            for (const QSize size : {QSize(490, 150), QSize(490, 220), QSize(1780, 260)}) {
                const Scene scene = build(input, options, size.width(), size.height());
                const Box box = textBounds(*textNamed(scene, "now "), m_text);
                int curves = 0;
                for (const Drawable& item : scene.items)
                    if (const auto* line = std::get_if<PolylineItem>(&item); line && line->points.size() == 3) {
                        ++curves;
                        for (double t = 0; t < 2; t += 0.005) {
                            const Point &from = line->points[std::size_t(t)], &to = line->points[std::size_t(t) + 1];
                            const Point at{std::lerp(from.x, to.x, t - std::floor(t)),
                                           std::lerp(from.y, to.y, t - std::floor(t))};
                            QVERIFY2(!box.contains(at), qPrintable(QString("%1 %2 %3, %4 x %5")
                                                                       .arg(values[0])
                                                                       .arg(values[1])
                                                                       .arg(values[2])
                                                                       .arg(size.width())
                                                                       .arg(size.height())));
                        }
                    }
                QVERIFY(curves > 0);
            }
        }
    }

    void thePresentBudgetHasItsNumber_data() {
        QTest::addColumn<QString>("against");
        QTest::addColumn<QString>("vary");
        QTest::addColumn<QString>("words");
        const ViewInput input = needleInput({"snapkv@0.25"});
        const double kept = 100.0 * 249 / 995, kibibytes = double(storedBytes(*input.panes[0].result)) / 1024;
        QTest::newRow("share") << "retention"
                               << "" << QString::fromStdString("now 249 tokens (" + formatFixed(kept, 1) + " %)");
        QTest::newRow("bytes") << "bytes"
                               << "" << QString::fromStdString("now " + formatShort(kibibytes) + " KiB");
        QTest::newRow("parameter") << "retention"
                                   << "window=8,32,64" << QString("now 32");
    }
    void thePresentBudgetHasItsNumber() {
        QFETCH(QString, against);
        QFETCH(QString, vary);
        QFETCH(QString, words);
        const ParameterValues options =
            optionsOf(m_view, {{"seeds", "1"}, {"against", against.toStdString()}, {"vary", vary.toStdString()}});
        const ViewInput input = inputFor(m_view, {"snapkv@0.25", "keydiff@0.25", "streaming_llm@0.25"}, options);
        for (const QSize size : kSizes) {
            const Scene scene = build(input, options, size.width(), size.height());
            const TextItem* text = textNamed(scene, "now ");
            QVERIFY(text && presentLine(scene));
            QCOMPARE(QString::fromStdString(text->text), words);
            const Box box = textBounds(*text, m_text);
            const double line = presentLine(scene)->points[0].x;
            QVERIFY2(std::min(std::abs(box.x - line), std::abs(box.right() - line)) < 10,
                     qPrintable(QString("%1 beside %2").arg(box.x).arg(line)));
            // No mark lies under the words.
            for (const Drawable& item : scene.items)
                if (const auto* cloud = std::get_if<PointCloudItem>(&item))
                    for (const Point point : *cloud->points)
                        QVERIFY2(!box.contains(point),
                                 qPrintable(QString("%1 x %2").arg(size.width()).arg(size.height())));
            QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
        }
    }
};

KVSCOPE_OFFSCREEN_TEST(CurvesViewTest)
#include "curves_view_test.moc"
