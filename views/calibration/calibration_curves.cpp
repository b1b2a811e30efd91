// The parts of the calibration picture: a series of measured points, the curve through them with what resampling says
// about it, and the retention at which it meets the wanted quality.
#include "views/calibration/calibration_curves.h"

#include "views/pane_identity.h"
#include "core/run/calibration.h"
#include "views/view_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope {

namespace {

constexpr int kSteps = 120; // of a curve from 0 to 1

double smallestMeasured(const CalibrationSeries& series) {
    double smallest = 1;
    for (const CalibrationTriple& triple : series.triples)
        if (triple.retention > 0)
            smallest = std::min(smallest, triple.retention);
    return series.triples.empty() ? 0 : smallest;
}

std::vector<Point> curvePoints(const PlotFrame& frame, double k, double from, double to) {
    std::vector<Point> points;
    for (int i = 0; i <= kSteps; ++i) {
        const double r = from + (to - from) * i / kSteps;
        points.push_back(frame.toPixels(r, calibrationCurve(k, r)));
    }
    return points;
}

} // namespace

double curvatureOf(const CalibrationSeries& series, const ParameterValues& options) {
    return series.given ? options.real("k") : series.k;
}

NeededRetention neededBy(const CalibrationSeries& series, const ParameterValues& options) {
    const double tau = options.real("tau");
    std::vector<double> resampled;
    for (const double k : series.resampledK)
        resampled.push_back(retentionNeeded(k, tau));
    return {retentionNeeded(curvatureOf(series, options), tau), bandOf(std::move(resampled))};
}

Budget budgetOf(const CalibrationSeries& series, const CalibrationViewData& data, const ParameterValues& options) {
    const double tau = options.real("tau");
    if (series.given)
        return {Budget::Unit::Quality, tau, fmt::format("k={}", options.real("k"))};
    // The budget fits with the standard weight; a curve of another one is taken as the retention that it gives.
    if (data.weight != kCalibrationWeight)
        return {Budget::Unit::Fraction, std::max(neededBy(series, options).retention, 1e-6), {}};
    return {Budget::Unit::Quality, tau, series.curve};
}

std::string kindOf(const CalibrationSeries& series) {
    return series.given ? "given" : series.proxy ? "proxy" : "measured";
}

SeriesLook lookOf(const CalibrationViewData& data, std::size_t index, ThemeId theme) {
    const CalibrationSeries& series = data.series[index];
    int samePolicy = 0;
    std::size_t sameContexts = 0;
    for (std::size_t i = 0; i < index; ++i) {
        samePolicy += data.series[i].own && data.series[i].policyId == series.policyId ? 1 : 0;
        sameContexts += !data.series[i].own && data.series[i].pane == series.pane ? 1 : 0;
    }
    if (series.own) {
        const PaneIdentity identity(series.policyId, samePolicy, theme);
        return {identity.colour(), identity.marker(), identity.dash()};
    }
    static const std::array<Marker, 5> markers = {Marker::Circle, Marker::Square, Marker::TriangleUp, Marker::Hexagon, Marker::Diamond};
    static const std::array<std::vector<double>, 5> dashes = {{{}, {5, 3}, {8, 3, 2, 3}, {2, 2}, {10, 4}}};
    return {themeOf(theme).text3, markers[sameContexts % markers.size()], dashes[sameContexts % dashes.size()]};
}

void drawBand(SceneBuilder& builder, const PlotFrame& frame, const CalibrationSeries& series, Colour colour) {
    if (series.resampledK.size() < 2)
        return;
    std::vector<Point> upper, lower;
    for (int i = 0; i <= kSteps; ++i) {
        const double r = static_cast<double>(i) / kSteps;
        std::vector<double> values;
        for (const double k : series.resampledK)
            values.push_back(calibrationCurve(k, r));
        const CalibrationBand band = bandOf(std::move(values));
        upper.push_back(frame.toPixels(r, band.high));
        lower.push_back(frame.toPixels(r, band.low));
    }
    upper.insert(upper.end(), lower.rbegin(), lower.rend());
    builder.polygon(std::move(upper), withAlpha(colour, 0.18));
}

void drawFittedCurve(SceneBuilder& builder, const PlotFrame& frame, const CalibrationSeries& series, double k,
                     const SeriesLook& look) {
    const double from = smallestMeasured(series), width = series.own ? 2 : 1.2;
    if (from > 0)
        builder.polyline(curvePoints(frame, k, 0, from), {look.colour, 1, {3, 3}});
    builder.polyline(curvePoints(frame, k, from, 1), {look.colour, width, look.dash});
}

void drawTriples(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, std::size_t index,
                 const SeriesLook& look) {
    const CalibrationSeries& series = data.series[index];
    auto points = std::make_shared<std::vector<Point>>();
    auto ids = std::make_shared<std::vector<std::int64_t>>();
    for (std::size_t i = 0; i < series.triples.size(); ++i) {
        points->push_back(frame.toPixels(series.triples[i].retention, series.triples[i].quality));
        ids->push_back(static_cast<std::int64_t>(index) * kPointsPerSeries + static_cast<std::int64_t>(i));
    }
    if (points->empty())
        return;
    PointCloudItem cloud;
    cloud.points = std::move(points);
    cloud.ids = std::move(ids);
    cloud.pickKind = PickId::Kind::Cell;
    cloud.marker = look.marker;
    cloud.radius = series.own ? 3.4 : 2.6;
    cloud.fill = series.proxy ? kTransparent : look.colour;
    cloud.stroke = {look.colour, 1.2, {}};
    cloud.name = fmt::format("{} {} {}", kindOf(series), series.letter, series.context);
    builder.points(std::move(cloud));
}

namespace {

void drawNeededLine(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, std::size_t index,
                    const ParameterValues& options, const Theme& theme) {
    const Point ring = frame.toPixels(neededBy(data.series[index], options).retention, options.real("tau"));
    const Colour colour = lookOf(data, index, theme.id).colour;
    builder.line(ring, {ring.x, frame.plot.bottom()}, {colour, 1.2, {}});
    builder.circle(ring, 5, theme.canvas, {colour, 2, {}}, {PickId::Kind::Handle, static_cast<std::int64_t>(index)});
}

void drawNeededBox(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, std::size_t index,
                   const ParameterValues& options, const Theme& theme, std::size_t row) {
    const CalibrationSeries& series = data.series[index];
    const double needed = neededBy(series, options).retention;
    const Point ring = frame.toPixels(needed, options.real("tau"));
    const Colour colour = lookOf(data, index, theme.id).colour;
    const TextStyle style{FontFace::Monospace, 11, FontWeight::Bold};
    const std::string text = fmt::format("{} r* = {}{}", series.letter, formatFixed(needed, 3), series.proxy ? " proxy" : "");
    const double width = builder.width(text, style) + 12, height = 19;
    const double left = std::clamp(ring.x - width - 5, frame.plot.x + 4, std::max(frame.plot.x + 4, frame.plot.right() - width - 4));
    const double top = frame.plot.bottom() - 6 - height - (height + 4) * static_cast<double>(row);
    builder.rectangle({left, top, width, height}, theme.canvas, {colour, 1.2, {}}, 4, {PickId::Kind::Handle, static_cast<std::int64_t>(index)});
    builder.text({left + 6, top + height / 2}, text, style, theme.text1, HorizontalAlign::Left, VerticalAlign::Middle);
}

} // namespace

void drawNeeded(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, const std::vector<std::size_t>& series,
                const ParameterValues& options, const Theme& theme) {
    for (const std::size_t index : series)
        drawNeededLine(builder, frame, data, index, options, theme);
    for (std::size_t row = 0; row < series.size(); ++row) // after all lines, none of which runs through a box
        drawNeededBox(builder, frame, data, series[row], options, theme, row);
}

} // namespace kvscope
