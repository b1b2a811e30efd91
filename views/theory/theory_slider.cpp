// Below the rows: the epsilon at which the theorems apply to the current settings. Margins beyond six decades are drawn
// at the edge.
#include "views/theory/theory_slider.h"

#include "views/common/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kDecades = 6, kLegendRow = 20, kLeastHeight = 160;

double decadesOf(double margin) { return std::clamp(std::log10(std::max(margin, 1e-300)), -kDecades, kDecades); }

/// A colour and a dash, so that lines differ without colour too.
Stroke lineOf(std::size_t index, const Theme& theme) {
    const Colour colours[] = {theme.kept, theme.evicted, theme.query, theme.protectedToken, theme.text2};
    const std::vector<double> dashes[] = {{}, {6, 3}, {2, 2}, {8, 3, 2, 3}, {1, 3}};
    return {colours[index % std::size(colours)], 1.8, dashes[index % std::size(dashes)]};
}

std::vector<std::size_t> movedByEpsilon(const TheoryData& data, const std::vector<std::size_t>& rows) {
    std::vector<std::size_t> moved;
    for (const std::size_t row : rows)
        if (data.rows[row].hasMargin() && !data.rows[row].overEpsilon.empty()) moved.push_back(row);
    return moved;
}

/// An axis over whole decades that holds all lines and 1.
AxisSpec marginAxis(const TheoryData& data, const std::vector<std::size_t>& moved) {
    double low = 0, high = 0;
    for (const std::size_t row : moved)
        for (const double demanded : data.rows[row].overEpsilon) {
            const double decades = decadesOf(data.rows[row].marginAgainst(demanded));
            low = std::min(low, decades);
            high = std::max(high, decades);
        }
    return {std::pow(10, std::min(-1.0, std::floor(low))), std::pow(10, std::max(1.0, std::ceil(high))),
            AxisScale::Logarithmic, "margin on this capture"};
}

void drawLine(SceneBuilder& builder, const TheoryRow& row, const Stroke& stroke, const PlotFrame& frame) {
    std::vector<Point> line;
    for (std::size_t i = 0; i < row.overEpsilon.size(); ++i)
        line.push_back(
            frame.toPixels(theoryEpsilons()[i], std::pow(10, decadesOf(row.marginAgainst(row.overEpsilon[i])))));
    builder.polyline(std::move(line), stroke);
}

std::vector<LegendEntry> legendOf(const TheoryData& data, const std::vector<std::size_t>& moved, const Theme& theme) {
    std::vector<LegendEntry> legend;
    for (std::size_t i = 0; i < moved.size(); ++i)
        legend.push_back(lineEntry(data.rows[moved[i]].quantity, lineOf(i, theme)));
    legend.push_back(lineEntry(fmt::format("ε = {}", formatShort(data.asked.epsilon)), {theme.ink, 1, {3, 3}}));
    return legend;
}

} // namespace

void drawTheoryOverEpsilon(SceneBuilder& builder, const TheoryData& data, const std::vector<std::size_t>& rows,
                           const Box& area, const Viewport& viewport) {
    const std::vector<std::size_t> moved = movedByEpsilon(data, rows);
    if (moved.empty() || area.height < kLeastHeight) return;
    const Theme& theme = themeOf(viewport.theme);
    const std::vector<LegendEntry> legend = legendOf(data, moved, theme);
    const int legendLines = legendRows(legend, area.width - 16, 3, *viewport.text);
    const double top = kLegendRow + kLegendPitch * (legendLines - 1);
    const SubPlot plot(viewport, {area.x, area.y + top, area.width, area.height - top},
                       {theoryEpsilons().front(), 1, AxisScale::Logarithmic, "ε that the theorems are asked for"},
                       marginAxis(data, moved));
    const Box& box = plot.frame.plot;
    drawGrid(builder, plot.frame, theme);
    const double one = plot.frame.toPixels(1, 1).y,
                 now = plot.frame.toPixels(std::clamp(data.asked.epsilon, 0.01, 1.0), 1).x;
    builder.rectangle({box.x, box.y, box.width, one - box.y}, withAlpha(theme.ok, 0.07));
    builder.line({box.x, one}, {box.right(), one}, {theme.ink, 1, {}});
    builder.line({now, box.y}, {now, box.bottom()}, {theme.ink, 1, {3, 3}});
    for (std::size_t i = 0; i < moved.size(); ++i) drawLine(builder, data.rows[moved[i]], lineOf(i, theme), plot.frame);
    drawAxes(builder, plot.frame, plot.style, theme);
    drawLegend(builder, {area.x + 8, area.y + kLegendRow / 2}, area.width - 16, legend, theme, legendLines);
}

} // namespace kvscope
