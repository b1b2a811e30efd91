// The figure of a reproduction: whoever looks at it must be able to tell every line from every other, also where one
// policy has several.
#include <QtTest>

#include "app/command_line/reproduction_figure.h"
#include "app/text/qt_text_service.h"
#include "tests/support/offscreen_main.h"
#include "tests/support/scene_checks.h"

#include <set>

using namespace kvscope;

namespace {

ReproducedSeries seriesOf(const std::string& policy, const std::string& label, double height) {
    ReproducedSeries series{label, policy, "output_error", {}};
    for (const double x : {0.1, 0.25, 0.5})
        series.points.push_back({x, {}, summaryOf(std::vector<double>{height - x, height - x + 0.1})});
    return series;
}

Scene figureOf(std::vector<ReproducedSeries> series, const TextService& text) {
    const ReproductionResult result{std::move(series), "Retention", "Output error", "seeds", {"policy: compactor"}};
    Viewport viewport;
    viewport.text = &text;
    return drawReproduction(reproductionById("compactor-table4"), result, viewport);
}

/// Marker, colour and fill of each series' marks, by name.
std::vector<std::tuple<std::string, Marker, std::uint32_t, std::uint32_t>> looksOf(const Scene& scene) {
    const auto number = [](Colour c) { return std::uint32_t{c.r} << 24 | std::uint32_t{c.g} << 16 | std::uint32_t{c.b} << 8 | c.a; };
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
        const Scene scene = figureOf({seriesOf("compactor", "gaussian", 1), seriesOf("compactor", "none", 2),
                                      seriesOf("compactor", "srht", 3), seriesOf("snapkv", "snapkv", 4)},
                                     text);
        const auto looks = looksOf(scene);
        QCOMPARE(looks.size(), std::size_t{4});
        std::set<std::pair<Marker, std::uint32_t>> different;
        for (const auto& [name, marker, fill, stroke] : looks)
            different.insert({marker, stroke});
        QCOMPARE(different.size(), std::size_t{4});
        QCOMPARE(std::get<3>(looks[0]), std::get<3>(looks[2])); // the policy's colour
        QVERIFY(scene_checks::overlappingTexts(scene, text).isEmpty());
    }

    void aPolicyWithOneSeriesKeepsItsOwnMark() {
        const QtTextService text;
        const auto looks = looksOf(figureOf({seriesOf("keydiff", "keydiff", 1), seriesOf("snapkv", "snapkv", 2)}, text));
        QCOMPARE(std::get<1>(looks[0]), policyStyle("keydiff", ThemeId::Light).marker);
        QCOMPARE(std::get<1>(looks[1]), policyStyle("snapkv", ThemeId::Light).marker);
        QCOMPARE(std::get<2>(looks[0]), std::get<3>(looks[0])); // filled
    }
};

KVSCOPE_OFFSCREEN_TEST_MAIN(ReproductionFigureTest)
#include "reproduction_figure_test.moc"
