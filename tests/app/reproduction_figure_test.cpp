// The figure of a reproduction: whoever looks at it must be able to tell every line from every other, also where one
// policy has several.
#include <QtTest>

#include "app/command_line/reproduction_figure.h"
#include "app/text/qt_text_service.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "views/common/policy_style.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace kvscope;
using kvscope::scene_checks::hasText;

namespace {

ReproducedSeries seriesOf(const std::string& policy, const std::string& label, double height) {
    ReproducedSeries series{label, policy, "output_error", {}};
    for (const double x : {0.1, 0.25, 0.5})
        series.points.push_back({x, {}, summaryOf(std::vector<double>{height - x, height - x + 0.1}), "layers"});
    return series;
}

Scene drawn(const char* row, std::vector<ReproducedSeries> series, const TextService& text,
            std::vector<std::string> notes = {}) {
    const ReproductionResult result{std::move(series), "the axis", "its measure", std::move(notes)};
    Viewport viewport;
    viewport.text = &text;
    return drawReproduction(reproductionById(row), result, viewport);
}

/// Heights of the marks of "keydiff" and of the ends of all bars.
std::pair<std::vector<double>, std::vector<double>> marksAndBars(const Scene& scene) {
    std::pair<std::vector<double>, std::vector<double>> found;
    for (const Drawable& item : scene.items) {
        if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name == "keydiff")
            for (const Point& at : *cloud->points) found.first.push_back(at.y);
        if (const auto* bar = std::get_if<PolylineItem>(&item);
            bar && bar->stroke.width == 1.2 && bar->points.size() == 2)
            for (const Point& at : bar->points) found.second.push_back(at.y);
    }
    return found;
}

/// Marker, colour and fill of each series' marks, by name.
std::vector<std::tuple<std::string, Marker, std::uint32_t, std::uint32_t>> looksOf(const Scene& scene) {
    const auto number = [](Colour c) {
        return std::uint32_t{c.r} << 24 | std::uint32_t{c.g} << 16 | std::uint32_t{c.b} << 8 | c.a;
    };
    std::vector<std::tuple<std::string, Marker, std::uint32_t, std::uint32_t>> looks;
    for (const Drawable& item : scene.items)
        if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && !cloud->name.empty())
            looks.emplace_back(cloud->name, cloud->marker, number(cloud->fill), number(cloud->stroke.colour));
    return looks;
}

} // namespace

class ReproductionFigureTest : public QObject {
    Q_OBJECT

private slots:
    void seriesOfOnePolicyCanBeToldApart() {
        const QtTextService text;
        const Scene scene = drawn("compactor-table4",
                                  {seriesOf("compactor", "gaussian", 1), seriesOf("compactor", "none", 2),
                                   seriesOf("compactor", "srht", 3), seriesOf("snapkv", "snapkv", 4)},
                                  text, {"policy: compactor"});
        const auto looks = looksOf(scene);
        QCOMPARE(looks.size(), std::size_t{4});
        std::set<std::pair<Marker, std::uint32_t>> different;
        for (const auto& [name, marker, fill, stroke] : looks) different.insert({marker, stroke});
        QCOMPARE(different.size(), std::size_t{4});
        QCOMPARE(std::get<3>(looks[0]), std::get<3>(looks[2])); // the policy's colour
        QVERIFY(scene_checks::overlappingTexts(scene, text).isEmpty());
    }

    void aPolicyWithOneSeriesKeepsItsOwnMark() {
        const QtTextService text;
        const auto looks =
            looksOf(drawn("compactor-table4", {seriesOf("keydiff", "keydiff", 1), seriesOf("snapkv", "snapkv", 2)},
                          text, {"policy: compactor"}));
        QCOMPARE(std::get<1>(looks[0]), policyStyle("keydiff", ThemeId::Light).marker);
        QCOMPARE(std::get<1>(looks[1]), policyStyle("snapkv", ThemeId::Light).marker);
        QCOMPARE(std::get<2>(looks[0]), std::get<3>(looks[0])); // filled
    }

    // Twelve names do not fit one row; none is left out, and none lies over another.
    void everySeriesIsNamed() {
        const QtTextService text;
        std::vector<ReproducedSeries> series;
        for (int i = 0; i < 12; ++i)
            series.push_back(seriesOf("compactor", "compactor with some parameter=" + std::to_string(100 + i), i));
        const Scene scene = drawn("compactor-table4", series, text);
        for (const ReproducedSeries& one : series) QVERIFY2(hasText(scene, one.label), one.label.c_str());
        QCOMPARE(scene_checks::misplacedTexts(scene, text), QStringList());
    }

    // There is no layer 0.5, and nobody has to know ids of measures and choices.
    void layersHaveWholeTicksAndSeriesTheNamesThatPeopleRead() {
        const QtTextService text;
        ReproducedSeries series{"exact cos_means", "exact", "cos_means", {}, {}, "Cosine of the means"};
        for (const double layer : {0.0, 1.0, 2.0})
            series.points.push_back({layer, {}, summaryOf(std::vector<double>{100 * layer, 100 * layer + 1}), "heads"});
        const Scene scene = drawn("keydiff-fig14", {series}, text);
        QVERIFY(hasText(scene, "0") && hasText(scene, "1") && hasText(scene, "2"));
        QVERIFY(!hasText(scene, "0.5") && !hasText(scene, "1.5"));
        QVERIFY(hasText(scene, "Cosine of the means") && !hasText(scene, series.label));

        ReproducedSeries anchors{"keydiff", "keydiff", "output_error", {}};
        anchors.points.push_back({0, "normalised_mean", summaryOf(std::vector<double>{1, 2}), "layers"});
        QVERIFY(hasText(drawn("keydiff-table14", {anchors}, text), "Mean of unit keys"));
    }

    // Two samples far apart: Student's interval is twelve times their distance. The means keep their room, nothing
    // leaves the plot, and no error below 0 is promised.
    void wideIntervalsDoNotFlattenTheMeans() {
        const QtTextService text;
        ReproducedSeries series{"keydiff", "keydiff", "output_error", {}};
        for (const double mean : {0.5, 0.3, 0.1})
            series.points.push_back(
                {1 - mean, {}, summaryOf(std::vector<double>{mean - 0.05, mean + 0.05}), "captures"});
        QVERIFY(series.points[0].summary.halfInterval() > 0.6);
        const Scene scene = drawn("keydiff-table8", {series}, text);
        const auto [marks, ends] = marksAndBars(scene);
        QCOMPARE(marks.size(), std::size_t{3});
        QCOMPARE(ends.size(), std::size_t{6});
        QVERIFY2(marks[2] - marks[0] > 100, std::to_string(marks[2] - marks[0]).c_str());
        QVERIFY(*std::min_element(ends.begin(), ends.end()) > 0 &&
                *std::max_element(ends.begin(), ends.end()) < scene.height);
        QVERIFY(!hasText(scene, "−0.2"));
    }

    // A point of one sample has no bar; where a row shows deviations these are the bars, not the intervals.
    void barsAreWhatTheRowSays() {
        const QtTextService text;
        ReproducedSeries series{"keydiff", "keydiff", "log_det", {}};
        series.points.push_back({0, {}, summaryOf(std::vector<double>{300, 320, 340}), "heads"});
        series.points.push_back({1, {}, summaryOf(std::vector<double>{360})});
        // Lengths of the bars as shares of the distance of the means, 40: twice the deviation 20, and twice
        // 4.302653 * 20 / sqrt(3).
        for (const auto& [row, share] : {std::pair("keydiff-fig12", 1.0), std::pair("keydiff-table8", 2.484138)}) {
            const auto [marks, ends] = marksAndBars(drawn(row, {series}, text));
            QCOMPARE(ends.size(), std::size_t{2});
            QVERIFY2(std::abs((ends[0] - ends[1]) / (marks[0] - marks[1]) - share) < 1e-4, row);
        }
    }

    void manyNotesLeaveThePlotItsRoom() {
        const QtTextService text;
        const Scene few = drawn("keydiff-table8", {seriesOf("keydiff", "keydiff", 1)}, text);
        const Scene many = drawn("keydiff-table8", {seriesOf("keydiff", "keydiff", 1)}, text,
                                 std::vector<std::string>(40, "data here: a prompt"));
        QVERIFY(many.height > few.height + 300);
        QCOMPARE(scene_checks::misplacedTexts(many, text), QStringList());
    }

    // Values of a parameter are named at their places, not numbered.
    void categoriesBearTheirNames() {
        const QtTextService text;
        ReproducedSeries series{"keydiff", "keydiff", "overlap", {}};
        for (const char* anchor : {"mean", "median", "pairwise"})
            series.points.push_back(
                {static_cast<double>(series.points.size()), anchor, summaryOf(std::vector<double>{0.58, 0.6, 0.62})});
        const Scene scene = drawn("keydiff-table14", {series}, text);
        QVERIFY(hasText(scene, "Mean of keys") && hasText(scene, "Median") && hasText(scene, "Pairwise") &&
                hasText(scene, "the axis"));
        QVERIFY(!hasText(scene, "1.5"));
        QVERIFY(scene_checks::overlappingTexts(scene, text).isEmpty());
    }

    // A bar for every bin that holds a prompt, as high as there are, and the bins of both series named.
    void lengthsAreBars() {
        const QtTextService text;
        ReproducedSeries same{"the paper's edges", "exact", "prompts", {}},
            scaled{"scaled edges", "exact", "prompts", {}};
        const std::vector<double> counts = {4, 0, 2};
        for (std::size_t bin = 0; bin < counts.size(); ++bin) {
            same.points.push_back({static_cast<double>(bin), "bin " + std::to_string(bin), {6, counts[bin], 0}});
            scaled.points.push_back(
                {static_cast<double>(bin), "scaled " + std::to_string(bin), {6, counts[2 - bin], 0}});
        }
        const Scene scene = drawn("keydiff-fig18", {same, scaled}, text);
        std::vector<double> heights;
        for (const Drawable& item : scene.items)
            if (const auto* box = std::get_if<RectangleItem>(&item);
                box && box->stroke.width == 1.2 && box->box.height > 20)
                heights.push_back(box->box.height);
        QCOMPARE(heights.size(), std::size_t{4});
        std::sort(heights.begin(), heights.end());
        QVERIFY(std::abs(heights[3] - 2 * heights[0]) < 1e-6 && heights[0] == heights[1]);
        QVERIFY(hasText(scene, "bin 1") && hasText(scene, "scaled 1") && !hasText(scene, "the axis"));
        QVERIFY(scene_checks::overlappingTexts(scene, text).isEmpty());
    }

    // On two logarithmic axes a power law is a straight line through points that obey it; the legend says the power.
    void powerLawsAreStraightLines() {
        const QtTextService text;
        ReproducedSeries series{"uniform", "uniform", "numerator_error", {}};
        for (const double x : {32.0, 64.0, 128.0, 256.0})
            series.points.push_back({x, {}, summaryOf(std::vector<double>{1 / std::sqrt(x)})});
        series.law = PowerLaw{-0.5, 1, 0.04, 4};
        const Scene scene = drawn("balancekv-memory", {series}, text);
        QVERIFY(hasText(scene, "uniform: power −0.50 ± 0.04"));
        QVERIFY(hasText(scene, "theory: power −1") && hasText(scene, "theory: power −0.5")); // what theory expects
        QCOMPARE(scene_checks::misplacedTexts(scene, text), QStringList());
        const auto cloud = std::find_if(scene.items.begin(), scene.items.end(), [](const Drawable& item) {
            const auto* points = std::get_if<PointCloudItem>(&item);
            return points && points->name == "uniform";
        });
        QVERIFY(cloud != scene.items.end());
        const std::vector<Point>& at = *std::get<PointCloudItem>(*cloud).points;
        for (std::size_t i = 0; i + 1 < at.size(); ++i) // equal steps in both directions
            QVERIFY(std::abs(at[i + 1].x - at[i].x - (at[1].x - at[0].x)) < 1e-6 &&
                    std::abs(at[i + 1].y - at[i].y - (at[1].y - at[0].y)) < 1e-6);
        const bool line = std::any_of(scene.items.begin(), scene.items.end(), [&](const Drawable& item) {
            const auto* path = std::get_if<PolylineItem>(&item);
            return path && path->points.size() == 2 && std::abs(path->points[0].y - at[0].y) < 1e-6 &&
                   std::abs(path->points[1].y - at[3].y) < 1e-6;
        });
        QVERIFY(line);
    }
};

KVSCOPE_OFFSCREEN_TEST(ReproductionFigureTest)
#include "reproduction_figure_test.moc"
