// Axes, grid and legend: thin lines, ticks outward, grid behind the data.
#include "views/scene/axes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kvscope {

namespace {

constexpr double kTickLength = 4, kLabelGap = 3, kTitleSize = 11, kLabelSize = 10;

TextStyle labelStyle(bool forPaper) { return {forPaper ? FontFace::Interface : FontFace::Monospace, kLabelSize}; }
const TextStyle kTitleStyle{FontFace::Interface, kTitleSize};

double fraction(const AxisSpec& axis, double value) {
    if (axis.scale == AxisScale::Logarithmic)
        return (std::log(value) - std::log(axis.low)) / (std::log(axis.high) - std::log(axis.low));
    return (value - axis.low) / (axis.high - axis.low);
}

double valueAt(const AxisSpec& axis, double f) {
    if (axis.scale == AxisScale::Logarithmic)
        return std::exp(std::log(axis.low) + f * (std::log(axis.high) - std::log(axis.low)));
    return axis.low + f * (axis.high - axis.low);
}

std::vector<Tick> ticksOf(AxisSpec axis, double length, double pitch) {
    if (axis.low > axis.high)
        std::swap(axis.low, axis.high); // an axis that runs the other way has the same ticks
    const int most = std::clamp(static_cast<int>(length / pitch), 2, 9);
    switch (axis.scale) {
    case AxisScale::Logarithmic: return logarithmicTicks(axis.low, axis.high, most);
    case AxisScale::Position:
        return positionTicks(static_cast<std::int64_t>(std::ceil(axis.low)), static_cast<std::int64_t>(axis.high), most);
    case AxisScale::Linear: break;
    }
    return linearTicks(axis.low, axis.high, std::min(most, 7));
}

std::vector<Tick> xTicks(const PlotFrame& frame) { return ticksOf(frame.x, frame.plot.width, 52); }
std::vector<Tick> yTicks(const PlotFrame& frame) { return ticksOf(frame.y, frame.plot.height, 34); }

} // namespace

Point PlotFrame::toPixels(double xValue, double yValue) const {
    return {plot.x + fraction(x, xValue) * plot.width, plot.bottom() - fraction(y, yValue) * plot.height};
}

double PlotFrame::xAt(double pixel) const { return valueAt(x, (pixel - plot.x) / plot.width); }
double PlotFrame::yAt(double pixel) const { return valueAt(y, (plot.bottom() - pixel) / plot.height); }

Box plotBoxFor(const Box& area, const AxisSpec& y, const AxesStyle& style, const TextService& text) {
    double left = kTickLength, bottom = kTickLength;
    if (style.tickLabels) {
        double widest = 0;
        for (const Tick& tick : ticksOf(y, area.height, 34))
            widest = std::max(widest, text.measure(tick.label, labelStyle(style.forPaper)).width);
        left += widest + kLabelGap;
        bottom += kLabelSize + 2 * kLabelGap;
    }
    if (style.titles) {
        left += kTitleSize + 6;
        bottom += kTitleSize + 5;
    }
    const double right = style.tickLabels ? 12 : 2, top = 6; // the last tick label hangs over the right end
    return {area.x + left, area.y + top, std::max(1.0, area.width - left - right), std::max(1.0, area.height - top - bottom)};
}

void makeAspectEqual(AxisSpec& x, AxisSpec& y, const Box& plot) {
    const double xUnit = (x.high - x.low) / plot.width, yUnit = (y.high - y.low) / plot.height;
    AxisSpec& shorter = xUnit < yUnit ? x : y;
    const double wanted = std::max(xUnit, yUnit) * (xUnit < yUnit ? plot.width : plot.height);
    const double middle = (shorter.low + shorter.high) / 2;
    shorter.low = middle - wanted / 2;
    shorter.high = middle + wanted / 2;
}

void drawGrid(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme) {
    const Stroke stroke{theme.grid, 1, {}};
    for (const Tick& tick : xTicks(frame)) {
        const double x = frame.toPixels(tick.value, frame.y.low).x;
        builder.line({x, frame.plot.y}, {x, frame.plot.bottom()}, stroke);
    }
    for (const Tick& tick : yTicks(frame)) {
        const double y = frame.toPixels(frame.x.low, tick.value).y;
        builder.line({frame.plot.x, y}, {frame.plot.right(), y}, stroke);
    }
}

namespace {

void drawXAxis(SceneBuilder& builder, const PlotFrame& frame, const AxesStyle& style, const Theme& theme) {
    const Stroke stroke{theme.axis, 1, {}};
    const Box& plot = frame.plot;
    builder.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, stroke);
    for (const Tick& tick : xTicks(frame)) {
        const double x = frame.toPixels(tick.value, frame.y.low).x;
        builder.line({x, plot.bottom()}, {x, plot.bottom() + kTickLength}, stroke);
        if (style.tickLabels)
            builder.text({x, plot.bottom() + kTickLength + kLabelGap}, tick.label, labelStyle(style.forPaper), theme.text3,
                         HorizontalAlign::Centre, VerticalAlign::Top);
    }
    if (style.titles)
        builder.text({plot.x + plot.width / 2, plot.bottom() + kTickLength + (style.tickLabels ? 2 * kLabelGap + kLabelSize : 0) + 3},
                     frame.x.title, kTitleStyle, theme.text2, HorizontalAlign::Centre, VerticalAlign::Top);
}

void drawYAxis(SceneBuilder& builder, const PlotFrame& frame, const AxesStyle& style, const Theme& theme) {
    const Stroke stroke{theme.axis, 1, {}};
    const Box& plot = frame.plot;
    builder.line({plot.x, plot.y}, {plot.x, plot.bottom()}, stroke);
    double widest = 0;
    for (const Tick& tick : yTicks(frame)) {
        const double y = frame.toPixels(frame.x.low, tick.value).y;
        builder.line({plot.x - kTickLength, y}, {plot.x, y}, stroke);
        if (style.tickLabels)
            widest = std::max(widest, builder.text({plot.x - kTickLength - kLabelGap, y}, tick.label,
                                                   labelStyle(style.forPaper), theme.text3, HorizontalAlign::Right,
                                                   VerticalAlign::Middle));
    }
    if (style.titles)
        builder.text({plot.x - kTickLength - (style.tickLabels ? kLabelGap + widest : 0) - 6, plot.y + plot.height / 2}, frame.y.title, kTitleStyle,
                     theme.text2, HorizontalAlign::Centre, VerticalAlign::Baseline, -90);
}

} // namespace

void drawAxes(SceneBuilder& builder, const PlotFrame& frame, const AxesStyle& style, const Theme& theme) {
    drawXAxis(builder, frame, style, theme);
    drawYAxis(builder, frame, style, theme);
}

namespace {

void drawLegendMark(SceneBuilder& builder, const LegendEntry& entry, Point at) {
    if (entry.bar && entry.stroke.colour.a > 0) {
        builder.polyline({{at.x - 8, at.y}, {at.x + 8, at.y}}, entry.stroke);
        if (entry.fill.a > 0)
            drawLegendMark(builder, {"", entry.marker, entry.fill, {}, entry.radius}, at);
    } else if (entry.bar) {
        builder.rectangle({at.x - 8, at.y - 1.3, 16, 2.6}, entry.fill);
    } else if (const auto arms = markerArms(entry.marker, entry.radius); !arms.empty()) {
        for (const auto& [from, to] : arms)
            builder.line({at.x + from.x, at.y + from.y}, {at.x + to.x, at.y + to.y}, armStroke(entry.stroke, entry.fill));
    } else if (entry.marker == Marker::Star) {
        builder.star(at, entry.radius, entry.fill, entry.stroke);
    } else if (const auto outline = markerOutline(entry.marker, entry.radius); !outline.empty()) {
        std::vector<Point> points;
        for (const Point p : outline)
            points.push_back({p.x + at.x, p.y + at.y});
        builder.polygon(std::move(points), entry.fill, entry.stroke);
    } else {
        builder.circle(at, entry.radius, entry.fill, entry.stroke);
    }
}

constexpr double kLegendGap = 14, kLeastLegendLabel = 64;

/// Mark and gaps of an entry: all but its label.
double legendFrame(const LegendEntry& entry) {
    return (entry.bar ? 16 : 12) + 5 + kLegendGap;
}

/// The width above which labels are cut so that all of them fit into the room.
double longestLabel(std::vector<double> widths, double room) {
    std::sort(widths.begin(), widths.end());
    for (std::size_t i = 0; i < widths.size(); ++i) {
        const double share = room / static_cast<double>(widths.size() - i);
        if (widths[i] > share)
            return share;
        room -= widths[i];
    }
    return std::numeric_limits<double>::infinity();
}

} // namespace

double drawLegend(SceneBuilder& builder, Point leftMiddle, double width, const std::vector<LegendEntry>& entries,
                  const Theme& theme) {
    const TextStyle style{FontFace::Interface, 11};
    std::vector<double> widths;
    double room = width + kLegendGap;
    for (const LegendEntry& entry : entries) {
        widths.push_back(builder.width(entry.label, style));
        room -= legendFrame(entry);
    }
    double most = longestLabel(widths, room);
    while (most < kLeastLegendLabel && widths.size() > 1) {
        widths.pop_back();
        room += legendFrame(entries[widths.size()]);
        most = longestLabel(widths, room);
    }
    double x = leftMiddle.x;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        const double frame = legendFrame(entries[i]) - kLegendGap;
        drawLegendMark(builder, entries[i], {x + (frame - 5) / 2, leftMiddle.y});
        const std::string label = widths[i] > most ? builder.elide(entries[i].label, style, most) : entries[i].label;
        x += frame + builder.text({x + frame, leftMiddle.y}, label, style, theme.text2, HorizontalAlign::Left, VerticalAlign::Middle) + kLegendGap;
    }
    return x;
}

} // namespace kvscope
