// What a policy costs at every budget: one curve per pane, on the realised retention, so that nobody is compared at a
// budget that was not kept.
#include "views/curves/curves_view.h"

#include "views/chart.h"
#include "views/curves/curves_data.h"
#include "views/explanations.h"
#include "views/view_facts.h"
#include "views/view_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

std::shared_ptr<const ParameterTable> makeOptions() {
    constexpr const char* source = "BalanceKV Fig. 1, KeyDiff Tables 9 to 13";
    return std::make_shared<const ParameterTable>(ParameterTable{
        choiceOption("measure", "Measure", "What the curves show.", source,
                     {{"output_error", "Output error", "relative, mean over the judged queries (BalanceKV B.1)"},
                      {"retained_mass", "Retained mass", "share of the attention that the kept tokens carry"}},
                     Stage::Features),
        choiceOption("heads", "Heads", "Over which query heads the mean runs.", source,
                     {{"kv_head", "This KV head", "the query heads that read it"}, {"layer", "The layer", "all query heads"}},
                     Stage::Features),
        integerOption("seeds", "Seeds", "Runs of a policy that draws random numbers; the band shows their extremes.", source,
                      1, 10, 5, Stage::Features),
        choiceOption("against", "Against", "The horizontal axis.", source,
                     {{"retention", "Retention", "realised share of tokens kept"}, {"bytes", "Bytes", "stored keys and values of the layer"}}),
        choiceOption("scale", "Scale", "Of both axes.", source, {{"log", "Logarithmic", ""}, {"linear", "Linear", ""}})});
}

class CurvesView final : public View {
public:
    CurvesView()
        : View({.id = "curves",
                .name = "Budget curves",
                .summary = "A measure against the budget, for all panes",
                .paper = "BalanceKV Fig. 1; KeyDiff Tables 9, 10, 12",
                .help = std::string(viewExplanation("curves_view")),
                .options = makeOptions(),
                .data = "curves"}) {}

    Scene buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override;
    std::string finding(const ViewInput& input, const ParameterValues& options) const override;
    ViewTable table(const ViewInput& input, const ParameterValues& options) const override;
    PointFacts factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const override;
};

std::string whyNoPicture(const ViewInput& input) {
    constexpr const char* running = "Running the policies through the budgets…";
    if (const std::string why = whyNoData<CurvesData>(input, running); !why.empty())
        return why;
    const auto data = dataAs<CurvesData>(input);
    if (std::any_of(data->curves.begin(), data->curves.end(), [](const Curve& c) { return !c.points.empty(); }))
        return "";
    return data->curves.empty() || data->curves.front().error.empty() ? running : data->curves.front().error;
}

double xOf(const CurvePoint& point, const ParameterValues& options) {
    return options.choice("against") == "bytes" ? point.bytes / 1024 : 100 * point.retention;
}

struct Extent {
    double low = INFINITY, high = -INFINITY;
    void include(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
};

/// The axis over all values, with a margin; logarithmic where that is asked for and possible.
AxisSpec axisOver(Extent extent, bool logarithmic, std::string title) {
    if (logarithmic && extent.low > 0) {
        const double factor = std::pow(extent.high / extent.low, 0.06) * 1.02;
        return {extent.low / factor, extent.high * factor, AxisScale::Logarithmic, std::move(title)};
    }
    const double margin = std::max(0.05 * (extent.high - extent.low), 1e-9);
    return {std::max(0.0, extent.low - margin), extent.high + margin, AxisScale::Linear, std::move(title)};
}

Chart chartFor(const CurvesData& data, const ParameterValues& options, const Viewport& viewport) {
    Extent x, y;
    for (const Curve& curve : data.curves)
        for (const CurvePoint& point : curve.points) {
            x.include(xOf(point, options));
            y.include(point.low);
            y.include(point.high);
        }
    const bool logarithmic = options.choice("scale") == "log";
    const bool mass = data.measure == "retained_mass";
    return Chart(viewport,
                 axisOver(x, logarithmic,
                          options.choice("against") == "bytes" ? "KiB stored in the layer" : "Kept, % of the tokens before the cut"),
                 axisOver(y, logarithmic && !mass, mass ? "Retained attention mass" : "Relative output error"));
}

/// Of two panes with the same policy the second is dashed.
std::vector<double> dashOf(const CurvesData& data, std::size_t index, const PolicyStyle& style) {
    for (std::size_t earlier = 0; earlier < index; ++earlier)
        if (data.curves[earlier].policyId == data.curves[index].policyId)
            return {2, 2};
    return style.dash;
}

void drawBand(SceneBuilder& builder, const PlotFrame& frame, const Curve& curve, const ParameterValues& options, Colour colour) {
    if (curve.points.size() < 2 || curve.points.front().seeds < 2)
        return;
    std::vector<Point> outline;
    for (const CurvePoint& point : curve.points)
        outline.push_back(frame.toPixels(xOf(point, options), point.high));
    for (auto point = curve.points.rbegin(); point != curve.points.rend(); ++point)
        outline.push_back(frame.toPixels(xOf(*point, options), point->low));
    builder.polygon(std::move(outline), withAlpha(colour, 0.18));
}

constexpr std::int64_t kMostPoints = 4096; // of a curve, for pick ids

void drawCurve(SceneBuilder& builder, const PlotFrame& frame, const CurvesData& data, std::size_t index, const ParameterValues& options,
               const PolicyStyle& style, const std::vector<double>& dash) {
    const Curve& curve = data.curves[index];
    drawBand(builder, frame, curve, options, style.colour);
    auto points = std::make_shared<std::vector<Point>>();
    auto ids = std::make_shared<std::vector<std::int64_t>>();
    for (const CurvePoint& point : curve.points) {
        ids->push_back(static_cast<std::int64_t>(index) * kMostPoints + static_cast<std::int64_t>(points->size()));
        points->push_back(frame.toPixels(xOf(point, options), point.mean));
    }
    if (points->size() > 1)
        builder.polyline(*points, {style.colour, 1.6, dash});
    PointCloudItem marks;
    marks.points = points;
    marks.ids = ids;
    marks.pickKind = PickId::Kind::Node;
    marks.marker = style.marker;
    marks.radius = 3.2;
    marks.fill = style.colour;
    marks.name = std::string(1, curve.letter) + " " + curve.policyName;
    builder.points(std::move(marks));
}

/// A hairline where the active pane's budget stands.
void drawBudget(SceneBuilder& builder, const PlotFrame& frame, const ViewInput& input, const ParameterValues& options, const Theme& theme) {
    const auto active = static_cast<std::size_t>(input.activePane);
    if (options.choice("against") == "bytes" || active >= input.panes.size() || !input.panes[active].result)
        return;
    const RunResult& result = *input.panes[active].result;
    const double kept = result.selection.heads[static_cast<std::size_t>(input.kvHead.value)].attendedTokens();
    const double x = frame.toPixels(100 * kept / static_cast<double>(result.visible), frame.y.low).x;
    if (x > frame.plot.x && x < frame.plot.right())
        builder.line({x, frame.plot.y}, {x, frame.plot.bottom()}, {theme.ink, 1, {4, 3}});
}

Scene CurvesView::buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return emptyScene(why, viewport);
    const auto data = dataAs<CurvesData>(input);
    const Theme& theme = themeOf(viewport.theme);
    Chart chart = chartFor(*data, options, viewport);
    SceneBuilder builder = chart.builder(viewport);
    drawGrid(builder, chart.frame, theme);
    builder.pushClip(chart.frame.plot);
    drawBudget(builder, chart.frame, input, options, theme);
    std::vector<LegendEntry> legend;
    for (std::size_t i = 0; i < data->curves.size(); ++i) {
        const Curve& curve = data->curves[i];
        const PolicyStyle style = policyStyle(curve.policyId, viewport.theme);
        drawCurve(builder, chart.frame, *data, i, options, style, dashOf(*data, i, style));
        const std::string note = curve.simulated ? " (simulated)" : curve.error.empty() ? "" : " (incomplete)";
        legend.push_back({std::string(1, curve.letter) + " " + curve.policyName + note, style.marker, style.colour, {}, 3});
    }
    builder.popClip();
    finishChart(chart, legend, input, viewport, false);
    return std::move(chart.scene);
}

std::string CurvesView::finding(const ViewInput& input, const ParameterValues&) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return why;
    const auto data = dataAs<CurvesData>(input);
    // Who wins how many of the budgets that all curves with budgets share.
    std::size_t shared = SIZE_MAX;
    for (const Curve& curve : data->curves)
        if (curve.points.size() > 1)
            shared = std::min(shared, curve.points.size());
    if (shared == SIZE_MAX)
        return "One budget each: curves need policies that take a budget";
    const bool mass = data->measure == "retained_mass";
    std::vector<int> wins(data->curves.size(), 0);
    for (std::size_t p = 0; p < shared; ++p) {
        std::size_t best = data->curves.size();
        for (std::size_t i = 0; i < data->curves.size(); ++i) {
            if (data->curves[i].points.size() <= 1)
                continue;
            const double value = data->curves[i].points[p].mean;
            if (best == data->curves.size() || (mass ? value > data->curves[best].points[p].mean : value < data->curves[best].points[p].mean))
                best = i;
        }
        ++wins[best];
    }
    const auto most = static_cast<std::size_t>(std::max_element(wins.begin(), wins.end()) - wins.begin());
    return fmt::format("{} has the {} at {} of {} budgets in {}", data->curves[most].policyName,
                       mass ? "largest retained mass" : "smallest output error", wins[most], shared, data->where);
}

/// A point is a budget of one pane: a click gives it to that pane, unless its policy takes none.
PointFacts CurvesView::factsAt(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const {
    const auto data = dataAs<CurvesData>(input);
    const PickId pick = pickAt(scene, at, 4);
    if (!data || pick.kind != PickId::Kind::Node)
        return {};
    const auto index = static_cast<std::size_t>(pick.index / kMostPoints), place = static_cast<std::size_t>(pick.index % kMostPoints);
    if (index >= data->curves.size() || place >= data->curves[index].points.size())
        return {};
    const Curve& curve = data->curves[index];
    const CurvePoint& point = curve.points[place];
    PointFacts facts;
    facts.rows = {{"policy", fmt::format("{} {}", curve.letter, curve.policyName)},
                  {"kept", fmt::format("{} %", formatFixed(100 * point.retention, 1))},
                  {data->measure == "retained_mass" ? "retained mass" : "output error", formatShort(point.mean)}};
    if (point.seeds > 1)
        facts.rows.emplace_back(fmt::format("over {} seeds", point.seeds), fmt::format("{} to {}", formatShort(point.low), formatShort(point.high)));
    const auto pane = std::find_if(input.panes.begin(), input.panes.end(), [&](const PaneData& p) { return p.letter == curve.letter; });
    const bool recorded = pane != input.panes.end() && pane->result && pane->result->request.recorded;
    if (pane == input.panes.end() || recorded || pane->policyId != curve.policyId || !policyById(curve.policyId).card().usesBudget)
        return facts;
    facts.rows.emplace_back("click", fmt::format("gives pane {} this budget", curve.letter));
    facts.adoption = Adoption{static_cast<int>(pane - input.panes.begin()), {}, Budget{Budget::Unit::Fraction, point.asked}};
    return facts;
}

ViewTable CurvesView::table(const ViewInput& input, const ParameterValues&) const {
    std::vector<std::vector<std::string>> rows;
    if (const auto data = dataAs<CurvesData>(input))
        for (const Curve& curve : data->curves)
            for (const CurvePoint& p : curve.points)
                rows.push_back({std::string(1, curve.letter), curve.policyName, curve.variant, fmt::format("{}", p.asked),
                                fmt::format("{:.6f}", p.retention), fmt::format("{:.0f}", p.bytes), fmt::format("{:.9g}", p.mean),
                                fmt::format("{:.9g}", p.low), fmt::format("{:.9g}", p.high), std::to_string(p.seeds),
                                curve.simulated ? "yes" : "no"});
    return tableOf({"pane", "policy", "variant", "asked", "retention", "bytes", "mean", "lowest", "highest", "seeds", "simulated"},
                   std::move(rows));
}

} // namespace

const View& curvesView() {
    static const CurvesView view;
    return view;
}

} // namespace kvscope
