// How often each token is kept when only the seed changes.
#include "core/metrics/statistics.h"
#include "core/parameters/parameter_rows.h"
#include "views/common/chart.h"
#include "views/common/policy_style.h"
#include "views/common/token_marks.h"
#include "views/keep_probability/keep_probability_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    constexpr const char* source = "BalanceKV B.1 (10 seeds), Compactor (20 sketches)";
    return {integerRow("seeds", "Seeds", "", "", {2, 200, 20}, Stage::Features,
                       "Runs of the active pane's policy, from the present seed upwards.", source),
            integerRow("smooth", "Running mean", "", "tokens", {1, 1025, 33, 2}, Stage::Select,
                       "Neighbouring tokens in the running mean.", "the view's own")};
}

struct Counts {
    std::int64_t always = 0, sometimes = 0, never = 0;
};

Counts countsOf(const KeepProbabilityData& data) {
    Counts counts;
    for (const std::int32_t times : data.times)
        ++(times == data.seeds() ? counts.always : times == 0 ? counts.never : counts.sometimes);
    return counts;
}

double shareOf(const KeepProbabilityData& data, std::size_t token) {
    return static_cast<double>(data.times[token]) / data.seeds();
}

/// Mean number of kept tokens per seed: the sum of all probabilities.
double expectedCount(const KeepProbabilityData& data) {
    return static_cast<double>(std::accumulate(data.times.begin(), data.times.end(), std::int64_t{0})) / data.seeds();
}

/// Centred running means; at the ends over fewer tokens.
std::vector<double> runningMean(const KeepProbabilityData& data, std::int64_t width) {
    const std::int64_t n = std::ssize(data.times), half = width / 2;
    std::vector<double> sums(static_cast<std::size_t>(n) + 1, 0.0), means;
    for (std::int64_t i = 0; i < n; ++i)
        sums[static_cast<std::size_t>(i) + 1] = sums[i] + shareOf(data, static_cast<std::size_t>(i));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t from = std::max<std::int64_t>(0, i - half), to = std::min(n, i + half + 1);
        means.push_back((sums[to] - sums[from]) / static_cast<double>(to - from));
    }
    return means;
}

enum class Fate { Never, Sometimes, Always };

Fate fateOf(const KeepProbabilityData& data, std::size_t token) {
    return data.times[token] == 0 ? Fate::Never : data.times[token] == data.seeds() ? Fate::Always : Fate::Sometimes;
}

std::int64_t strideOf(const KeepProbabilityData& data) {
    return std::max<std::int64_t>(1, (data.visible + kMostTokenMarks - 1) / kMostTokenMarks);
}

void drawTokens(SceneBuilder& builder, const KeepProbabilityData& data, const PlotFrame& frame, const ViewInput& input,
                const Theme& theme) {
    const double fade = input.focus.brushing ? 0.25 : 1;
    const auto draw = [&](Fate fate, const char* name, Colour fill, Stroke stroke) {
        GatheredMarks marks;
        for (std::int64_t token = 0; token < data.visible; token += strideOf(data))
            if (const auto i = static_cast<std::size_t>(token); fateOf(data, i) == fate)
                marks.add(frame.toPixels(static_cast<double>(token) + 0.5, shareOf(data, i)), token);
        builder.points(marks.as(name, PickId::Kind::Token, Marker::Circle, 1.9, fill, std::move(stroke)));
    };
    draw(Fate::Never, "never kept", kTransparent, {withAlpha(theme.evicted, fade), 1, {}});
    draw(Fate::Sometimes, "sometimes kept", withAlpha(theme.text3, fade), {});
    draw(Fate::Always, "always kept", withAlpha(theme.kept, fade), {});
}

RingedMark ringedMark(const KeepProbabilityData& data, const PlotFrame& frame, TokenIndex token, const Theme& theme) {
    const auto i = static_cast<std::size_t>(token);
    RingedMark mark{token, frame.toPixels(token + 0.5, shareOf(data, i))};
    const Fate fate = fateOf(data, i);
    mark.fill = fate == Fate::Always ? theme.kept : fate == Fate::Sometimes ? theme.text3 : kTransparent;
    mark.stroke = fate == Fate::Never ? Stroke{theme.evicted, 1.2, {}} : Stroke{};
    return mark;
}

void drawFocus(SceneBuilder& builder, const KeepProbabilityData& data, const PlotFrame& frame, const ViewInput& input,
               const Theme& theme) {
    std::vector<RingedMark> selected;
    for (const TokenIndex token : input.focus.selected)
        if (token < data.visible) selected.push_back(ringedMark(data, frame, token, theme));
    drawRingedMarks(builder, selected, theme);
    const TokenIndex hovered = input.focus.hovered;
    if (hovered < 0 || hovered >= data.visible) return;
    drawHoveredMark(builder, ringedMark(data, frame, hovered, theme), theme);
}

/// The running mean as a line with at most two points per pixel, and the mean share as a dashed one.
void drawMeans(SceneBuilder& builder, const KeepProbabilityData& data, const PlotFrame& frame, std::int64_t width,
               const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    const double share = expectedCount(data) / static_cast<double>(data.visible);
    drawAcross(builder, frame, share, {theme.text2, 1, {5, 3}});
    if (!data.drawsRandomNumbers) return;
    const std::vector<double> means = runningMean(data, width);
    const auto step = std::max<std::size_t>(1, means.size() / static_cast<std::size_t>(2 * frame.plot.width + 1));
    std::vector<Point> line;
    for (std::size_t i = 0; i < means.size(); i += step)
        line.push_back(frame.toPixels(static_cast<double>(i) + 0.5, means[i]));
    builder.polyline(std::move(line), {policyStyle(data.policyId, viewport.theme).colour, 1.6, {}});
}

std::vector<LegendEntry> legendOf(const KeepProbabilityData& data, std::int64_t width, const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    const Counts counts = countsOf(data);
    const Colour identity = policyStyle(data.policyId, viewport.theme).colour;
    std::vector<LegendEntry> legend = {
        areaEntry(fmt::format("{}, {} of {} seeds", letteredName(data), data.seeds(), data.seedsAsked), identity),
        {"always " + formatCount(counts.always), Marker::Circle, theme.kept, {}, 3},
        {"sometimes " + formatCount(counts.sometimes), Marker::Circle, theme.text3, {}, 3},
        ringEntry("never " + formatCount(counts.never), {theme.evicted, 1.2, {}})};
    if (!data.drawsRandomNumbers)
        legend.front().label =
            letteredName(data) + (data.replayed ? ", replayed: one drawing" : ", the same for every seed");
    else
        legend.push_back({width == 1 ? "each token" : fmt::format("mean of {} neighbours", width),
                          Marker::Square,
                          identity,
                          {},
                          3,
                          true});
    const double share = expectedCount(data) / static_cast<double>(data.visible);
    legend.push_back(lineEntry("kept on average " + formatPercent(share), {theme.text2, 1, {5, 3}}));
    if (strideOf(data) > 1) legend.push_back(wordsEntry(fmt::format("1 of {} tokens drawn", strideOf(data))));
    return legend;
}

/// Room beyond 0 and 1 for the rings of tokens there.
double ringMargin(const Viewport& viewport) {
    constexpr double kRing = 6, kAround = 70, kLeast = 0.06; // pixels: of a ring, above and below the plot
    return std::max(kLeast, kRing / (std::max(40.0, viewport.height - kAround) - 2 * kRing));
}

/// In how many seeds every one of the tokens is kept.
int seedsThatKeepAll(const KeepProbabilityData& data, const std::vector<TokenIndex>& tokens) {
    return static_cast<int>(std::ranges::count_if(
        data.lists, [&](const std::vector<TokenIndex>& list) { return std::ranges::includes(list, tokens); }));
}

/// "40.0", "1,234": a mean of counts.
std::string meanCount(double mean) { return mean < 1000 ? formatFixed(mean, 1) : formatCount(std::llround(mean)); }

class KeepProbabilityView final : public View {
public:
    KeepProbabilityView()
        : View({.id = "keep_probability",
                .name = "Keep probability",
                .summary = "How often the active pane's policy keeps each token over seeds",
                .paper = "BalanceKV B.1 and its uniform baseline; Compactor's drawings of the sketch",
                .group = ViewGroup::Kept,
                .data = "keep_probability",
                .waiting = "Running the first seed…",
                .needsPane = true},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = View::whyNoPicture(input, options); !why.empty()) return why;
        return dataAs<KeepProbabilityData>(input)->seeds() > 0 ? "" : card().waiting;
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const auto data = dataAs<KeepProbabilityData>(input);
        const Theme& theme = themeOf(viewport.theme);
        const auto n = static_cast<double>(data->visible);
        const double margin = ringMargin(viewport);
        const Viewport::Range range = viewport.range.value_or(Viewport::Range{0, n, -margin, 1 + margin});
        const std::int64_t width = options.integer("smooth");
        Chart chart(viewport, legendOf(*data, width, viewport),
                    {range.xMin, range.xMax, AxisScale::Position, "Token position (0-based)"},
                    {range.yMin, range.yMax, AxisScale::Linear, "Share of the seeds"});
        SceneBuilder builder = chart.builder(viewport);
        drawGrid(builder, chart.frame, theme);
        builder.pushClip(chart.frame.plot);
        drawMeans(builder, *data, chart.frame, width, viewport);
        drawTokens(builder, *data, chart.frame, input, theme);
        drawFocus(builder, *data, chart.frame, input, theme);
        builder.popClip();
        return finishChart(chart, input, viewport, true);
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<KeepProbabilityData>(input);
        const std::string list = formatCounted(std::llround(expectedCount(*data)), "token"); // of every seed, if used
        if (data->replayed)
            return fmt::format("{} replays recorded random numbers: one drawing, and its {}, for every seed",
                               data->policyName, list);
        if (!data->drawsRandomNumbers)
            return fmt::format("{} draws no random numbers: the same list of {} for every seed", data->policyName,
                               list);
        const Counts counts = countsOf(*data);
        if (counts.sometimes == 0)
            return fmt::format("{} keeps the same list of {} with each of {}{}", data->policyName, list,
                               formatCounted(data->seeds(), "seed"),
                               data->sketchIsExact ? ": its sketch is as wide as a key (k = d), so it is exact" : "");
        std::string text =
            fmt::format("Over {} {} keeps {} always, {} sometimes and {} never, {} of {} on average",
                        formatCounted(data->seeds(), "seed"), data->policyName, formatCounted(counts.always, "token"),
                        formatCount(counts.sometimes), formatCount(counts.never), meanCount(expectedCount(*data)),
                        formatCount(data->visible));
        if (const auto selected = beforeCut(input, input.focus.selected); !selected.empty())
            text += fmt::format("; the whole {} in {}",
                                input.focus.selectionName.empty() ? "selection" : input.focus.selectionName,
                                seedsThatKeepAll(*data, selected));
        return text;
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        const std::vector<std::string> columns = {"token", "text",          "seeds",      "kept",
                                                  "share", "interval from", "interval to"};
        const auto data = dataAs<KeepProbabilityData>(input);
        if (!data || data->seeds() == 0) return tableOf(columns, {});
        return tableOf(columns, data->visible, [data, input](std::int64_t row) {
            const auto i = static_cast<std::size_t>(row);
            const double share = shareOf(*data, i);
            const ShareInterval interval =
                data->drawsRandomNumbers ? wilsonInterval(data->times[i], data->seeds()) : ShareInterval{share, share};
            return tableRow(row, tokenText(input, static_cast<TokenIndex>(row)), data->seeds(), data->times[i],
                            fmt::format("{:.6f}", share), fmt::format("{:.6f}", interval.low),
                            fmt::format("{:.6f}", interval.high));
        });
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<KeepProbabilityData>(input);
        const PickId pick = pickAt(scene, at, 4);
        if (pick.kind != PickId::Kind::Token || pick.index >= data->visible) return {};
        const auto times = data->times[pick.index];
        PointFacts facts;
        facts.token = static_cast<TokenIndex>(pick.index);
        if (!data->drawsRandomNumbers) {
            facts.rows = {data->replayed ? std::pair("in the one drawing", times > 0 ? "kept" : "not kept")
                                         : std::pair("over seeds", times > 0 ? "always kept" : "never kept")};
            return facts;
        }
        const ShareInterval interval = wilsonInterval(times, data->seeds());
        facts.rows = {{"kept by", fmt::format("{} of {} seeds", times, data->seeds())},
                      {"95 % interval", formatFixed(interval.low, 2) + " to " + formatFixed(interval.high, 2)}};
        return facts;
    }
};

} // namespace

const View& keepProbabilityView() { return onlyOne<KeepProbabilityView>(); }

} // namespace kvscope
