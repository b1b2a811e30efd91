// Axes and grid: thin lines, ticks outward, grid behind the data.
#include "views/scene/axes.h"

#include "core/metrics/measure_values.h"

#include <algorithm>
#include <cmath>
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
    if (axis.low > axis.high) std::swap(axis.low, axis.high); // an axis that runs the other way has the same ticks
    const int most = std::clamp(static_cast<int>(length / pitch), 2, 9);
    switch (axis.scale) {
    case AxisScale::Logarithmic: return logarithmicTicks(axis.low, axis.high, most);
    case AxisScale::Position:
        return positionTicks(static_cast<std::int64_t>(std::ceil(axis.low)), static_cast<std::int64_t>(axis.high),
                             most);
    case AxisScale::Linear: break;
    }
    return linearTicks(axis.low, axis.high, std::min(most, 7));
}

std::vector<Tick> xTicks(const PlotFrame& frame) { return ticksOf(frame.x, frame.plot.width, 52); }
std::vector<Tick> yTicks(const PlotFrame& frame) { return ticksOf(frame.y, frame.plot.height, 34); }

void drawXAxis(SceneBuilder& builder, const PlotFrame& frame, const AxesStyle& style, const Theme& theme) {
    const Stroke stroke{theme.axis, 1, {}};
    const Box& plot = frame.plot;
    builder.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, stroke);
    for (const Tick& tick : xTicks(frame)) {
        const double x = frame.toPixels(tick.value, frame.y.low).x;
        builder.line({x, plot.bottom()}, {x, plot.bottom() + kTickLength}, stroke);
        if (style.tickLabels)
            builder.text({x, plot.bottom() + kTickLength + kLabelGap}, tick.label, labelStyle(style.forPaper),
                         theme.text2, HorizontalAlign::Centre, VerticalAlign::Top);
    }
    if (style.titles)
        builder.text({plot.x + plot.width / 2,
                      plot.bottom() + kTickLength + (style.tickLabels ? 2 * kLabelGap + kLabelSize : 0) + 3},
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
            widest = std::max(widest, builder.label({plot.x - kTickLength - kLabelGap, y}, tick.label,
                                                    labelStyle(style.forPaper), theme.text2, HorizontalAlign::Right));
    }
    if (!style.titles) return;
    // A title longer than the axis extends below it, never up into a legend.
    constexpr double kBelow = 26;
    const std::string title = builder.elide(frame.y.title, kTitleStyle, plot.height + kBelow);
    const double middle = plot.y + std::max(plot.height, builder.width(title, kTitleStyle)) / 2;
    builder.text({plot.x - kTickLength - (style.tickLabels ? kLabelGap + widest : 0) - 6, middle}, title, kTitleStyle,
                 theme.text2, HorizontalAlign::Centre, VerticalAlign::Baseline, -90);
}

} // namespace

Point PlotFrame::toPixels(double xValue, double yValue) const {
    return {plot.x + fraction(x, xValue) * plot.width, plot.bottom() - fraction(y, yValue) * plot.height};
}

double PlotFrame::xAt(double pixel) const { return valueAt(x, (pixel - plot.x) / plot.width); }
double PlotFrame::yAt(double pixel) const { return valueAt(y, (plot.bottom() - pixel) / plot.height); }

void setDataRange(Scene& scene, const PlotFrame& frame) {
    scene.plot = frame.plot;
    scene.xMin = frame.x.low, scene.xMax = frame.x.high;
    scene.yMin = std::min(frame.y.low, frame.y.high), scene.yMax = std::max(frame.y.low, frame.y.high);
    scene.yDown = frame.y.low > frame.y.high;
}

void drawAcross(SceneBuilder& builder, const PlotFrame& frame, double y, Stroke stroke) {
    const double at = frame.toPixels(frame.x.low, y).y;
    builder.line({frame.plot.x, at}, {frame.plot.right(), at}, std::move(stroke));
}

void drawUpright(SceneBuilder& builder, const PlotFrame& frame, double x, Stroke stroke) {
    const double at = frame.toPixels(x, frame.y.low).x;
    builder.line({at, frame.plot.y}, {at, frame.plot.bottom()}, std::move(stroke));
}

Box plotBoxFor(const Box& area, const AxisSpec& y, const AxesStyle& style, const TextService& text) {
    const double right = style.tickLabels ? 12 : 2, top = 6; // the last tick label hangs over the right end
    const double bottom =
        kTickLength + (style.tickLabels ? kLabelSize + 2 * kLabelGap : 0) + (style.titles ? kTitleSize + 5 : 0);
    const double height = std::max(1.0, area.height - top - bottom);
    double left = kTickLength + (style.titles ? kTitleSize + 6 : 0);
    if (style.tickLabels) {
        double widest = 0;
        for (const Tick& tick : ticksOf(y, height, 34)) // those that will be drawn
            widest = std::max(widest, text.measure(tick.label, labelStyle(style.forPaper)).width);
        left += widest + kLabelGap;
    }
    return {area.x + left, area.y + top, std::max(1.0, area.width - left - right), height};
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
    for (const Tick& tick : xTicks(frame)) drawUpright(builder, frame, tick.value, stroke);
    for (const Tick& tick : yTicks(frame)) drawAcross(builder, frame, tick.value, stroke);
}

void drawAxes(SceneBuilder& builder, const PlotFrame& frame, const AxesStyle& style, const Theme& theme) {
    drawXAxis(builder, frame, style, theme);
    drawYAxis(builder, frame, style, theme);
}

} // namespace kvscope
