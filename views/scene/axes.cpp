// Axes and grid: thin lines, ticks outward, grid behind the data.
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace kvscope {

namespace {

constexpr double kTickLength = 4, kLabelGap = 3, kTitleSize = 11, kLabelSize = 10;

TextStyle labelStyle(bool forPaper) { return {forPaper ? FontFace::Interface : FontFace::Monospace, kLabelSize}; }
const TextStyle kTitleStyle{FontFace::Interface, kTitleSize};

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
    case AxisScale::Position: {
        const auto whole = [](double end) { return static_cast<std::int64_t>(std::clamp(end, -1e15, 1e15)); };
        return positionTicks(whole(std::ceil(axis.low)), whole(axis.high), most);
    }
    case AxisScale::Linear: break;
    }
    return linearTicks(axis.low, axis.high, std::min(most, 7));
}

std::vector<Tick> xTicks(const PlotFrame& frame) {
    return ticksOf(frame.x, frame.plot.width,
                   std::max(std::fabs(frame.x.low), std::fabs(frame.x.high)) >= 1e6 ? 66 : 52);
}
std::vector<Tick> yTicks(const PlotFrame& frame) { return ticksOf(frame.y, frame.plot.height, 34); }

void drawXAxis(SceneBuilder& builder, const PlotFrame& frame, const AxesStyle& style, const Theme& theme) {
    const Stroke stroke{theme.axis, 1, {}};
    const Box& plot = frame.plot;
    builder.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, stroke);
    for (const Tick& tick : xTicks(frame)) {
        const double x = frame.toPixels(tick.value, frame.y.low).x;
        builder.line({x, plot.bottom()}, {x, plot.bottom() + kTickLength}, stroke);
        if (!style.tickLabels) continue;
        const double half = builder.width(tick.label, labelStyle(style.forPaper)) / 2;
        const double middle = std::max(half, std::min(x, builder.scene().width - half)); // within the picture
        builder.text({middle, plot.bottom() + kTickLength + kLabelGap}, tick.label, labelStyle(style.forPaper),
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
    std::string title = frame.y.title;
    // A unit in brackets goes as a whole rather than in the middle.
    if (const std::size_t unit = title.rfind(" (");
        title.ends_with(')') && unit != std::string::npos && builder.width(title, kTitleStyle) > plot.height + kBelow)
        title.resize(unit);
    title = builder.elide(title, kTitleStyle, plot.height + kBelow);
    const double middle = plot.y + std::max(plot.height, builder.width(title, kTitleStyle)) / 2;
    builder.text({plot.x - kTickLength - (style.tickLabels ? kLabelGap + widest : 0) - 6, middle}, title, kTitleStyle,
                 theme.text2, HorizontalAlign::Centre, VerticalAlign::Baseline, -90);
}

std::string withMinus(std::string text) {
    for (std::size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 3) text.replace(at, 1, "−");
    return text;
}

std::string trimmed(std::string text) {
    if (text.find('.') == std::string::npos) return text;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
double roundStep(double rough) {
    const double power = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (factor * power >= rough * (1 - 1e-9)) return factor * power;
    return 10 * power;
}

/// These multiples of every step-th power of ten.
std::vector<Tick> decadeTicks(double low, double high, const std::vector<double>& factors, int step) {
    std::vector<Tick> ticks;
    for (double decade = std::floor(std::log10(low)); decade <= std::ceil(std::log10(high)); ++decade)
        for (const double factor : factors)
            if (const double v = factor * std::pow(10, decade);
                v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9) && std::fmod(decade, step) == 0)
                ticks.push_back({v, v >= 1000 && v < 1e6 ? formatCount(std::llround(v)) : formatShort(v)});
    return ticks;
}

} // namespace

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

std::string formatCount(std::int64_t value) {
    std::string digits = std::to_string(value < 0 ? -value : value);
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return value < 0 ? "−" + digits : digits;
}

std::string formatFixed(double value, int decimals) {
    if (std::isnan(value)) return "n/a";
    const std::string text = fmt::format("{:.{}f}", value, decimals);
    return withMinus(text.find_first_not_of("-0.") == std::string::npos && text[0] == '-' ? text.substr(1) : text);
}

std::string formatWithin(double value, double whole, int decimals) {
    constexpr int kMost = 4;
    for (int places = decimals; places <= kMost; ++places) {
        std::string text = formatFixed(value, places);
        if (text != formatFixed(0, places) && text != formatFixed(whole, places)) return text;
    }
    return formatFixed(value, decimals);
}

std::string formatPercent(double share) { return formatWithin(100 * share, 100, 1) + " %"; }

std::string formatBytes(double bytes) {
    static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < kUnits.size()) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{} {}", formatFixed(bytes, unit == 0 ? 0 : 1), kUnits[unit]);
}

std::string formatCounted(std::int64_t count, std::string_view thing) {
    if (count == 1) return fmt::format("1 {}", thing);
    const bool endsInY = thing.ends_with('y');
    return fmt::format("{} {}{}", formatCount(count), thing.substr(0, thing.size() - (endsInY ? 1 : 0)),
                       endsInY ? "ies" : "s");
}

std::string formatBudget(std::int64_t tokens, std::int64_t of) {
    const std::string count = formatCounted(tokens, "token");
    return of > 0 ? fmt::format("{} ({})", count, formatPercent(static_cast<double>(tokens) / static_cast<double>(of)))
                  : count;
}

std::string formatShort(double value) {
    if (std::isnan(value)) return "n/a";
    if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
    const double magnitude = std::fabs(value);
    if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e6)) {
        int exponent = static_cast<int>(std::floor(std::log10(magnitude)));
        if (magnitude / std::pow(10, exponent) >= 9.95) ++exponent; // 9.97e-5 is 1e-4 in two digits, not 10e-5
        return withMinus(trimmed(fmt::format("{:.1f}", value / std::pow(10, exponent))) + "e" +
                         std::to_string(exponent));
    }
    if (magnitude >= 1000) return formatCount(std::llround(value));
    const int decimals =
        magnitude >= 100 || magnitude == 0 ? 0 : 2 - static_cast<int>(std::floor(std::log10(magnitude)));
    return withMinus(trimmed(fmt::format("{:.{}f}", value, std::max(0, decimals))));
}

std::vector<Tick> linearTicks(double low, double high, int most) {
    std::vector<Tick> ticks;
    // A range below this share of its ends is few units in the last place wide: the next tick may equal the last.
    constexpr double kLeastShare = 1e-12, kLeastSpan = 1e-300;
    const double span = high - low;
    if (!(span > std::max(kLeastSpan, kLeastShare * std::max(std::fabs(low), std::fabs(high)))) || std::isinf(span))
        return ticks;
    const auto count = [&](double step) { return std::floor(high / step + 1e-9) - std::ceil(low / step - 1e-9) + 1; };
    double step = roundStep(span / (std::max(1, most) + 1)); // a finer step has too many ticks for any range
    while (count(step) > most) step = roundStep(step * 1.5);
    // A single tick does not show the scale. Around 0 one finer step may not suffice.
    for (int finer = 0; finer < 3 && count(step) < 2; ++finer) step = roundStep(step * 0.3);
    const auto powerOf = [](double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); };
    const int last = powerOf(step), first = powerOf(std::max(std::fabs(low), std::fabs(high)));
    const auto label = [&](double value) {
        if (first >= 9 || last < -6) // too long without an exponent
            return value == 0 ? std::string("0")
                              : formatFixed(value / std::pow(10, first), std::max(0, first - last)) +
                                    withMinus("e" + std::to_string(first));
        return last >= 0 ? formatCount(std::llround(value)) : formatFixed(value, -last);
    };
    const double lowest = std::ceil(low / step - 1e-9);
    for (int i = 0; i < count(step); ++i) ticks.push_back({(lowest + i) * step, label((lowest + i) * step)});
    return ticks;
}

std::vector<Tick> logarithmicTicks(double low, double high, int most) {
    if (!(low > 0) || !(high > low)) return {};
    std::vector<Tick> ticks;
    const std::array<std::vector<double>, 3> patterns = {{{1, 2, 5}, {1, 3}, {1}}};
    for (const std::vector<double>& pattern : patterns) {
        ticks = decadeTicks(low, high, pattern, 1);
        if (&pattern == patterns.data() &&
            ticks.size() < 2) // even 1, 2, 5 miss a narrow range, over which a logarithm is nearly straight
            return linearTicks(low, high, most);
        if (static_cast<int>(ticks.size()) <= most) return ticks;
    }
    for (int step = 2; static_cast<int>(ticks.size()) > std::max(2, most); ++step)
        ticks = decadeTicks(low, high, patterns.back(), step);
    return ticks;
}

std::vector<Tick> positionTicks(std::int64_t low, std::int64_t high, int most) {
    std::vector<Tick> ticks;
    std::int64_t step = 1;
    while ((high - low) / step > most - 1) step *= 2;
    for (std::int64_t v = (low + step - 1) / step * step; v <= high; v += step)
        ticks.push_back({static_cast<double>(v), formatCount(v)});
    return ticks;
}

} // namespace kvscope
