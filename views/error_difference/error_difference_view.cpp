// Two panes query by query: where one is better than the other, in the winner's colour.
#include "core/metrics/fidelity.h"
#include "core/parameters/parameter_rows.h"
#include "core/run/run.h"
#include "views/common/chart.h"
#include "views/common/pane_identity.h"
#include "views/common/value_range.h"
#include "views/common/view_facts.h"
#include "views/common/view_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope {

namespace {

void checkRange(std::string_view text) {
    static constexpr std::array<std::string_view, 2> kMeasures = {"output_error", "retained_mass"};
    checkValueRange(text, kMeasures, "a difference");
}

ParameterTable makeOptions() {
    constexpr const char* source = "BalanceKV B.1, per query";
    return {
        paneOption("above", "Above", 'A', Stage::Select, "The pane whose advantage points up.", source),
        paneOption("below", "Below", 'B', Stage::Select, "The pane whose advantage points down.", source),
        choiceRow("measure", "Measure",
                  {{"output_error", "Output error", "relative, smaller is better"},
                   {"retained_mass", "Retained mass",
                    "share of the attention on kept tokens and on those after the cut, larger is better"}},
                  Stage::Select, "What is compared.", "BalanceKV B.1"),
        choiceRow("heads", "Heads",
                  {{"one", "The query head", "as chosen in the bar above"},
                   {"mean", "Mean of the group", "over the query heads that read this KV head"}},
                  Stage::Select, "Which query heads are looked at.", "BalanceKV B.1"),
        choiceRow("shown", "Shown",
                  {{"most", "Most queries", "a few that lie far beyond the others run out of the picture, with a mark"},
                   {"all", "All", "up to the largest"}},
                  Stage::Select, "Where the vertical axis ends.", "this program's"),
        axisRangeOption(source, checkRange)};
}

const PaneData* paneOf(const ViewInput& input, const std::string& letter) {
    const auto at = std::ranges::find(input.panes, letter[0], &PaneData::letter);
    return at == input.panes.end() ? nullptr : &*at;
}

/// Both panes on their common evaluation queries.
struct Comparison {
    const PaneData* above = nullptr;
    const PaneData* below = nullptr;
    TokenIndex firstQuery = 0;
    bool seenQueries = false;
    std::vector<double> ofAbove, ofBelow; ///< NaN where skipped
    std::vector<double> advantage;        ///< of the first pane; positive where it is better
    std::string heads;

    double mean() const { return meanOfNumbers(advantage); }
    std::int64_t compared() const {
        return std::ranges::count_if(advantage, [](double a) { return !std::isnan(a); });
    }
    std::int64_t wins(bool first) const {
        return std::ranges::count_if(advantage, [&](double a) { return first ? a > 0 : a < 0; });
    }
};

/// Mean over the chosen query heads of a pane's number for one query.
double valueAt(const PaneData& pane, const std::vector<std::size_t>& heads, bool mass, TokenIndex query) {
    const Fidelity& fidelity = *pane.result->fidelity;
    const HostTensor& all = mass ? fidelity.retainedMass : fidelity.outputError;
    std::vector<double> values;
    for (const std::size_t head : heads)
        values.push_back(static_cast<double>(all.data[head * static_cast<std::size_t>(fidelity.queryCount) +
                                                      static_cast<std::size_t>(query - fidelity.firstQuery)]));
    return meanOfNumbers(values);
}

Comparison compare(const ViewInput& input, const ParameterValues& options) {
    Comparison c;
    c.above = paneOf(input, options.choice("above"));
    c.below = paneOf(input, options.choice("below"));
    const bool mass = options.choice("measure") == "retained_mass", one = options.choice("heads") == "one";
    const auto& gqaGroupOf = input.capture->info().layerInfo(input.layer).gqaGroupOf;
    std::vector<std::size_t> heads;
    for (std::size_t q = 0; q < gqaGroupOf.size(); ++q)
        if (one ? std::cmp_equal(q, input.queryHead.value) : gqaGroupOf[q] == input.kvHead.value) heads.push_back(q);
    const bool isRun = heads.back() - heads.front() + 1 == heads.size();
    c.heads = heads.size() == 1 ? fmt::format("query head {}", heads.front())
              : isRun           ? fmt::format("mean of query heads {}–{}", heads.front(), heads.back())
                                : fmt::format("mean of query heads {}", fmt::join(heads, ", "));
    const Fidelity &a = *c.above->result->fidelity, &b = *c.below->result->fidelity;
    c.seenQueries = a.seenQueries || b.seenQueries;
    c.firstQuery = std::max(a.firstQuery, b.firstQuery);
    const auto end = std::min(a.firstQuery + a.queryCount, b.firstQuery + b.queryCount);
    for (TokenIndex query = c.firstQuery; query < end; ++query) {
        c.ofAbove.push_back(valueAt(*c.above, heads, mass, query));
        c.ofBelow.push_back(valueAt(*c.below, heads, mass, query));
        c.advantage.push_back(mass ? c.ofAbove.back() - c.ofBelow.back() : c.ofBelow.back() - c.ofAbove.back());
    }
    return c;
}

constexpr double kHalfBar = 0.5; // a query's bar reaches so far to both sides of its position, where a tick stands

void drawBars(SceneBuilder& builder, const ViewInput& input, const Comparison& c, const PlotFrame& frame,
              const Viewport& viewport) {
    const double pitch = std::abs(frame.toPixels(c.firstQuery + 1, 0).x - frame.toPixels(c.firstQuery, 0).x);
    const double zero = frame.toPixels(c.firstQuery, 0).y;
    const auto perPixel = static_cast<std::size_t>(std::max(1.0, std::ceil(1 / std::max(pitch, 1e-9))));
    for (std::size_t i = 0; i < c.advantage.size(); i += perPixel) {
        double high = 0, low = 0;
        for (std::size_t j = i; j < std::min(c.advantage.size(), i + perPixel); ++j)
            if (!std::isnan(c.advantage[j])) high = std::max(high, c.advantage[j]), low = std::min(low, c.advantage[j]);
        const double gap = pitch > 3 ? 1 : 0;
        const double left =
            frame.toPixels(static_cast<double>(c.firstQuery) + static_cast<double>(i) - kHalfBar, 0).x + gap / 2;
        const double width = std::max(1.0, pitch * static_cast<double>(perPixel) - gap);
        for (const bool above : {true, false}) {
            const double tip = frame.toPixels(0, above ? high : low).y;
            const PaneIdentity identity = identityOf(input, above ? *c.above : *c.below, viewport.theme);
            const Box bar{left, std::min(tip, zero), width, std::abs(tip - zero)};
            if (above ? high <= 0 : low >= 0) continue;
            if (width > 3)
                identity.drawArea(builder, bar);
            else
                builder.rectangle(bar, identity.areaFill());
        }
    }
}

Stroke meanStroke(const Theme& theme) { return {theme.ink, 1, {5, 3}}; }

/// "mean −0.116"; positive: the pane above is better on average.
std::string meanWords(const Comparison& c) {
    constexpr double kLeast = 5e-4; // three decimals would be zeros
    const double mean = c.mean();
    return fmt::format("mean {}{}", mean > 0 ? "+" : "",
                       mean == 0 || std::abs(mean) >= kLeast ? formatFixed(mean, 3) : formatShort(mean));
}

std::vector<LegendEntry> legendOf(const ViewInput& input, const Comparison& c, ThemeId theme) {
    const auto entry = [&](const PaneData& pane, bool above) {
        return identityOf(input, pane, theme)
            .legend(fmt::format("{} better: {}", letteredName(pane), formatCounted(c.wins(above), "query")));
    };
    std::vector<LegendEntry> legend = {entry(*c.above, true), entry(*c.below, false)};
    legend.push_back(lineEntry(meanWords(c), meanStroke(themeOf(theme))));
    if (c.seenQueries) legend.push_back(wordsEntry("seen queries"));
    return legend;
}

/// End of the axis. Up to a tenth of the queries may lie beyond it, so that they do not flatten the others.
double reachOf(const Comparison& c, bool all) {
    constexpr double kFarBeyond = 3, kRoom = 1.5, kAlike = 1e-4; // below kAlike of the largest: no difference
    std::vector<double> sizes;
    for (const double advantage : c.advantage)
        if (!std::isnan(advantage)) sizes.push_back(std::abs(advantage));
    std::ranges::sort(sizes);
    const double largest = sizes.empty() ? 0 : sizes.back(),
                 most = sizes.empty() ? 0 : sizes[(sizes.size() - 1) * 9 / 10];
    return std::max(1e-6, all || most <= kAlike * largest || largest <= kFarBeyond * most ? largest : kRoom * most);
}

/// The values at the ends of the axis: those chosen, which other pictures may share, else as far up as down.
ValueRange axisOf(const Comparison& c, const ParameterValues& options) {
    const double reach = 1.08 * reachOf(c, options.choice("shown") == "all");
    const ValueRange chosen = ValueRange::parse(options.text(kValueRangeOption));
    const double low = chosen.low.value_or(-reach), high = chosen.high.value_or(reach);
    const std::string& measure = options.choice("measure");
    return chosen.applies(measure) && low < high ? ValueRange{low, high, measure} : ValueRange{-reach, reach, measure};
}

/// Triangles at the edge for queries beyond it. Returns their number.
std::int64_t drawBeyond(SceneBuilder& builder, const Comparison& c, const PlotFrame& frame, const Theme& theme) {
    constexpr double kHalf = 4;
    std::int64_t beyond = 0;
    for (std::size_t i = 0; i < c.advantage.size(); ++i) {
        const double advantage = c.advantage[i], at = static_cast<double>(c.firstQuery) + static_cast<double>(i);
        if (std::isnan(advantage) || (advantage <= frame.y.high && advantage >= frame.y.low) || at < frame.x.low ||
            at > frame.x.high)
            continue;
        ++beyond;
        const double x = frame.toPixels(at, 0).x, up = advantage > 0 ? 1 : -1;
        const double tip = advantage > 0 ? frame.plot.y + 1 : frame.plot.bottom() - 1;
        builder.polygon({{x - kHalf, tip + up * 7}, {x + kHalf, tip + up * 7}, {x, tip}}, theme.ink,
                        {theme.casing, 1, {}});
    }
    return beyond;
}

/// Writes their number and the extreme values, in the right corner on the side where the mean does not lie.
void writeBeyond(SceneBuilder& builder, const Comparison& c, const PlotFrame& frame, std::int64_t beyond,
                 const Theme& theme) {
    if (beyond == 0) return;
    double low = 0, high = 0;
    for (const double advantage : c.advantage)
        if (!std::isnan(advantage)) low = std::min(low, advantage), high = std::max(high, advantage);
    const bool isBelow = low < frame.y.low, isAbove = frame.y.high < high;
    const std::string ends = !isBelow  ? fmt::format("up to {}", formatShort(high))
                             : isAbove ? fmt::format("from {} to {}", formatShort(low), formatShort(high))
                                       : fmt::format("down to {}", formatShort(low));
    const TextStyle style{FontFace::Interface, 11};
    const std::string marks = std::string(isAbove ? "▲" : "") + (isBelow ? "▼" : "");
    const std::string words =
        builder.elide(fmt::format("{} {} beyond the axis, {}", marks, formatCounted(beyond, "query"), ends), style,
                      frame.plot.width - 16);
    builder.labelOnCanvas({frame.plot.right() - 6, c.mean() > 0 ? frame.plot.bottom() - 12 : frame.plot.y + 12}, words,
                          style, theme.text2, theme, HorizontalAlign::Right);
}

class ErrorDifferenceView final : public View {
public:
    ErrorDifferenceView()
        : View({.id = "error_difference",
                .name = "Error per query",
                .summary = "Which of two panes serves each evaluation query better",
                .paper = "BalanceKV B.1, before the mean is taken",
                .group = ViewGroup::Cost,
                .place = ViewPlace::BesideRow},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        if (!input.capture) return kNoCapture;
        if (options.choice("above") == options.choice("below"))
            return "A pane does not differ from itself: choose two panes in the view's options.";
        for (const char* side : {"above", "below"}) {
            const PaneData* pane = paneOf(input, options.choice(side));
            if (!pane)
                return fmt::format("There is no pane {}: add a pane, or choose another in the view's options.",
                                   options.choice(side));
            if (const std::string why = whyEmpty(input, pane); !why.empty()) return why;
            if (!pane->result->fidelity)
                return pane->computing ? "Measuring the selections…"
                                       : "The layer holds no queries after the cut: capture queries" +
                                             (input.capture->info().layerInfo(input.layer).queryCount > 0
                                                  ? std::string(", or choose an earlier cut.")
                                                  : std::string("."));
        }
        const Comparison c = compare(input, options);
        if (c.advantage.empty()) return "No query evaluates both panes: give them the same cut.";
        return c.compared() == 0 ? "Every query is skipped: its exact output is all but zero, or a pane keeps nothing "
                                   "before it. Choose another head or budget."
                                 : "";
    }

    std::optional<ValueRange> valueRange(const ViewInput& input, const ParameterValues& options) const override {
        if (!whyNoPicture(input, options).empty()) return std::nullopt;
        return axisOf(compare(input, options), options);
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const Comparison c = compare(input, options);
        const Theme& theme = themeOf(viewport.theme);
        const ValueRange values = axisOf(c, options);
        const double first = static_cast<double>(c.firstQuery) - kHalfBar,
                     end = first + static_cast<double>(std::max<std::size_t>(1, c.advantage.size()));
        const Viewport::Range range = viewport.range.value_or(Viewport::Range{first, end, *values.low, *values.high});
        const std::string less = options.choice("measure") == "retained_mass"
                                     ? fmt::format("Mass, {} − {}", c.above->letter, c.below->letter)
                                     : fmt::format("Error, {} − {}", c.below->letter, c.above->letter);
        Chart chart(viewport, legendOf(input, c, viewport.theme),
                    {range.xMin, range.xMax, AxisScale::Position, fmt::format("Query position (0-based), {}", c.heads)},
                    {range.yMin, range.yMax, AxisScale::Linear, less});
        SceneBuilder builder = chart.builder(viewport);
        drawGrid(builder, chart.frame, theme);
        builder.pushClip(chart.frame.plot);
        drawBars(builder, input, c, chart.frame, viewport);
        drawAcross(builder, chart.frame, 0, {theme.axis, 1, {}});
        for (const Stroke& stroke : {Stroke{theme.casing, 1, {}}, meanStroke(theme)}) // visible on bars of every colour
            drawAcross(builder, chart.frame, c.mean(), stroke);
        builder.rectangle(chart.frame.plot, kTransparent, {}, 0, {PickId::Kind::Cell, 0}); // the whole plot is pickable
        const std::int64_t beyond = drawBeyond(builder, c, chart.frame, theme);
        writeBeyond(builder, c, chart.frame, beyond, theme);
        builder.popClip();
        return finishChart(chart, input, viewport, true);
    }

    std::string conclude(const ViewInput& input, const ParameterValues& options) const override {
        const Comparison c = compare(input, options);
        const bool first = c.wins(true) >= c.wins(false);
        const PaneData& winner = first ? *c.above : *c.below;
        const std::int64_t left = std::ssize(c.advantage) - c.compared();
        const std::string skipped = left > 0 ? fmt::format("; {} skipped", formatCounted(left, "query")) : "";
        if (c.wins(true) == 0 && c.wins(false) == 0)
            return fmt::format("{} and {} serve every query alike{}", c.above->letter, c.below->letter, skipped);
        const bool mass = options.choice("measure") == "retained_mass";
        const bool onAverage = first ? c.mean() > 0 : c.mean() < 0;
        return fmt::format("{} is better on {} of {} of {}, {} {} {} on average{}", letteredName(winner),
                           formatCount(c.wins(first)), formatCounted(c.compared(), "query"), c.heads,
                           onAverage ? "by" : "yet worse by", formatShort(std::abs(c.mean())),
                           mass ? "of mass" : "of error", skipped);
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        std::vector<std::vector<std::string>> rows;
        std::vector<std::string> columns = {"query", "text", "first", "second", "advantage of the first"};
        if (whyNoPicture(input, options).empty()) {
            const Comparison c = compare(input, options);
            columns[2] = fmt::format("{} {}", c.above->letter, paneTitle(*c.above));
            columns[3] = fmt::format("{} {}", c.below->letter, paneTitle(*c.below));
            for (std::size_t i = 0; i < c.advantage.size(); ++i) {
                const auto query = static_cast<TokenIndex>(c.firstQuery + static_cast<TokenIndex>(i));
                rows.push_back(tableRow(query, tokenText(input, query), c.ofAbove[i], c.ofBelow[i], c.advantage[i]));
            }
        }
        return tableOf(std::move(columns), std::move(rows));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                       Point at) const override {
        if (!scene.plot.contains(at)) return {};
        const Comparison c = compare(input, options);
        const double x = scene.dataAt(at).x;
        const auto i = static_cast<std::int64_t>(std::floor(x + kHalfBar)) - c.firstQuery;
        if (i < 0 || i >= std::ssize(c.advantage)) return {};
        const auto query = static_cast<TokenIndex>(c.firstQuery + i);
        const auto value = [](double v) { return std::isnan(v) ? std::string("skipped") : formatShort(v); };
        PointFacts facts;
        facts.token = query;
        facts.rows = {{"query", quotedToken(input, query)},
                      {letteredName(*c.above), value(c.ofAbove[i])},
                      {letteredName(*c.below), value(c.ofBelow[i])}};
        return facts;
    }
};

} // namespace

const View& errorDifferenceView() { return onlyOne<ErrorDifferenceView>(); }

} // namespace kvscope
