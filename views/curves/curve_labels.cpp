// Words beside curves. A dashed line stands at the active pane's budget or value, with the number as text, because a
// logarithmic axis is hard to read between ticks. Overlapping labels at the ends are spread: after subtracting its rank
// times the pitch, each label's position must not decrease, a least-squares problem solved by pooling adjacent
// violators.
#include "views/curves/curves_painter.h"

#include "core/run/head_means.h"
#include "views/common/view_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace kvscope {

namespace {

const TextStyle kStyle{FontFace::Interface, 11, FontWeight::SemiBold};

std::optional<double> lineAt(const PlotFrame& frame, const PresentPlace& place) {
    const double x = frame.toPixels(place.value, frame.y.low).x;
    return x > frame.plot.x && x <= frame.plot.right() ? std::optional(x) : std::nullopt;
}

/// How much of the lines runs through a box, in steps.
int crossings(const Box& box, const std::vector<std::vector<Point>>& lines) {
    constexpr int kSteps = 64; // of a segment, which may be long
    int found = 0;
    for (const std::vector<Point>& line : lines)
        for (std::size_t i = 0; i + 1 < line.size(); ++i)
            for (int step = 0; step <= kSteps; ++step) {
                const double t = static_cast<double>(step) / kSteps;
                found += box.contains(
                    {line[i].x + t * (line[i + 1].x - line[i].x), line[i].y + t * (line[i + 1].y - line[i].y)});
            }
    return found;
}

struct Pool {
    double sum = 0, count = 0;
    double mean() const { return sum / count; }
};

} // namespace

std::optional<PresentPlace> presentPlace(const CurvesData& data, const ViewInput& input,
                                         const ParameterValues& options) {
    const PaneData* pane = activePane(input);
    if (!pane || !pane->result) return {};
    const RunResult& result = *pane->result;
    if (variesBudget(data) && options.choice("against") == "bytes") {
        if (data.captures > 1) return {}; // the points lie at means over captures, these bytes are the open one's
        const double kibibytes = static_cast<double>(storedBytes(result)) / 1024;
        return PresentPlace{kibibytes, fmt::format("now {} KiB", formatShort(kibibytes))};
    }
    if (variesBudget(data)) {
        const double share = keptShareOf(result, input.kvHead);
        return PresentPlace{100 * share, "now " + keptBudget(result, input.kvHead)};
    }
    const ParameterValues& values = result.request.policy.values;
    if (result.request.recorded || !values.has(data.parameter)) return {};
    return PresentPlace{values.real(data.parameter), fmt::format("now {}", formatShort(values.real(data.parameter)))};
}

void drawPresentLine(SceneBuilder& builder, const PlotFrame& frame, const PresentPlace& place, const Theme& theme) {
    if (const auto x = lineAt(frame, place))
        builder.line({*x, frame.plot.y}, {*x, frame.plot.bottom()}, {theme.ink, 1, {4, 3}});
}

void namePresentLine(SceneBuilder& builder, const PlotFrame& frame, const PresentPlace& place,
                     const std::vector<std::vector<Point>>& lines, const Theme& theme) {
    constexpr double kHeight = 15, kBeside = 3, kMark = 4;
    const auto x = lineAt(frame, place);
    if (!x) return;
    const double width = builder.width(place.words, kStyle) + 6, top = frame.plot.y + 1,
                 bottom = frame.plot.bottom() - kHeight - 1;
    const std::array<Point, 4> corners = {
        {{*x + kBeside, top}, {*x - kBeside - width, top}, {*x + kBeside, bottom}, {*x - kBeside - width, bottom}}};
    Box best;
    int fewest = std::numeric_limits<int>::max();
    for (const Point corner : corners) {
        const Box plate{corner.x, corner.y, width, kHeight};
        const bool inside = plate.x >= frame.plot.x + 2 && plate.right() <= frame.plot.right();
        const int crossed = crossings(plate.grown(kMark), lines);
        if (inside && crossed < fewest) best = plate, fewest = crossed;
    }
    if (best.width <= 0) return; // a plot narrower than the words
    builder.rectangle(best, withAlpha(theme.canvas, 0.85));
    builder.label({best.x + 3, best.y + kHeight / 2}, place.words, kStyle, theme.text1);
}

std::vector<double> spreadLabels(const std::vector<double>& ends, double pitch, double top, double bottom,
                                 double farthest) {
    std::vector<std::size_t> order(ends.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return ends[a] < ends[b]; });
    const double steps = static_cast<double>(std::max<std::size_t>(1, ends.size()) - 1);
    if (top + steps * pitch > bottom) return {};
    std::vector<Pool> pools;
    for (std::size_t i = 0; i < order.size(); ++i) {
        pools.push_back({ends[order[i]] - pitch * static_cast<double>(i), 1});
        while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
            pools[pools.size() - 2] = {pools[pools.size() - 2].sum + pools.back().sum,
                                       pools[pools.size() - 2].count + pools.back().count};
            pools.pop_back();
        }
    }
    std::vector<double> heights(ends.size());
    std::size_t i = 0;
    for (const Pool& pool : pools)
        for (double left = pool.count; left > 0; --left, ++i)
            heights[order[i]] = std::clamp(pool.mean(), top, bottom - steps * pitch) + pitch * static_cast<double>(i);
    for (std::size_t label = 0; label < ends.size(); ++label)
        if (std::abs(heights[label] - ends[label]) > farthest) return {};
    return heights;
}

} // namespace kvscope
