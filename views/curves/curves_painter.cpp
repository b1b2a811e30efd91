// Curves with their bands, each pane in its policy's colour, dash and marker. With several captures the mean is drawn
// over each capture's thin line.
#include "views/curves/curves_painter.h"

#include "views/common/chart.h"
#include "views/common/measure_options.h"
#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

double xOf(const CurvePoint& point, const ParameterValues& options) {
    if (!point.setting.empty()) return point.asked;
    return options.choice("against") == "bytes" ? point.bytes / 1024 : 100 * point.retention;
}

struct Extent {
    double low = INFINITY, high = -INFINITY;
    void include(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
};

/// The axis over all values, with a margin; logarithmic where that is asked for and possible. It ends eight decades
/// below the largest value: what is smaller is rounding, as where everything is kept.
AxisSpec axisOver(Extent extent, bool logarithmic, std::string title) {
    if (logarithmic && extent.low > 0) {
        extent.low = std::max(extent.low, 1e-8 * extent.high);
        const double factor = std::pow(extent.high / extent.low, 0.06) * 1.02;
        return {extent.low / factor, extent.high * factor, AxisScale::Logarithmic, std::move(title)};
    }
    const double size = std::max(std::abs(extent.low), std::abs(extent.high)), span = extent.high - extent.low;
    const double margin =
        span > 1e-6 * size ? 0.05 * span : std::max(0.05 * size, 1e-9); // a level line stands in the middle
    return {extent.low < 0 ? extent.low - margin : std::max(0.0, extent.low - margin), extent.high + margin,
            AxisScale::Linear, std::move(title)};
}

Extent valuesOf(const CurvesData& data) {
    Extent values;
    const auto include = [&](const std::vector<CurvePoint>& points, bool band) {
        for (const CurvePoint& point : points) {
            values.include(band ? point.low : point.mean);
            values.include(band ? point.high : point.mean);
        }
    };
    for (const Curve& curve : data.curves) {
        include(curve.points, curve.captures.size() < 2); // an interval may reach below 0, where no axis goes
        for (const CaptureCurve& one : curve.captures) include(one.points, false);
    }
    if (std::isfinite(data.level.first)) values.include(data.level.first);
    return values;
}

/// The axis over all values, or from end to end of a chosen range, which other pictures may share.
AxisSpec verticalAxis(const CurvesData& data, const ParameterValues& options, std::string title) {
    const MeasureCard& measure = measureById(data.measure);
    const bool decades = options.choice("scale") == "log" && !higherWins(measure) && !measure.isSigned;
    AxisSpec axis = axisOver(valuesOf(data), decades, std::move(title)); // masses and volumes are linear
    const ValueRange chosen = ValueRange::parse(options.text(kValueRangeOption));
    const double low = chosen.low.value_or(axis.low), high = chosen.high.value_or(axis.high);
    if (!chosen.applies(data.measure) || !(low < high)) return axis;
    axis.low = low, axis.high = high;
    if (low <= 0) axis.scale = AxisScale::Linear;
    return axis;
}

std::string yTitle(const CurvesData& data, const Viewport& viewport) {
    if (!data.valueTitle.empty()) return data.valueTitle;
    const MeasureCard& measure = measureById(data.measure);
    if (data.captures < 2) return measureTitle(measure);
    const bool isLow = viewport.height < 340; // no room for a long title beside the axis
    return fmt::format("{}, {}", measureTitle(measure),
                       isLow ? fmt::format("mean of {}", data.captures)
                             : fmt::format("mean of {} captures", data.captures));
}

const std::vector<double> kLevelDash = {1, 3};

std::string legendNote(const CurvesData& data, const Curve& curve) {
    std::string note;
    if (isLevel(data, curve))
        note = fmt::format(" (has no {})", data.parameter);
    else if (!curve.error.empty())
        note = " (incomplete)";
    double nothing = 0;   // balanced up to this share
    std::string settings; // at which nothing was balanced, where a parameter varies
    for (const CurvePoint& point : curve.points) {
        if (!point.balancedNothing) continue;
        nothing = std::max(nothing, 100 * point.retention);
        if (!point.setting.empty()) settings += (settings.empty() ? "" : ", ") + point.setting;
    }
    if (!settings.empty())
        note += fmt::format(" (nothing balanced at {} = {})", data.parameter, settings);
    else if (isLevel(data, curve) && nothing > 0)
        note += " (nothing balanced)";
    else if (nothing > 0)
        note += fmt::format(" (nothing balanced up to {} %)", formatFixed(nothing, 0));
    return curve.simulated ? note + " (simulated)" : note;
}

std::string labelOf(const CurvesData& data, const Curve& curve) {
    return letteredName(curve) + legendNote(data, curve);
}

/// The line as it is drawn, with its marker; a level has no marks and a single point no line.
LegendEntry legendEntry(const CurvesData& data, const Curve& curve, const PaneIdentity& identity) {
    const bool level = isLevel(data, curve), line = level || curve.points.size() > 1;
    return {.label = labelOf(data, curve),
            .marker = identity.marker(),
            .fill = level ? kTransparent : identity.colour(),
            .stroke = line ? Stroke{identity.colour(), 1.6, level ? kLevelDash : identity.dash()} : Stroke{},
            .radius = 3,
            .bar = line};
}

/// `named`: with entries for the curves, because no labels at their ends name them.
std::vector<LegendEntry> legendOf(const CurvesData& data, const ViewInput& input, bool named, ThemeId theme) {
    std::vector<LegendEntry> legend;
    for (const Curve& curve : data.curves)
        if (named) legend.push_back(legendEntry(data, curve, identityOf(input, curve, theme)));
    if (std::isfinite(data.level.first))
        legend.push_back(lineEntry(data.level.second, {themeOf(theme).text3, 1.2, kLevelDash}));
    if (data.captures > 1) legend.push_back(wordsEntry("thin: one capture; band: 95 % interval of the mean"));
    return legend;
}

/// `labels`: how wide the labels at the ends of the curves are; 0: a legend names the curves.
Chart chartFor(const CurvesData& data, const ViewInput& input, const ParameterValues& options, double labels,
               const Viewport& viewport) {
    Extent x;
    const auto include = [&](const std::vector<CurvePoint>& points) {
        for (const CurvePoint& point : points)
            if (variesBudget(data) || !point.setting.empty()) x.include(xOf(point, options));
    };
    for (const Curve& curve : data.curves) {
        include(curve.points);
        for (const CaptureCurve& one : curve.captures) include(one.points);
    }
    if (x.low > x.high) // no pane has got to its first value
        x = {0, 1};
    const bool logarithmic = options.choice("scale") == "log";
    const char* budget = options.choice("against") == "bytes"
                             ? (data.valueTitle.empty() ? "KiB stored in the layer" : "KiB stored in all layers")
                             : "Kept, % of the tokens before the cut";
    AxisSpec across = axisOver(x, logarithmic, variesBudget(data) ? budget : data.title);
    if (variesBudget(data) && options.choice("against") == "retention")
        across.high = std::min(across.high, 100.0); // more than everything cannot be kept
    return Chart(viewport, legendOf(data, input, labels == 0, viewport.theme), std::move(across),
                 verticalAxis(data, options, yTitle(data, viewport)), labels);
}

bool hasBand(const Curve& curve) { return curve.captures.size() > 1 || curve.points.front().seeds > 1; }

/// A value below the axis (an interval's end below 0 on a logarithmic one) stands at the lower end of the axis.
double yPixel(const PlotFrame& frame, double value) {
    return frame.toPixels(frame.x.low, std::max(value, frame.y.low)).y;
}

void drawBand(SceneBuilder& builder, const PlotFrame& frame, const Curve& curve, const ParameterValues& options,
              Colour colour) {
    if (curve.points.size() < 2 || !hasBand(curve)) return;
    std::vector<Point> outline;
    for (const CurvePoint& point : curve.points)
        outline.push_back({frame.toPixels(xOf(point, options), frame.y.low).x, yPixel(frame, point.high)});
    for (auto point = curve.points.rbegin(); point != curve.points.rend(); ++point)
        outline.push_back({frame.toPixels(xOf(*point, options), frame.y.low).x, yPixel(frame, point->low)});
    builder.polygon(std::move(outline),
                    withAlpha(colour, curve.captures.size() > 1 ? 0.1 : 0.18)); // pale behind the thin lines
}

/// Each capture's own curve, thin.
void drawCaptures(SceneBuilder& builder, const PlotFrame& frame, const Curve& curve, const ParameterValues& options,
                  Colour colour) {
    for (const CaptureCurve& one : curve.captures) {
        std::vector<Point> line;
        for (const CurvePoint& point : one.points) line.push_back(frame.toPixels(xOf(point, options), point.mean));
        if (line.size() > 1) builder.polyline(std::move(line), {withAlpha(colour, 0.55), 0.8, {}});
    }
}

void drawLevel(SceneBuilder& builder, const PlotFrame& frame, const Curve& curve, Colour colour) {
    const CurvePoint& point = curve.points.front();
    const double high = yPixel(frame, point.high), mean = frame.toPixels(frame.x.low, point.mean).y;
    if (hasBand(curve))
        builder.rectangle({frame.plot.x, high, frame.plot.width, yPixel(frame, point.low) - high},
                          withAlpha(colour, 0.18));
    builder.line({frame.plot.x, mean}, {frame.plot.right(), mean}, {colour, 1.6, kLevelDash});
}

constexpr std::int64_t kMostPoints = 4096; // of a curve, for pick ids
constexpr double kMarkRadius = 3.2;

void drawCurve(SceneBuilder& builder, const PlotFrame& frame, const CurvesData& data, std::size_t index,
               const ParameterValues& options, const PaneIdentity& identity) {
    const Curve& curve = data.curves[index];
    if (isLevel(data, curve)) return drawLevel(builder, frame, curve, identity.colour());
    drawBand(builder, frame, curve, options, identity.colour());
    drawCaptures(builder, frame, curve, options, identity.colour());
    GatheredMarks marks;
    auto id = static_cast<std::int64_t>(index) * kMostPoints;
    for (const CurvePoint& point : curve.points) marks.add(frame.toPixels(xOf(point, options), point.mean), id++);
    if (marks.points().size() > 1) builder.polyline(marks.points(), {identity.colour(), 1.6, identity.dash()});
    builder.points(
        marks.as(letteredName(curve), PickId::Kind::Node, identity.marker(), kMarkRadius, identity.colour(), {}));
}

constexpr double kLabelPitch = 14, kLeader = 16;
const TextStyle kEndLabel{FontFace::Interface, 11, FontWeight::SemiBold};

/// Width for the labels at the curves' ends in a printed figure; 0 where there are too many labels or too little room.
double endLabelWidth(const CurvesData& data, const Viewport& viewport) {
    constexpr std::size_t kMostLabels = 5;
    if (viewport.theme != ThemeId::Paper || data.curves.size() > kMostLabels) return 0;
    double widest = 0;
    for (const Curve& curve : data.curves)
        widest = std::max(widest, viewport.text->measure(labelOf(data, curve), kEndLabel).width);
    const double width = kLeader + widest - 8; // an axis leaves these 8 to its right
    return width < 0.4 * viewport.width ? width : 0;
}

/// The curves in pixels, with the levels.
std::vector<std::vector<Point>> linesOf(const PlotFrame& frame, const CurvesData& data,
                                        const ParameterValues& options) {
    std::vector<std::vector<Point>> lines;
    for (const Curve& curve : data.curves) {
        std::vector<Point> line;
        for (const CurvePoint& point : curve.points)
            line.push_back({frame.toPixels(xOf(point, options), frame.y.low).x, yPixel(frame, point.mean)});
        if (isLevel(data, curve)) line = {{frame.plot.x, line[0].y}, {frame.plot.right(), line[0].y}};
        lines.push_back(std::move(line));
    }
    return lines;
}

/// The plot with room for marks at 100 % and at no error, which lie on its edges, so that they are not cut.
Box withRoomForMarks(Box plot) {
    plot.width += kMarkRadius + 1;
    plot.height += kMarkRadius + 1;
    return plot;
}

Point endOf(const PlotFrame& frame, const CurvesData& data, const Curve& curve, const ParameterValues& options) {
    const CurvePoint& last = curve.points.back();
    const Point at{isLevel(data, curve) ? frame.plot.right() : frame.toPixels(xOf(last, options), frame.y.low).x,
                   yPixel(frame, last.mean)};
    return {at.x, std::clamp(at.y, frame.plot.y, frame.plot.bottom())};
}

/// The heights of the labels; empty where there is no room for them.
std::vector<double> labelHeights(const PlotFrame& frame, const CurvesData& data, const ParameterValues& options) {
    constexpr double kFarthest = 36;
    std::vector<double> ends;
    for (const Curve& curve : data.curves) {
        if (curve.points.empty()) return {};
        ends.push_back(endOf(frame, data, curve, options).y);
    }
    return spreadLabels(ends, kLabelPitch, frame.plot.y, frame.plot.bottom(), kFarthest);
}

void drawEndLabels(SceneBuilder& builder, const PlotFrame& frame, const CurvesData& data, const ViewInput& input,
                   const ParameterValues& options, const std::vector<double>& heights) {
    const double left = frame.plot.right() + kLeader;
    for (std::size_t i = 0; i < heights.size(); ++i) {
        const Curve& curve = data.curves[i];
        const Colour colour = identityOf(input, curve, ThemeId::Paper).colour();
        const Point end = endOf(frame, data, curve, options);
        builder.polyline({{end.x + 4, end.y}, {frame.plot.right() + 6, heights[i]}, {left - 3, heights[i]}},
                         {colour, 1, {}});
        builder.label({left, heights[i]}, labelOf(data, curve), kEndLabel, colour);
    }
}

} // namespace

ValueRange valuesOfAxis(const CurvesData& data, const ParameterValues& options) {
    const AxisSpec axis = verticalAxis(data, options, {});
    return {axis.low, axis.high, data.measure};
}

Scene drawCurves(const CurvesData& data, const ViewInput& input, const ParameterValues& options,
                 const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    Chart chart = chartFor(data, input, options, endLabelWidth(data, viewport), viewport);
    const std::vector<double> heights =
        endLabelWidth(data, viewport) > 0 ? labelHeights(chart.frame, data, options) : std::vector<double>{};
    if (heights.empty()) chart = chartFor(data, input, options, 0, viewport);
    SceneBuilder builder = chart.builder(viewport);
    drawGrid(builder, chart.frame, theme);
    const std::optional<PresentPlace> present = presentPlace(data, input, options);
    builder.pushClip(withRoomForMarks(chart.frame.plot));
    if (present) drawPresentLine(builder, chart.frame, *present, theme);
    if (std::isfinite(data.level.first)) {
        const double y = chart.frame.toPixels(chart.frame.x.low, data.level.first).y;
        builder.line({chart.frame.plot.x, y}, {chart.frame.plot.right(), y}, {theme.text3, 1.2, kLevelDash});
    }
    for (std::size_t i = 0; i < data.curves.size(); ++i)
        drawCurve(builder, chart.frame, data, i, options, identityOf(input, data.curves[i], viewport.theme));
    builder.popClip();
    if (present) namePresentLine(builder, chart.frame, *present, linesOf(chart.frame, data, options), theme);
    drawEndLabels(builder, chart.frame, data, input, options, heights);
    const bool ofLayer = data.valueTitle.empty() && !data.head;
    return ofLayer ? finishChart(chart, viewport, false,
                                 provenanceOf(fmt::format("layer {} (0-based), all its heads", input.layer.value),
                                              input, readyPanes(input)))
                   : finishChart(chart, input, viewport, false, !data.valueTitle.empty());
}

std::optional<CurveMark> curveMarkAt(const CurvesData& data, const Scene& scene, Point at) {
    const PickId pick = pickAt(scene, at, 4);
    const CurveMark mark{static_cast<std::size_t>(pick.index / kMostPoints),
                         static_cast<std::size_t>(pick.index % kMostPoints)};
    if (pick.kind != PickId::Kind::Node || mark.curve >= data.curves.size() ||
        mark.point >= data.curves[mark.curve].points.size())
        return {};
    return mark;
}

} // namespace kvscope
