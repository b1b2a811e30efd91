// The figure of a reproduction: means as marked lines, intervals as bars, in the colours and marks that policies have
// in every view.
#include "app/command_line/reproduction_figure.h"

#include "views/scene/axes.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kTop = 50, kLine = 13;

/// The range of some numbers with a little room; one number gets room of its own.
AxisSpec axisOver(const std::vector<double>& numbers, const std::string& title) {
    AxisSpec axis;
    axis.title = title;
    if (numbers.empty())
        return axis;
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    const double room = *high > *low ? 0.06 * (*high - *low) : std::max(0.5, 0.1 * std::abs(*high));
    axis.low = *low - room;
    axis.high = *high + room;
    return axis;
}

PlotFrame frameOf(const ReproductionResult& result, const Viewport& viewport, double bottom) {
    std::vector<double> x, y;
    for (const ReproducedSeries& series : result.series)
        for (const ReproducedPoint& point : series.points) {
            if (!std::isfinite(point.summary.mean))
                continue;
            x.push_back(point.x);
            y.push_back(point.summary.mean - point.summary.halfInterval());
            y.push_back(point.summary.mean + point.summary.halfInterval());
        }
    PlotFrame frame{{}, axisOver(x, result.xTitle), axisOver(y, result.yTitle)};
    frame.plot =
        plotBoxFor({8, kTop, viewport.width - 22, viewport.height - kTop - bottom}, frame.y, {}, *viewport.text);
    return frame;
}

/// How a series looks: a policy's colour; its own mark and line, or, where it has several series, others for each.
struct SeriesStyle {
    Marker marker;
    Colour colour, fill;
    std::vector<double> dash;
};

std::vector<SeriesStyle> stylesOf(const ReproductionResult& result, const Theme& theme, ThemeId themeId) {
    const std::vector<Marker> markers = {Marker::Circle, Marker::Square, Marker::Diamond, Marker::TriangleUp, Marker::Hexagon};
    const std::vector<std::vector<double>> dashes = {{}, {5, 3}, {1.5, 2.5}, {9, 3}, {9, 3, 1.5, 3}};
    std::vector<SeriesStyle> styles;
    for (std::size_t i = 0; i < result.series.size(); ++i) {
        const std::string& policy = result.series[i].policyId;
        const auto same = [&policy](const ReproducedSeries& series) { return series.policyId == policy; };
        const auto begin = result.series.begin();
        const auto before = static_cast<std::size_t>(std::count_if(begin, begin + static_cast<std::ptrdiff_t>(i), same));
        const PolicyStyle own = policyStyle(policy, themeId);
        SeriesStyle style{own.marker, own.colour, own.colour, own.dash};
        if (std::count_if(begin, result.series.end(), same) > 1) {
            style.marker = markers[before % markers.size()];
            style.dash = dashes[before % dashes.size()];
            style.fill = before % 2 == 1 ? theme.canvas : own.colour;
        }
        styles.push_back(std::move(style));
    }
    return styles;
}

void drawSeries(SceneBuilder& builder, const PlotFrame& frame, const ReproducedSeries& series, const SeriesStyle& style) {
    std::vector<Point> line;
    for (const ReproducedPoint& point : series.points) {
        if (!std::isfinite(point.summary.mean))
            continue;
        const double half = point.summary.halfInterval();
        line.push_back(frame.toPixels(point.x, point.summary.mean));
        builder.line(frame.toPixels(point.x, point.summary.mean - half),
                     frame.toPixels(point.x, point.summary.mean + half), {style.colour, 1.2, {}});
    }
    if (line.size() > 1)
        builder.polyline(line, {style.colour, 1.5, style.dash});
    PointCloudItem marks;
    marks.points = std::make_shared<const std::vector<Point>>(std::move(line));
    marks.marker = style.marker;
    marks.radius = 3.2;
    marks.fill = style.fill;
    marks.stroke = {style.colour, 1.2, {}};
    marks.name = series.label;
    builder.points(std::move(marks));
}

} // namespace

Scene drawReproduction(const Reproduction& reproduction, const ReproductionResult& result, const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    Scene scene;
    scene.width = viewport.width;
    scene.height = viewport.height;
    scene.background = theme.canvas;
    SceneBuilder builder(scene, *viewport.text);
    const TextStyle note{FontFace::Interface, 10}, title{FontFace::Interface, 13, FontWeight::SemiBold};
    std::vector<std::string> lines;
    for (const std::string& text : result.notes)
        for (std::string& part : builder.wrap(text, note, viewport.width - 24))
            lines.push_back(std::move(part));
    const double bottom = 10 + kLine * static_cast<double>(lines.size());
    const PlotFrame frame = frameOf(result, viewport, bottom);
    builder.text({12, 20}, builder.elide(reproduction.item, title, viewport.width - 24), title, theme.text1);
    drawGrid(builder, frame, theme);
    std::vector<LegendEntry> legend;
    const std::vector<SeriesStyle> styles = stylesOf(result, theme, viewport.theme);
    for (std::size_t i = 0; i < styles.size(); ++i) {
        drawSeries(builder, frame, result.series[i], styles[i]);
        legend.push_back({result.series[i].label, styles[i].marker, styles[i].fill, {styles[i].colour, 1.2, {}}, 3});
    }
    drawAxes(builder, frame, {}, theme);
    drawLegend(builder, {frame.plot.x, 38}, viewport.width - frame.plot.x - 10, legend, theme);
    double y = viewport.height - bottom + kLine;
    for (const std::string& text : lines) {
        builder.text({12, y}, text, note, theme.text3);
        y += kLine;
    }
    return scene;
}

} // namespace kvscope
