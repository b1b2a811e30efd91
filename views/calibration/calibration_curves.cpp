// Parts of the calibration picture: measured points, and the fitted curve with its bootstrap band.
#include "views/calibration/calibration_picture.h"

#include "core/calibration/calibration.h"
#include "views/common/pane_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace kvscope {

namespace {

constexpr int kSteps = 120; // of a curve from 0 to 1

double smallestMeasured(const CalibrationSeries& series) {
    double smallest = 1;
    for (const CalibrationTriple& triple : series.triples)
        if (triple.retention > 0) smallest = std::min(smallest, triple.retention);
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

const TextStyle kTauStyle{FontFace::Interface, 11, FontWeight::SemiBold};

bool coversAPoint(const Box& box, const PlotFrame& frame, const CalibrationViewData& data) {
    constexpr double kMark = 4;
    const Box around = box.grown(kMark);
    return std::ranges::any_of(data.series, [&](const CalibrationSeries& series) {
        return std::ranges::any_of(series.triples, [&](const CalibrationTriple& triple) {
            return around.contains(frame.toPixels(triple.retention, triple.quality));
        });
    });
}

} // namespace

double curvatureOf(const CalibrationSeries& series, const ParameterValues& options) {
    return series.given ? options.real("k") : series.k;
}

NeededRetention neededBy(const CalibrationSeries& series, const ParameterValues& options) {
    const double tau = options.real("tau");
    std::vector<double> resampled;
    for (const double k : series.resampledK) resampled.push_back(retentionNeeded(k, tau));
    return {retentionNeeded(curvatureOf(series, options), tau), bandOf(std::move(resampled)),
            retentionOfPoints(series.triples, tau)};
}

Budget budgetOf(const CalibrationSeries& series, const CalibrationViewData& data, const ParameterValues& options) {
    const double tau = options.real("tau");
    if (series.given) return {Budget::Unit::Quality, tau, fmt::format("k={}", options.real("k"))};
    // A quality budget fits with the standard weight. A curve with another weight, or one that only the model of a live
    // context knows, is replaced by the retention that it gives.
    if (series.live || data.weight != kCalibrationWeight)
        return {Budget::Unit::Fraction, std::max(neededBy(series, options).retention, 1e-6), {}};
    return {Budget::Unit::Quality, tau, series.curve};
}

std::string kindOf(const CalibrationSeries& series) {
    return series.given ? "given" : series.proxy ? "proxy" : series.live ? "measured live" : "measured";
}

SeriesMisfit misfitOf(const CalibrationViewData& data, const CalibrationSeries& series,
                      const ParameterValues& options) {
    if (series.given || !series.triples.empty())
        return {misfitOf(series.triples, curvatureOf(series, options), data.weight), 0};
    std::vector<CalibrationTriple> triples;
    std::map<std::string, double> curvature;
    for (const CalibrationSeries& other : data.series)
        if (other.pane == series.pane) {
            triples.insert(triples.end(), other.triples.begin(), other.triples.end());
            curvature[other.context] = other.k;
        }
    return {misfitOf(
                triples, [&](const std::string& context) { return curvature.at(context); }, data.weight),
            curvature.size() - 1};
}

bool isPoor(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options) {
    return misfitOf(data, series, options).misfit.isPoor();
}

double leadingRetention(const CalibrationViewData& data, const CalibrationSeries& series,
                        const ParameterValues& options) {
    const NeededRetention needed = neededBy(series, options);
    return isPoor(data, series, options) && !std::isnan(needed.ofPoints) ? needed.ofPoints : needed.retention;
}

std::string neededNumber(const CalibrationViewData& data, const CalibrationSeries& series,
                         const ParameterValues& options) {
    return formatFixed(neededBy(series, options).retention, isPoor(data, series, options) ? 2 : 3);
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
    static const std::array<Marker, 5> markers = {Marker::Circle, Marker::Square, Marker::TriangleUp, Marker::Hexagon,
                                                  Marker::Diamond};
    static const std::array<std::vector<double>, 5> dashes = {{{}, {5, 3}, {8, 3, 2, 3}, {2, 2}, {10, 4}}};
    return {themeOf(theme).text3, markers[sameContexts % markers.size()], dashes[sameContexts % dashes.size()]};
}

void drawBand(SceneBuilder& builder, const PlotFrame& frame, const CalibrationSeries& series, Colour colour) {
    if (series.resampledK.size() < 2) return;
    std::vector<Point> upper, lower;
    for (int i = 0; i <= kSteps; ++i) {
        const double r = static_cast<double>(i) / kSteps;
        std::vector<double> values;
        for (const double k : series.resampledK) values.push_back(calibrationCurve(k, r));
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
    if (from > 0) builder.polyline(curvePoints(frame, k, 0, from), {look.colour, 1, {3, 3}});
    builder.polyline(curvePoints(frame, k, from, 1), {look.colour, width, look.dash});
}

PointCloudItem marksOf(const CalibrationSeries& series, const SeriesLook& look) {
    PointCloudItem marks;
    marks.marker = look.marker;
    marks.radius = series.own ? 3.4 : 2.6;
    marks.fill = series.proxy ? kTransparent : look.colour;
    marks.stroke = {look.colour, 1.2, {}};
    return marks;
}

void drawTriples(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, std::size_t index,
                 const SeriesLook& look) {
    const CalibrationSeries& series = data.series[index];
    if (series.triples.empty()) return;
    GatheredMarks points;
    auto id = static_cast<std::int64_t>(index) * kPointsPerSeries;
    for (const CalibrationTriple& triple : series.triples)
        points.add(frame.toPixels(triple.retention, triple.quality), id++);
    const PointCloudItem mark = marksOf(series, look);
    builder.points(points.as(fmt::format("{} {} {}", kindOf(series), series.letter, series.context), PickId::Kind::Cell,
                             mark.marker, mark.radius, mark.fill, mark.stroke));
}

void nameTau(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, double tau,
             const Theme& theme) {
    const std::string text = "τ = " + formatShort(tau);
    const double y = frame.toPixels(0, tau).y, width = builder.width(text, kTauStyle) + 6;
    const double last = frame.plot.right() - width - 3;
    Box plate{frame.plot.x + 3, y + 2, width, 15};
    for (double x = plate.x; coversAPoint(plate, frame, data) && x < last; x += 8) plate.x = x;
    if (coversAPoint(plate, frame, data)) plate.x = frame.plot.x + 3; // points everywhere
    builder.rectangle(plate, withAlpha(theme.canvas, 0.85));          // curves run under the text
    builder.text({plate.x + 3, plate.y + 1}, text, kTauStyle, theme.text1, HorizontalAlign::Left, VerticalAlign::Top);
}

void drawNeeded(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data,
                const std::vector<std::size_t>& series, const ParameterValues& options, const Theme& theme) {
    for (const std::size_t index : series) {
        const NeededRetention needed = neededBy(data.series[index], options);
        const Point ring = frame.toPixels(needed.retention, options.real("tau"));
        const Colour colour = lookOf(data, index, theme.id).colour;
        // Dashed where the fit is poor, so that r* does not look as sure as the others.
        const bool poor = isPoor(data, data.series[index], options);
        builder.line(ring, {ring.x, frame.plot.bottom()},
                     {colour, 1.2, poor ? std::vector<double>{3, 3} : std::vector<double>{}});
        builder.circle(ring, 5, theme.canvas, {colour, 2, {}}, {PickId::Kind::Node, static_cast<std::int64_t>(index)});
        const auto point =
            std::ranges::find(data.series[index].triples, needed.ofPoints, &CalibrationTriple::retention);
        if (!poor || point == data.series[index].triples.end()) continue;
        const Point kept = frame.toPixels(point->retention, point->quality);
        builder.line({kept.x, kept.y + 6}, {kept.x, frame.plot.bottom()}, {colour, 1.6, {}});
        builder.circle(kept, 6, kTransparent, {theme.ink, 1.6, {}});
    }
}

} // namespace kvscope
