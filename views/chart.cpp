// The frame around a plot, the same in every view that has axes.
#include "views/chart.h"

#include "views/view_facts.h"

namespace kvscope {

namespace {

constexpr double kLegendRow = 24, kProvenanceRow = 18;

AxesStyle styleFor(double width, double height, ThemeId theme) {
    AxesStyle style;
    style.titles = width >= 220 && height >= 160;
    style.tickLabels = width >= 160 && height >= 110;
    style.forPaper = theme == ThemeId::Paper;
    return style;
}

} // namespace

Chart::Chart(const Viewport& viewport, AxisSpec x, AxisSpec y, double rightMargin)
    : style(styleFor(viewport.width, viewport.height, viewport.theme)) {
    scene.width = viewport.width;
    scene.height = viewport.height;
    scene.background = themeOf(viewport.theme).canvas;
    frame.x = std::move(x);
    frame.y = std::move(y);
    Box area = plotArea(viewport);
    area.width -= rightMargin;
    frame.plot = plotBoxFor(area, frame.y, style, *viewport.text);
}

SubPlot::SubPlot(const Viewport& viewport, const Box& area, AxisSpec x, AxisSpec y)
    : style(styleFor(area.width + 22, area.height + 26, viewport.theme)) {
    frame.x = std::move(x);
    frame.y = std::move(y);
    frame.plot = plotBoxFor(area, frame.y, style, *viewport.text);
}

Box plotArea(const Viewport& viewport, int legendRows) {
    const double top = kLegendRow * legendRows, bottom = viewport.forExport ? kProvenanceRow : 2;
    return {8, top, viewport.width - 14, viewport.height - top - bottom};
}

void drawProvenance(SceneBuilder& builder, const ViewInput& input, const Viewport& viewport, bool wholeModel) {
    if (!viewport.forExport)
        return;
    const TextStyle note{FontFace::Interface, 10};
    const std::string text = provenance(input, readyPanes(input), wholeModel);
    builder.text({viewport.width / 2, viewport.height - 5}, builder.elide(text, note, viewport.width - 16), note,
                 themeOf(viewport.theme).text3, HorizontalAlign::Centre);
}

void finishChart(Chart& chart, const std::vector<LegendEntry>& legend, const ViewInput& input, const Viewport& viewport,
                 bool zoomable) {
    const Theme& theme = themeOf(viewport.theme);
    SceneBuilder builder = chart.builder(viewport);
    drawAxes(builder, chart.frame, chart.style, theme);
    drawLegend(builder, {chart.frame.plot.x, 13}, viewport.width - chart.frame.plot.x - 6, legend, theme);
    drawProvenance(builder, input, viewport);
    if (!zoomable)
        return;
    chart.scene.plot = chart.frame.plot;
    chart.scene.xMin = chart.frame.x.low, chart.scene.xMax = chart.frame.x.high;
    chart.scene.yMin = chart.frame.y.low, chart.scene.yMax = chart.frame.y.high;
}

} // namespace kvscope
