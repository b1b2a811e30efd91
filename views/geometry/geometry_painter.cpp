// The two kinds of figures of the geometry view.
#include "views/geometry/geometry_painter.h"

#include "core/metrics/theory.h"
#include "views/common/chart.h"
#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kRounding = 1e-5; // cosines come from float vectors

struct Look {
    Colour colour;
    std::vector<double> dash;
};

/// Keys in ink, queries in their own colour, values dashed: none of them is a policy.
Look lookOf(const ViewInput& input, const GeometryData& data, std::size_t index, ThemeId themeId) {
    const Theme& theme = themeOf(themeId);
    const GeometrySeries& series = data.series[index];
    switch (series.role) {
    case GeometrySeries::Role::Keys: return {theme.ink, {}};
    case GeometrySeries::Role::Queries: return {theme.query, {}};
    case GeometrySeries::Role::Values: return {theme.text2, {5, 2.5}};
    case GeometrySeries::Role::Policy: break;
    }
    const PaneIdentity identity = identityOf(input, series.letter, series.policyId, themeId);
    return {identity.colour(), identity.dash()};
}

double shareOf(const Histogram& histogram, std::size_t bin) {
    return static_cast<double>(histogram.counts()[bin]) /
           static_cast<double>(std::max<std::int64_t>(1, histogram.summary().count));
}

struct Extent {
    double low = INFINITY, high = -INFINITY, top = 1e-9;
};

/// The range and the largest share of the bins that are not empty, over all series.
Extent extentOf(const GeometryData& data) {
    Extent extent;
    for (const GeometrySeries& series : data.series)
        for (std::size_t bin = 0; bin < series.histogram.counts().size(); ++bin) {
            if (series.histogram.counts()[bin] == 0) continue;
            const double left = series.histogram.low() + series.histogram.binWidth() * static_cast<double>(bin);
            extent.low = std::min(extent.low, left);
            extent.high = std::max(extent.high, left + series.histogram.binWidth());
            extent.top = std::max(extent.top, 100 * shareOf(series.histogram, bin));
        }
    return extent.low < extent.high ? extent : Extent{0, 1, 1};
}

/// Rounds the axis outwards where fewer than four ticks would lie inside although there is room for `most`.
AxisSpec withEnoughTicks(AxisSpec axis, int most) {
    constexpr std::size_t kFewest = 4;
    const std::vector<Tick> ticks = linearTicks(axis.low, axis.high, most);
    if (most < static_cast<int>(kFewest) || ticks.size() < 2 || ticks.size() >= kFewest) return axis;
    const double step = ticks[1].value - ticks[0].value;
    axis.low = step * std::floor(axis.low / step + 1e-9);
    axis.high = step * std::ceil(axis.high / step - 1e-9);
    return axis;
}

int mostTicks(double length, double pitch) { return std::clamp(static_cast<int>(length / pitch), 2, 7); }

/// On the screen, heights are rounded to pixels and neighbours of equal height become one step: the joints of a riser
/// that is lower than the line is wide would be drawn as a blob.
void drawSteps(SceneBuilder& builder, const PlotFrame& frame, const Histogram& histogram, const Look& look,
               const Viewport& viewport) {
    const double pixel = viewport.forExport ? 0 : 1 / std::max(1.0, viewport.pixelScale);
    std::vector<Point> outline = {frame.toPixels(histogram.low(), 0)};
    for (std::size_t bin = 0; bin < histogram.counts().size(); ++bin) {
        const auto edge = [&](std::size_t of) {
            return histogram.low() + histogram.binWidth() * static_cast<double>(of);
        };
        const double share = 100 * shareOf(histogram, bin);
        Point from = frame.toPixels(edge(bin), share);
        if (pixel > 0) from.y = std::round(from.y / pixel) * pixel;
        if (bin > 0 && outline.back().y == from.y)
            outline.pop_back();
        else
            outline.push_back(from);
        outline.push_back({frame.toPixels(edge(bin + 1), share).x, from.y});
    }
    outline.push_back(frame.toPixels(histogram.high(), 0));
    builder.polyline(std::move(outline), {look.colour, 1.5, look.dash});
}

/// A triangle that stands on the axis.
void drawMean(SceneBuilder& builder, const PlotFrame& frame, const Histogram& histogram, const Look& look,
              Colour casing) {
    const double x = frame.toPixels(histogram.summary().mean, 0).x, foot = frame.plot.bottom();
    builder.polygon({{x - 4, foot}, {x, foot - 8}, {x + 4, foot}}, look.colour, {casing, 1, {}});
}

/// Few numbers are shown one by one too, in a row of dots above the axis.
void drawNumbers(SceneBuilder& builder, const PlotFrame& frame, const GeometrySeries& series, const Look& look,
                 std::size_t row) {
    constexpr std::size_t kFew = 30;
    constexpr double kFirst = 13, kPitch = 7; // above the marks of the means
    if (series.numbers.empty() || series.numbers.size() >= kFew) return;
    const double y = frame.plot.bottom() - kFirst - kPitch * static_cast<double>(row);
    std::vector<Point> points;
    for (const double number : series.numbers)
        if (std::isfinite(number)) points.push_back({frame.toPixels(number, 0).x, y});
    builder.marks("heads of " + series.name, std::move(points), Marker::Circle, 2.4, withAlpha(look.colour, 0.75));
}

/// Adds the source of the vectors where there is room.
std::string axisTitle(const GeometryData& data, const Viewport& viewport) {
    const std::string full = data.axis + ", " + data.where;
    return viewport.text->measure(full, {FontFace::Interface, 11}).width < viewport.width - 80 ? full : data.axis;
}

/// The bound over the whole width of the plot. Theorem C.1 depends on M and n: the weakest of the points' bounds is
/// drawn.
void drawBound(SceneBuilder& builder, const PlotFrame& frame, const GeometryData& data, bool lemma,
               const Theme& theme) {
    double most = 1e-12;
    for (const TheoremPoint& point : data.points) most = std::max(most, point.squaredNorm);
    std::vector<Point> curve;
    for (int i = 0; i <= 200; ++i) {
        const double x = frame.x.low + (frame.x.high - frame.x.low) * i / 200;
        const double y = !lemma            ? largestCosineToMean(x, 0)
                         : x < 0 || x >= 1 ? NAN
                                           : leastCosineOfWeight(x, std::max<std::int64_t>(1, data.tokens), most);
        if (std::isfinite(y)) curve.push_back(frame.toPixels(x, y));
    }
    builder.polyline(std::move(curve), {theme.ink, 1.5, {}});
}

std::vector<LegendEntry> histogramLegend(const GeometryData& data, const ViewInput& input, ThemeId theme) {
    std::vector<LegendEntry> legend;
    const std::vector<std::string> means = meanTexts(data);
    for (std::size_t i = 0; i < data.series.size(); ++i) {
        const GeometrySeries& series = data.series[i];
        const Look look = lookOf(input, data, i, theme);
        const std::string letter =
            series.role == GeometrySeries::Role::Policy ? std::string(1, series.letter) + " " : "";
        legend.push_back(
            lineEntry(fmt::format("{}{} {}", letter, series.name, means[i]), {look.colour, 1.5, look.dash}));
    }
    return legend;
}

const std::vector<double> kZeroDash = {4, 3};

/// Adds the marks of means and the line at 0 to the legend; false, and nothing added, if they do not fit.
bool explainMarks(std::vector<LegendEntry>& legend, const GeometryData& data, const Viewport& viewport) {
    constexpr double kFurtherRows = 220; ///< from this height on there is room for rows
    const Theme& theme = themeOf(viewport.theme);
    std::vector<LegendEntry> longer = legend;
    longer.push_back({"mean; ± is half the 95 % interval", Marker::TriangleUp, theme.text2, {}, 4});
    if (data.isSigned) longer.push_back(lineEntry("0: at right angles", {theme.axis, 1, kZeroDash}));
    if (viewport.height < kFurtherRows && legendRows(longer, viewport.width - 20, 2, *viewport.text) > 1) return false;
    legend = std::move(longer);
    return true;
}

/// The axes of the histograms: where the user has not zoomed, with ticks enough to read a value.
Chart histogramChart(const GeometryData& data, const Viewport& viewport, const std::vector<LegendEntry>& legend) {
    const Extent extent = extentOf(data);
    const double margin = 0.02 * (extent.high - extent.low);
    const Viewport::Range range =
        viewport.range.value_or(Viewport::Range{extent.low - margin, extent.high + margin, 0, 1.06 * extent.top});
    const AxisSpec x{range.xMin, range.xMax, AxisScale::Linear, axisTitle(data, viewport)},
        y{range.yMin, range.yMax, AxisScale::Linear, "Share of " + data.of + ", %"};
    Chart chart(viewport, legend, x, y);
    if (viewport.range) return chart;
    const Box& plot = chart.frame.plot; // the room that the axes count their ticks by
    return {viewport, legend, withEnoughTicks(x, mostTicks(plot.width, 52)),
            withEnoughTicks(y, mostTicks(plot.height, 34))};
}

std::vector<LegendEntry> scatterLegend(const GeometryData& data, const Theme& theme) {
    const bool lemma = data.figure == "lemma";
    const std::string taken = data.takenWords();
    const auto broken =
        std::ranges::count_if(data.points, [&](const TheoremPoint& p) { return !holdsBound(p, lemma); });
    std::vector<LegendEntry> legend = {
        markEntry("query with its top key k*, " + formatCount(std::ssize(data.points)) +
                      (taken.empty() ? "" : " of " + taken),
                  Marker::Circle, theme.query),
        barEntry(lemma ? "Theorem C.1, weakest of the queries" : "1 − (a − b)²/2, Theorem 3.2", theme.ink)};
    if (broken > 0)
        legend.push_back({formatCount(broken) + " beyond their bound", Marker::Diamond, theme.error, {}, 4});
    return legend;
}

} // namespace

std::string GeometryData::takenWords() const {
    const std::int64_t taken = std::ssize(points) + leftOut;
    return evaluated > taken ? fmt::format("the last {} of {}", formatCount(taken), formatCount(evaluated)) : "";
}

bool holdsBound(const TheoremPoint& point, bool lemma) {
    return lemma ? point.cosKey >= point.leastCosKey - kRounding : point.cosMeanKey <= point.mostCosMeanKey + kRounding;
}

std::vector<std::string> meanTexts(const GeometryData& data) {
    constexpr double kLarge = 1e6;
    double largest = 0, narrowest = INFINITY;
    for (const GeometrySeries& series : data.series) {
        const Summary summary = series.histogram.summary();
        largest = std::max(largest, std::fabs(summary.mean));
        if (summary.count >= 2 && summary.halfInterval() > 0) narrowest = std::min(narrowest, summary.halfInterval());
    }
    const auto decimalsOf = [](double value) { return static_cast<int>(-std::floor(std::log10(value))); };
    const int ofMeans = largest > 0 ? std::min(3, decimalsOf(largest) + 2) : 3;
    const int ofIntervals = std::isfinite(narrowest) ? std::min(6, decimalsOf(narrowest)) : 0;
    const int decimals = std::max({0, ofMeans, ofIntervals});
    const auto number = [&](double value) {
        return largest >= kLarge ? formatShort(value)
               : decimals == 0   ? formatCount(std::llround(value))
                                 : formatFixed(value, decimals);
    };
    std::vector<std::string> texts;
    for (const GeometrySeries& series : data.series) {
        const Summary summary = series.histogram.summary();
        texts.push_back(number(summary.mean) + (summary.count < 2 ? "" : " ± " + number(summary.halfInterval())));
    }
    return texts;
}

Scene geometryHistogram(const GeometryData& data, const ViewInput& input, const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    std::vector<LegendEntry> legend = histogramLegend(data, input, viewport.theme);
    const bool explained = explainMarks(legend, data, viewport);
    Chart chart = histogramChart(data, viewport, legend);
    SceneBuilder builder = chart.builder(viewport);
    drawGrid(builder, chart.frame, theme);
    builder.pushClip(chart.frame.plot);
    if (data.isSigned && explained) drawUpright(builder, chart.frame, 0, {theme.axis, 1, kZeroDash});
    for (std::size_t i = 0; i < data.series.size(); ++i) {
        const Look look = lookOf(input, data, i, viewport.theme);
        drawSteps(builder, chart.frame, data.series[i].histogram, look, viewport);
        if (explained) drawMean(builder, chart.frame, data.series[i].histogram, look, theme.casing);
    }
    for (std::size_t i = 0; i < data.series.size(); ++i)
        drawNumbers(builder, chart.frame, data.series[i], lookOf(input, data, i, viewport.theme), i);
    builder.rectangle(chart.frame.plot, kTransparent, {}, 0, {PickId::Kind::Cell, 0}); // the whole plot is pickable
    builder.popClip();
    return finishChart(chart, input, viewport, true, data.wholeModel);
}

Scene geometryScatter(const GeometryData& data, const ViewInput& input, const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    const bool lemma = data.figure == "lemma";
    Extent x;
    for (const TheoremPoint& point : data.points) {
        const double at = lemma ? point.weight : point.cosMean - point.cosKey;
        x.low = std::min(x.low, at), x.high = std::max(x.high, at);
    }
    const Viewport::Range fit =
        lemma ? Viewport::Range{0, 1, -1.05, 1.05}
              : Viewport::Range{std::min(-0.1, x.low - 0.05), std::max(0.1, x.high + 0.05), -1.05, 1.05};
    const Viewport::Range range = viewport.range.value_or(fit);
    Chart chart(viewport, scatterLegend(data, theme),
                {range.xMin, range.xMax, AxisScale::Linear, axisTitle(data, viewport)},
                {range.yMin, range.yMax, AxisScale::Linear, lemma ? "cos(k*, q)" : "cos(mean key, k*)"});
    SceneBuilder builder = chart.builder(viewport);
    drawGrid(builder, chart.frame, theme);
    builder.pushClip(chart.frame.plot);
    drawBound(builder, chart.frame, data, lemma, theme);
    GatheredMarks good, bad;
    for (std::size_t i = 0; i < data.points.size(); ++i) {
        const TheoremPoint& p = data.points[i];
        const Point at =
            lemma ? chart.frame.toPixels(p.weight, p.cosKey) : chart.frame.toPixels(p.cosMean - p.cosKey, p.cosMeanKey);
        (holdsBound(p, lemma) ? good : bad).add(at, static_cast<std::int64_t>(i));
    }
    builder.points(good.as("holds", PickId::Kind::Cell, Marker::Circle, 2.6, theme.query, {}));
    builder.points(bad.as("broken", PickId::Kind::Cell, Marker::Diamond, 4, theme.error, {}));
    builder.popClip();
    return finishChart(chart, input, viewport, true, data.wholeModel);
}

} // namespace kvscope
