// Luck seen as luck: how often each token is kept when nothing but the seed changes.
#include "views/keep_probability/keep_probability_view.h"

#include "core/metrics/statistics.h"
#include "views/common/chart.h"
#include "views/common/token_marks.h"
#include "views/common/view_facts.h"
#include "views/common/view_options.h"
#include "views/explanations.h"
#include "views/keep_probability/keep_probability_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

constexpr std::int64_t kMostMarks = 20'000;

std::shared_ptr<const ParameterTable> makeOptions() {
    constexpr const char* source = "BalanceKV B.1 (10 seeds), Compactor (20 sketches)";
    ParameterSpec smooth = integerOption("smooth", "Running mean", "Neighbouring tokens in the running mean.",
                                         "the view's own", 1, 1025, 33);
    smooth.unit = "tokens";
    smooth.step = 2;
    return std::make_shared<const ParameterTable>(ParameterTable{
        integerOption("seeds", "Seeds", "Runs of the active pane's policy, from the present seed upwards.", source, 2,
                      200, 20, Stage::Features),
        smooth});
}

class KeepProbabilityView final : public View {
public:
    KeepProbabilityView()
        : View({.id = "keep_probability",
                .name = "Keep probability",
                .summary = "How often the active pane's policy keeps each token over seeds",
                .paper = "BalanceKV B.1 and its uniform baseline; Compactor's drawings of the sketch",
                .help = std::string(viewExplanation("keep_probability_view")),
                .options = makeOptions(),
                .data = "keep_probability"}) {}

    Scene buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override;
    std::string finding(const ViewInput& input, const ParameterValues& options) const override;
    ViewTable table(const ViewInput& input, const ParameterValues& options) const override;
    PointFacts factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                       Point at) const override;
};

std::string whyNoPicture(const ViewInput& input) {
    if (input.capture && input.panes.empty())
        return kNoPane;
    constexpr const char* running = "Running the first seed…";
    if (const std::string why = whyNoData<KeepProbabilityData>(input, running); !why.empty())
        return why;
    return dataAs<KeepProbabilityData>(input)->seeds() > 0 ? "" : running;
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

/// Centred running means; at the ends over what there is.
std::vector<double> runningMean(const KeepProbabilityData& data, std::int64_t width) {
    const std::int64_t n = std::ssize(data.times), half = width / 2;
    std::vector<double> sums(static_cast<std::size_t>(n) + 1, 0.0), means;
    for (std::int64_t i = 0; i < n; ++i)
        sums[static_cast<std::size_t>(i) + 1] =
            sums[static_cast<std::size_t>(i)] + shareOf(data, static_cast<std::size_t>(i));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t from = std::max<std::int64_t>(0, i - half), to = std::min(n, i + half + 1);
        means.push_back((sums[static_cast<std::size_t>(to)] - sums[static_cast<std::size_t>(from)]) /
                        static_cast<double>(to - from));
    }
    return means;
}

enum class Fate { Never, Sometimes, Always };

Fate fateOf(const KeepProbabilityData& data, std::size_t token) {
    return data.times[token] == 0 ? Fate::Never : data.times[token] == data.seeds() ? Fate::Always : Fate::Sometimes;
}

std::int64_t strideOf(const KeepProbabilityData& data) {
    return std::max<std::int64_t>(1, (data.visible + kMostMarks - 1) / kMostMarks);
}

PointCloudItem cloudOf(const KeepProbabilityData& data, const PlotFrame& frame, Fate fate) {
    auto points = std::make_shared<std::vector<Point>>();
    auto ids = std::make_shared<std::vector<std::int64_t>>();
    for (std::int64_t token = 0; token < data.visible; token += strideOf(data)) {
        const auto i = static_cast<std::size_t>(token);
        if (fateOf(data, i) != fate)
            continue;
        points->push_back(frame.toPixels(static_cast<double>(token) + 0.5, shareOf(data, i)));
        ids->push_back(token);
    }
    PointCloudItem cloud;
    cloud.points = std::move(points);
    cloud.ids = std::move(ids);
    cloud.pickKind = PickId::Kind::Token;
    cloud.radius = 1.9;
    return cloud;
}

void drawTokens(SceneBuilder& builder, const KeepProbabilityData& data, const PlotFrame& frame, const ViewInput& input,
                const Theme& theme) {
    const double fade = input.focus.brushing ? 0.25 : 1;
    PointCloudItem never = cloudOf(data, frame, Fate::Never);
    never.stroke = {withAlpha(theme.evicted, fade), 1, {}};
    never.name = "never kept";
    builder.points(std::move(never));
    PointCloudItem sometimes = cloudOf(data, frame, Fate::Sometimes);
    sometimes.fill = withAlpha(theme.text3, fade);
    sometimes.name = "sometimes kept";
    builder.points(std::move(sometimes));
    PointCloudItem always = cloudOf(data, frame, Fate::Always);
    always.fill = withAlpha(theme.kept, fade);
    always.name = "always kept";
    builder.points(std::move(always));
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
        if (token < data.visible)
            selected.push_back(ringedMark(data, frame, token, theme));
    drawRingedMarks(builder, selected, theme);
    const TokenIndex hovered = input.focus.hovered;
    if (hovered < 0 || hovered >= data.visible)
        return;
    drawHoveredMark(builder, ringedMark(data, frame, hovered, theme), theme);
}

/// The running mean as a line with at most two points per pixel, and the mean share as a dashed one.
void drawMeans(SceneBuilder& builder, const KeepProbabilityData& data, const PlotFrame& frame, std::int64_t width,
               const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    const double share = expectedCount(data) / static_cast<double>(data.visible);
    const double y = frame.toPixels(frame.x.low, share).y;
    builder.line({frame.plot.x, y}, {frame.plot.right(), y}, {theme.text2, 1, {5, 3}});
    if (!data.drawsRandomNumbers)
        return;
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
        {fmt::format("{} {}, {} of {} seeds", data.letter, data.policyName, data.seeds(), data.seedsAsked),
         Marker::Square,
         identity,
         {},
         4},
        {"always " + formatCount(counts.always), Marker::Circle, theme.kept, {}, 3},
        {"sometimes " + formatCount(counts.sometimes), Marker::Circle, theme.text3, {}, 3},
        {"never " + formatCount(counts.never), Marker::Circle, kTransparent, {theme.evicted, 1.2, {}}, 3}};
    if (!data.drawsRandomNumbers)
        legend.front().label = fmt::format("{} {}, the same for every seed", data.letter, data.policyName);
    else
        legend.push_back({fmt::format("mean of {} neighbours", width), Marker::Square, identity, {}, 3, true});
    legend.push_back({fmt::format("kept on average {} %",
                                  formatFixed(100 * expectedCount(data) / static_cast<double>(data.visible), 1)),
                      Marker::Circle,
                      kTransparent,
                      {theme.text2, 1, {5, 3}},
                      3,
                      true});
    if (strideOf(data) > 1)
        legend.push_back({fmt::format("1 of {} tokens drawn", strideOf(data)), Marker::Circle, kTransparent, {}, 0});
    return legend;
}

/// Beyond 0 and 1, so that the rings of tokens which lie there are whole.
double ringMargin(const Viewport& viewport) {
    constexpr double kRing = 6, kAround = 70, kLeast = 0.06; // pixels: of a ring, above and below the plot
    return std::max(kLeast, kRing / (std::max(40.0, viewport.height - kAround) - 2 * kRing));
}

Scene KeepProbabilityView::buildScene(const ViewInput& input, const ParameterValues& options,
                                      const Viewport& viewport) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return emptyScene(why, viewport);
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
    finishChart(chart, input, viewport, true);
    return std::move(chart.scene);
}

/// In how many seeds every one of the tokens is kept.
int seedsThatKeepAll(const KeepProbabilityData& data, const std::vector<TokenIndex>& tokens) {
    return static_cast<int>(
        std::count_if(data.lists.begin(), data.lists.end(), [&](const std::vector<TokenIndex>& list) {
            return std::includes(list.begin(), list.end(), tokens.begin(), tokens.end());
        }));
}

std::string KeepProbabilityView::finding(const ViewInput& input, const ParameterValues&) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return why;
    const auto data = dataAs<KeepProbabilityData>(input);
    const std::string kept = formatFixed(expectedCount(*data), data->drawsRandomNumbers ? 1 : 0);
    if (!data->drawsRandomNumbers)
        return fmt::format("{} draws no random numbers: the same list of {} tokens for every seed", data->policyName,
                           kept);
    const Counts counts = countsOf(*data);
    if (counts.sometimes == 0)
        return fmt::format("{} keeps the same list of {} tokens with each of {} seeds", data->policyName, kept,
                           data->seeds());
    std::string text =
        fmt::format("Over {} seeds {} keeps {} tokens always, {} sometimes and {} never, {} of {} on average",
                    data->seeds(), data->policyName, formatCount(counts.always), formatCount(counts.sometimes),
                    formatCount(counts.never), kept, formatCount(data->visible));
    if (const auto selected = beforeCut(input, input.focus.selected); !selected.empty())
        text += fmt::format("; the whole {} in {}",
                            input.focus.selectionName.empty() ? "selection" : input.focus.selectionName,
                            seedsThatKeepAll(*data, selected));
    return text;
}

PointFacts KeepProbabilityView::factsAt(const ViewInput& input, const ParameterValues&, const Scene& scene,
                                        Point at) const {
    const auto data = dataAs<KeepProbabilityData>(input);
    const PickId pick = pickAt(scene, at, 4);
    if (!data || pick.kind != PickId::Kind::Token || pick.index >= data->visible)
        return {};
    const auto times = data->times[static_cast<std::size_t>(pick.index)];
    PointFacts facts;
    facts.token = static_cast<TokenIndex>(pick.index);
    if (!data->drawsRandomNumbers) {
        facts.rows = {{"over seeds", times > 0 ? "always kept" : "never kept"}};
        return facts;
    }
    const ShareInterval interval = wilsonInterval(times, data->seeds());
    facts.rows = {{"kept by", fmt::format("{} of {} seeds", times, data->seeds())},
                  {"95 % interval", formatFixed(interval.low, 2) + " to " + formatFixed(interval.high, 2)}};
    return facts;
}

ViewTable KeepProbabilityView::table(const ViewInput& input, const ParameterValues&) const {
    ViewTable table;
    table.columns = {"token", "text", "seeds", "kept", "share", "interval from", "interval to"};
    const auto data = dataAs<KeepProbabilityData>(input);
    if (!data || data->seeds() == 0)
        return table;
    table.rowCount = data->visible;
    table.cell = [data, capture = input.capture](std::int64_t row, int column) -> std::string {
        const auto i = static_cast<std::size_t>(row);
        const ShareInterval interval = wilsonInterval(data->times[i], data->seeds());
        switch (column) {
        case 0:
            return std::to_string(row);
        case 1:
            return displayText(capture->tokens().textOf(static_cast<TokenIndex>(row)));
        case 2:
            return std::to_string(data->seeds());
        case 3:
            return std::to_string(data->times[i]);
        case 4:
            return fmt::format("{:.6f}", shareOf(*data, i));
        case 5:
            return fmt::format("{:.6f}", data->drawsRandomNumbers ? interval.low : shareOf(*data, i));
        default:
            return fmt::format("{:.6f}", data->drawsRandomNumbers ? interval.high : shareOf(*data, i));
        }
    };
    return table;
}

} // namespace

const View& keepProbabilityView() {
    static const KeepProbabilityView view;
    return view;
}

} // namespace kvscope
