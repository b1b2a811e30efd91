// The frame around a plot, the same in every view that has axes.
#include "views/common/chart.h"

#include "views/common/view_facts.h"

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

constexpr double kLegendRow = 24, kProvenanceRow = 18, kEdge = 10;

AxesStyle styleFor(double width, double height, ThemeId theme) {
    AxesStyle style;
    style.titles = width >= 220 && height >= 160;
    style.tickLabels = width >= 160 && height >= 110;
    style.forPaper = theme == ThemeId::Paper;
    return style;
}

/// Rows of a legend along the upper edge: as many as it needs, as long as they leave the plot most of the height.
int topRows(const Viewport& viewport, const std::vector<LegendEntry>& legend) {
    const int most = std::clamp(static_cast<int>((0.3 * viewport.height - kLegendRow) / kLegendPitch) + 1, 1, 4);
    return legendRows(legend, viewport.width - 2 * kEdge, most, *viewport.text);
}

} // namespace

Chart::Chart(const Viewport& viewport, std::vector<LegendEntry> entries, AxisSpec x, AxisSpec y, double rightMargin)
    : style(styleFor(viewport.width, viewport.height, viewport.theme)), legend(std::move(entries)) {
    scene = blankScene(viewport);
    frame.x = std::move(x);
    frame.y = std::move(y);
    Box area = plotArea(viewport, legend);
    area.width -= rightMargin;
    frame.plot = plotBoxFor(area, frame.y, style, *viewport.text);
}

SubPlot::SubPlot(const Viewport& viewport, const Box& area, AxisSpec x, AxisSpec y)
    : style(styleFor(area.width + 22, area.height + 26, viewport.theme)) {
    frame.x = std::move(x);
    frame.y = std::move(y);
    frame.plot = plotBoxFor(area, frame.y, style, *viewport.text);
}

double furtherLegendRows(const Viewport& viewport, const std::vector<LegendEntry>& legend) {
    return kLegendPitch * (topRows(viewport, legend) - 1);
}

bool isTopLegendWhole(const Viewport& viewport, const std::vector<LegendEntry>& legend) {
    return isLegendWhole(legend, viewport.width - 2 * kEdge, topRows(viewport, legend), *viewport.text);
}

double drawTopLegend(SceneBuilder& builder, const Viewport& viewport, const std::vector<LegendEntry>& legend,
                     double left, double middle) {
    const int rows = topRows(viewport, legend);
    const double most = viewport.width - 2 * kEdge;
    const double x =
        std::max(kEdge, std::min(left, viewport.width - kEdge - legendWidth(legend, most, rows, *viewport.text)));
    return drawLegend(builder, {x, middle}, viewport.width - kEdge - x, legend, themeOf(viewport.theme), rows);
}

Box plotArea(const Viewport& viewport, const std::vector<LegendEntry>& legend) {
    const double top = kLegendRow + furtherLegendRows(viewport, legend),
                 bottom = viewport.forExport ? kProvenanceRow : 2;
    return {8, top, viewport.width - 14, viewport.height - top - bottom};
}

void drawProvenance(SceneBuilder& builder, const ViewInput& input, const Viewport& viewport, bool wholeModel) {
    drawProvenance(builder, viewport, provenance(input, readyPanes(input), wholeModel));
}

void drawProvenance(SceneBuilder& builder, const Viewport& viewport, const std::string& provenance) {
    if (!viewport.forExport) return;
    const TextStyle note{FontFace::Interface, 10};
    builder.text({viewport.width / 2, viewport.height - 5}, builder.elide(provenance, note, viewport.width - 16), note,
                 themeOf(viewport.theme).text2, HorizontalAlign::Centre);
}

void SubPlot::open(SceneBuilder& builder, const Theme& theme) const {
    drawGrid(builder, frame, theme);
    builder.pushClip(frame.plot);
}

PlotFrame SubPlot::close(SceneBuilder& builder, const Theme& theme) const {
    builder.popClip();
    drawAxes(builder, frame, style, theme);
    return frame;
}

Scene finishChart(Chart& chart, const ViewInput& input, const Viewport& viewport, bool zoomable, bool wholeModel) {
    return finishChart(chart, viewport, zoomable, provenance(input, readyPanes(input), wholeModel));
}

Scene finishChart(Chart& chart, const Viewport& viewport, bool zoomable, const std::string& provenance) {
    const Theme& theme = themeOf(viewport.theme);
    SceneBuilder builder = chart.builder(viewport);
    drawAxes(builder, chart.frame, chart.style, theme);
    drawTopLegend(builder, viewport, chart.legend, chart.frame.plot.x);
    drawProvenance(builder, viewport, provenance);
    if (zoomable) setDataRange(chart.scene, chart.frame);
    return std::move(chart.scene);
}

} // namespace kvscope
