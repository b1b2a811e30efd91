// Two curves on block processing: the drift of the cached keys' mean from the mean of all keys, and the error against
// the block size.
#include "views/block_timeline/block_measures.h"

#include "core/run/run.h"
#include "views/common/chart.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"

#include <fmt/format.h>

#include <cmath>

namespace kvscope {

namespace {

LegendEntry curveEntry(std::string label, const PolicyStyle& style) {
    return {std::move(label), style.marker, style.colour, {style.colour, 1.6, {}}, 3, true};
}

PointCloudItem marksOf(std::vector<Point> points, const PolicyStyle& style, const char* name) {
    PointCloudItem marks;
    marks.points = std::make_shared<const std::vector<Point>>(std::move(points));
    marks.pickKind = PickId::Kind::Node;
    marks.marker = style.marker;
    marks.radius = 3.2;
    marks.fill = style.colour;
    marks.name = name;
    return marks;
}

constexpr double kChipHeight = 18, kChipPad = 6;

void drawChip(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme, double x, TokenIndex cursor) {
    const TextStyle style{FontFace::Monospace, 11, FontWeight::Bold};
    const std::string label = "j = " + formatCount(cursor);
    const double width = builder.width(label, style) + 2 * kChipPad;
    const double left = std::clamp(x - width / 2, frame.plot.x, std::max(frame.plot.x, frame.plot.right() - width));
    builder.rectangle({left, frame.plot.y, width, kChipHeight}, theme.ink, {}, 3);
    builder.label({left + width / 2, frame.plot.y + kChipHeight / 2}, label, style, theme.paper,
                  HorizontalAlign::Centre);
    const TextStyle plain{FontFace::Interface, 11};
    const std::string rest = "not read yet";
    if (left + width + 8 + builder.width(rest, plain) < frame.plot.right())
        builder.label({left + width + 8, frame.plot.y + kChipHeight / 2}, rest, plain, theme.text2);
}

} // namespace

Scene drawAnchorDrift(const BlockTimelineData& data, const ViewInput& input, const PaneData& pane,
                      const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    const PolicyStyle style = policyStyle(pane.policyId, viewport.theme);
    double least = 1;
    for (const auto& step : data.drift) least = std::min(least, step.cosine);
    const double low = std::max(-1.0, least - 0.08 * (1 - least) - 1e-4);
    const auto n = static_cast<double>(pane.result->visible);
    Chart chart(
        viewport,
        {curveEntry(letteredName(pane) + ": cache and block", style), lineEntry("no drift", {theme.text2, 1, {5, 3}})},
        {0, n, AxisScale::Position, "Tokens processed"},
        {low, 1 + 0.06 * (1 - low), AxisScale::Linear, "cos(its mean key, mean of all keys)"});
    SceneBuilder builder = chart.builder(viewport);
    drawGrid(builder, chart.frame, theme);
    drawAcross(builder, chart.frame, 1, {theme.text2, 1, {5, 3}});
    std::vector<Point> line;
    for (const auto& step : data.drift)
        if (!input.cursor || step.end <= *input.cursor) line.push_back(chart.frame.toPixels(step.end, step.cosine));
    if (line.size() > 1) builder.polyline(line, {style.colour, 1.6, {}});
    if (input.cursor) drawStepCursor(builder, chart.frame, theme, *input.cursor);
    builder.points(marksOf(std::move(line), style, "drift"));
    if (input.cursor) drawStepChip(builder, chart.frame, theme, *input.cursor);
    return finishChart(chart, input, viewport, false);
}

Scene drawBlockSizes(const BlockTimelineData& data, const ViewInput& input, const PaneData& pane,
                     const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    const PolicyStyle style = policyStyle(pane.policyId, viewport.theme);
    double low = INFINITY, high = 1e-9, largest = 2;
    std::optional<double> smallest; // block; the first size is the prompt at once
    for (const auto& size : data.sizes) {
        low = std::min(low, size.error);
        high = std::max(high, size.error);
        largest = std::max(largest, static_cast<double>(size.block));
        if (size.block > 0 && !smallest) smallest = static_cast<double>(size.block);
    }
    Chart chart(viewport,
                {curveEntry(letteredName(pane) + ", simulated", style),
                 lineEntry("the prompt at once", {theme.text2, 1, {5, 3}})},
                {smallest.value_or(1) / 1.3, 1.3 * largest, AxisScale::Logarithmic, "Tokens per block"},
                {std::max(0.0, low - 0.3 * (high - low) - 1e-6), high + 0.3 * (high - low) + 1e-6, AxisScale::Linear,
                 "Relative output error"});
    SceneBuilder builder = chart.builder(viewport);
    drawGrid(builder, chart.frame, theme);
    std::vector<Point> line;
    for (const auto& size : data.sizes) {
        if (size.block == 0) {
            drawAcross(builder, chart.frame, size.error, {theme.text2, 1, {5, 3}});
            continue;
        }
        line.push_back(chart.frame.toPixels(size.block, size.error));
        // The sizes are powers of two, which the axis does not label.
        builder.text({line.back().x, line.back().y - 7}, formatCount(size.block), {FontFace::Monospace, 10},
                     theme.text2, HorizontalAlign::Centre);
    }
    if (line.size() > 1) builder.polyline(line, {style.colour, 1.6, {}});
    builder.points(marksOf(std::move(line), style, "block sizes"));
    return finishChart(chart, input, viewport, false);
}

std::string driftFinding(const BlockTimelineData& data, const PaneData& pane) {
    if (data.drift.empty()) return "No step has an anchor yet";
    const auto worst = std::ranges::min_element(data.drift, {}, &BlockTimelineData::Drift::cosine);
    return fmt::format("{}: the mean key of cache and block leaves that of all keys down to a cosine of {} (after {} "
                       "tokens); it is {} at the last of {}, where "
                       "its length is {} times theirs",
                       letteredName(pane), formatFixed(worst->cosine, 3), formatCount(worst->end),
                       formatFixed(data.drift.back().cosine, 3), formatCounted(std::ssize(data.drift), "step"),
                       formatFixed(data.drift.back().ratio, 2));
}

std::string sizesFinding(const BlockTimelineData& data, const PaneData& pane) {
    if (data.sizes.size() < 2) return "Running the policy with one block size after the other…";
    const auto best = std::ranges::min_element(data.sizes, {}, &BlockTimelineData::BlockSize::error);
    const auto& smallest = data.sizes[1];
    const std::string least = formatShort(best->error); // sizes whose error reads the same are not told apart
    const bool isTied =
        std::ranges::count_if(data.sizes, [&](const auto& size) { return formatShort(size.error) == least; }) > 1;
    return fmt::format("{} errs by {} at once and {} in blocks of {} (Jaccard {} with the tokens chosen at once){}",
                       letteredName(pane), formatShort(data.sizes.front().error), formatShort(smallest.error),
                       formatCount(smallest.block), formatFixed(smallest.overlap, 2),
                       isTied ? ""
                       : best == data.sizes.begin()
                           ? "; least at once"
                           : fmt::format("; least, {}, in blocks of {}", least, formatCount(best->block)));
}

void drawStepCursor(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme, TokenIndex cursor) {
    const double x = frame.toPixels(cursor, 0).x;
    const Box& plot = frame.plot;
    if (x > plot.right()) return;
    const double left = std::max(x, plot.x);
    builder.rectangle({left, plot.y, plot.right() - left, plot.height}, withAlpha(theme.sunken, 0.85));
    if (x >= plot.x) builder.line({x, plot.y}, {x, plot.bottom()}, {theme.ink, 1.5, {}});
}

void drawStepChip(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme, TokenIndex cursor) {
    const double x = frame.toPixels(cursor, 0).x;
    if (x <= frame.plot.right()) drawChip(builder, frame, theme, std::max(x, frame.plot.x), cursor);
}

} // namespace kvscope
