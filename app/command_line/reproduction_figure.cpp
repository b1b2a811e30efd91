// The figure of a reproduction: means as marked lines, intervals or deviations as bars, with the colours and markers
// that policies have in views.
#include "app/command_line/reproduction_figure.h"
#include "core/studies/reproduction_series.h"

#include "views/common/policy_style.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

constexpr double kTop = 34, kLine = 13, kLeastPlot = 320;

/// Whether x counts categories: values of a parameter, or bins.
bool hasCategories(const Reproduction& reproduction) {
    return reproduction.axis == ReproductionAxis::Parameter || reproduction.method == ReproductionMethod::Lengths;
}

const std::string& titleOf(const ReproducedSeries& series) {
    return series.title.empty() ? series.label : series.title;
}

/// Half the length of a point's bar; 0 where the point has no spread.
double halfBar(const Reproduction& reproduction, const ReproducedPoint& point) {
    if (point.over.empty()) return 0;
    return reproduction.showDeviation ? point.summary.deviation : point.summary.halfInterval();
}

/// The range of some numbers with a little room; one number gets room of its own.
AxisSpec axisOver(std::vector<double> numbers, const std::string& title, bool logarithmic) {
    AxisSpec axis;
    axis.title = title;
    if (logarithmic) std::erase_if(numbers, [](double x) { return x <= 0; });
    if (numbers.empty()) return axis;
    const auto [low, high] = std::ranges::minmax_element(numbers);
    if (logarithmic) {
        axis.scale = AxisScale::Logarithmic;
        axis.low = *low / 1.2;
        axis.high = *high * 1.2;
        return axis;
    }
    const double room = *high > *low ? 0.06 * (*high - *low) : std::max(0.5, 0.1 * std::abs(*high));
    axis.low = *low - room;
    axis.high = *high + room;
    return axis;
}

/// Two captures can give an interval ten times the means; the axis is limited so that the means keep their room, and
/// does not go below 0 unless a mean does.
std::pair<double, double> intervalRoom(const ReproductionResult& result) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const ReproducedSeries& series : result.series)
        for (const ReproducedPoint& point : series.points)
            if (std::isfinite(point.summary.mean)) {
                low = std::min(low, point.summary.mean);
                high = std::max(high, point.summary.mean);
            }
    const double room = std::max(high - low, 0.5 * std::abs(high));
    return {low >= 0 ? std::max(0.0, low - room) : low - room, high + room};
}

PlotFrame frameOf(const Reproduction& reproduction, const ReproductionResult& result, const Viewport& viewport,
                  double top, double bottom) {
    const bool bars = reproduction.method == ReproductionMethod::Lengths;
    std::vector<double> x, y;
    if (bars) y.push_back(0);
    const auto [lowest, highest] = intervalRoom(result);
    for (const ReproducedSeries& series : result.series)
        for (const ReproducedPoint& point : series.points) {
            if (!std::isfinite(point.summary.mean)) continue;
            x.push_back(point.x);
            y.push_back(std::max(lowest, point.summary.mean - halfBar(reproduction, point)));
            y.push_back(std::min(highest, point.summary.mean + halfBar(reproduction, point)));
        }
    const bool logarithmic = reproduction.method == ReproductionMethod::PowerLaw;
    PlotFrame frame{{}, axisOver(x, result.xTitle, logarithmic), axisOver(y, result.yTitle, logarithmic)};
    if (bars) frame.y.low = 0;                                                             // bars start at 0
    if (reproduction.axis == ReproductionAxis::Layer) frame.x.scale = AxisScale::Position; // whole numbers alone
    if (hasCategories(reproduction) && !x.empty()) {
        frame.x.low = *std::ranges::min_element(x) - 0.5;
        frame.x.high = *std::ranges::max_element(x) + 0.5;
    }
    frame.plot = plotBoxFor({8, top, viewport.width - 22, viewport.height - top - bottom}, frame.y, {}, *viewport.text);
    return frame;
}

/// Style of a series: the policy's colour, and the policy's marker and line, or varied ones where the policy has
/// several series.
struct SeriesStyle {
    Marker marker;
    Colour colour, fill;
    std::vector<double> dash;
};

std::vector<SeriesStyle> stylesOf(const ReproductionResult& result, const Theme& theme, ThemeId themeId) {
    const std::vector<Marker> markers = {Marker::Circle, Marker::Square, Marker::Diamond, Marker::TriangleUp,
                                         Marker::Hexagon};
    const std::vector<std::vector<double>> dashes = {{}, {5, 3}, {1.5, 2.5}, {9, 3}, {9, 3, 1.5, 3}};
    std::vector<SeriesStyle> styles;
    for (std::size_t i = 0; i < result.series.size(); ++i) {
        const std::string& policy = result.series[i].policyId;
        const auto same = [&policy](const ReproducedSeries& series) { return series.policyId == policy; };
        const auto begin = result.series.begin();
        const auto before =
            static_cast<std::size_t>(std::count_if(begin, begin + static_cast<std::ptrdiff_t>(i), same));
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

/// Draws category names in place of ticks. Series with different bins get one line of names each.
void drawCategories(SceneBuilder& builder, const PlotFrame& frame, const Reproduction& reproduction,
                    const ReproductionResult& result, const Theme& theme) {
    const TextStyle style{FontFace::Interface, 11};
    const ParameterSpec* varied = variedSpec(reproduction);
    std::vector<std::vector<std::string>> drawn;
    for (const ReproducedSeries& series : result.series) {
        std::vector<std::string> texts;
        for (const ReproducedPoint& point : series.points) texts.push_back(point.xText);
        if (std::ranges::find(drawn, texts) != drawn.end()) continue;
        for (const ReproducedPoint& point : series.points)
            builder.text({frame.toPixels(point.x, frame.y.low).x,
                          frame.plot.bottom() + 6 + 12 * static_cast<double>(drawn.size())},
                         varied ? choiceLabel(*varied, point.xText) : point.xText, style, theme.text3,
                         HorizontalAlign::Centre, VerticalAlign::Top);
        drawn.push_back(std::move(texts));
    }
}

/// Bars of several series stand side by side within a bin.
void drawBars(SceneBuilder& builder, const PlotFrame& frame, const ReproductionResult& result,
              const std::vector<SeriesStyle>& styles) {
    const double width = 0.8 / static_cast<double>(result.series.size());
    for (std::size_t i = 0; i < result.series.size(); ++i)
        for (const ReproducedPoint& point : result.series[i].points) {
            if (!(point.summary.mean > 0)) continue;
            const double left = point.x - 0.4 + width * static_cast<double>(i);
            const Point top = frame.toPixels(left, point.summary.mean), end = frame.toPixels(left + width, 0);
            builder.rectangle({top.x, top.y, end.x - top.x - 1, end.y - top.y}, styles[i].fill,
                              {styles[i].colour, 1.2, {}});
        }
}

void drawLaw(SceneBuilder& builder, const PlotFrame& frame, const ReproducedSeries& series, const SeriesStyle& style) {
    const PowerLaw& law = *series.law;
    if (!std::isfinite(law.exponent) || series.points.empty()) return;
    std::vector<Point> ends;
    for (const double x : {series.points.front().x, series.points.back().x})
        ends.push_back(frame.toPixels(x, law.factor * std::pow(x, law.exponent)));
    builder.polyline(ends, {style.colour, 1.2, style.dash});
}

Stroke strokeOfPower(std::size_t i, const Theme& theme) {
    return {theme.text3, 1, i % 2 == 0 ? std::vector<double>{2, 4} : std::vector<double>{9, 4, 2, 4}};
}

/// Draws the reference powers as lines through the centre of the plot.
void drawPowers(SceneBuilder& builder, const PlotFrame& frame, const std::vector<double>& powers, const Theme& theme) {
    const double midX = std::sqrt(frame.x.low * frame.x.high), midY = std::sqrt(frame.y.low * frame.y.high);
    for (std::size_t i = 0; i < powers.size(); ++i) {
        const double power = powers[i];
        const double room = std::log(frame.y.high / midY) / std::abs(power), wide = std::log(frame.x.high / midX);
        const double reach = 0.94 * std::min(room, wide);
        const auto at = [&](double way) { return frame.toPixels(midX * std::exp(way), midY * std::exp(power * way)); };
        builder.polyline({at(-reach), at(reach)}, strokeOfPower(i, theme));
    }
}

void drawSeries(SceneBuilder& builder, const PlotFrame& frame, const Reproduction& reproduction,
                const ReproducedSeries& series, const SeriesStyle& style) {
    std::vector<Point> line;
    for (const ReproducedPoint& point : series.points) {
        if (!std::isfinite(point.summary.mean)) continue;
        if (frame.y.scale == AxisScale::Logarithmic && point.summary.mean <= 0) continue;
        line.push_back(frame.toPixels(point.x, point.summary.mean));
        const auto end = [&](double y) { return frame.toPixels(point.x, std::clamp(y, frame.y.low, frame.y.high)); };
        const double half = halfBar(reproduction, point);
        if (half > 0)
            builder.line(end(point.summary.mean - half), end(point.summary.mean + half), {style.colour, 1.2, {}});
    }
    if (series.law)
        drawLaw(builder, frame, series, style);
    else if (line.size() > 1)
        builder.polyline(line, {style.colour, 1.5, style.dash});
    builder.marks(titleOf(series), std::move(line), style.marker, 3.2, style.fill, {style.colour, 1.2, {}});
}

std::string legendText(const ReproducedSeries& series) {
    if (!series.law) return titleOf(series);
    return fmt::format("{}: power {} ± {}", titleOf(series), formatFixed(series.law->exponent, 2),
                       formatFixed(series.law->halfInterval, 2));
}

std::vector<LegendEntry> legendOf(const Reproduction& reproduction, const ReproductionResult& result,
                                  const std::vector<SeriesStyle>& styles, const Theme& theme) {
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < styles.size(); ++i)
        entries.push_back(
            {legendText(result.series[i]), styles[i].marker, styles[i].fill, {styles[i].colour, 1.2, {}}, 3});
    for (std::size_t i = 0; i < reproduction.powers.size(); ++i)
        entries.push_back(lineEntry("theory: power " + formatShort(reproduction.powers[i]), strokeOfPower(i, theme)));
    return entries;
}

} // namespace

Scene drawReproduction(const Reproduction& reproduction, const ReproductionResult& result, const Viewport& wanted) {
    const Theme& theme = themeOf(wanted.theme);
    Viewport viewport = wanted;
    Scene scene = blankScene(viewport);
    SceneBuilder builder(scene, *viewport.text);
    const TextStyle note{FontFace::Interface, 10}, title{FontFace::Interface, 13, FontWeight::SemiBold};
    std::vector<std::string> lines;
    for (const std::string& text : result.notes)
        for (std::string& part : builder.wrap(text, note, viewport.width - 24)) lines.push_back(std::move(part));
    const double bottom = 10 + kLine * static_cast<double>(lines.size()), legendLeft = 60;
    const std::vector<SeriesStyle> styles = stylesOf(result, theme, viewport.theme);
    builder.text({12, 20}, builder.elide(reproduction.item, title, viewport.width - 24), title, theme.text1);
    const std::vector<LegendEntry> legend = legendOf(reproduction, result, styles, theme);
    const double legendRoom = viewport.width - legendLeft - 10;
    int rows = 1;
    while (rows < std::ssize(legend) && !isLegendWhole(legend, legendRoom, rows, *viewport.text)) ++rows;
    drawLegend(builder, {legendLeft, kTop}, legendRoom, legend, theme, rows);
    const bool categories = hasCategories(reproduction);
    const double top = kTop + kLegendPitch * rows - 4;
    scene.height = viewport.height =
        std::max(viewport.height, top + kLeastPlot + bottom); // many notes do not flatten the plot
    const PlotFrame frame = frameOf(reproduction, result, viewport, top, bottom);
    PlotFrame axes = frame;
    if (categories) { // labelled by category: a range without ticks
        axes.x.scale = AxisScale::Position;
        axes.x.low = 0.25;
        axes.x.high = 0.75;
        if (reproduction.method == ReproductionMethod::Lengths)
            axes.x.title.clear(); // the bins of both series are written there
    }
    drawGrid(builder, axes, theme);
    if (frame.y.scale == AxisScale::Logarithmic) drawPowers(builder, frame, reproduction.powers, theme);
    if (reproduction.method == ReproductionMethod::Lengths)
        drawBars(builder, frame, result, styles);
    else
        for (std::size_t i = 0; i < styles.size(); ++i)
            drawSeries(builder, frame, reproduction, result.series[i], styles[i]);
    drawAxes(builder, axes, {}, theme);
    if (categories) drawCategories(builder, frame, reproduction, result, theme);
    double y = viewport.height - bottom + kLine;
    for (const std::string& text : lines) {
        builder.text({12, y}, text, note, theme.text3);
        y += kLine;
    }
    return scene;
}

} // namespace kvscope
