// What a policy costs at every budget, or at every value of one of its parameters: one curve per pane. Budgets stand on the
// realised retention, so that nobody is compared at a budget that was not kept.
#include "views/curves/curves_view.h"

#include "views/chart.h"
#include "views/curves/curves_data.h"
#include "views/explanations.h"
#include "views/parameter_option.h"
#include "views/view_facts.h"
#include "views/view_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

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
        parameterOption("vary", "Vary", "A number among the policies' parameters that runs along the curves, each pane at its own budget, as id or id=v1,v2; empty: the budget.",
                        "KeyDiff Tables 9, 10, 12, 13; BalanceKV Fig. 3; Compactor 3.3", kNumberUnit),
        choiceOption("against", "Against", "The horizontal axis while the budget varies.", source,
                     {{"retention", "Retention", "realised share of tokens kept"}, {"bytes", "Bytes", "stored keys and values of the layer"}}),
        choiceOption("scale", "Scale", "Of both axes.", source, {{"log", "Logarithmic", ""}, {"linear", "Linear", ""}})});
}

class CurvesView final : public View {
public:
    CurvesView()
        : View({.id = "curves",
                .name = "Budget curves",
                .summary = "A measure against the budget or against a parameter, for all panes",
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

bool variesBudget(const CurvesData& data) {
    return data.parameter.empty();
}

double xOf(const CurvePoint& point, const ParameterValues& options) {
    if (!point.setting.empty())
        return point.asked;
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
            if (variesBudget(data) || !point.setting.empty())
                x.include(xOf(point, options));
            y.include(point.low);
            y.include(point.high);
        }
    if (x.low > x.high) // no pane has got to its first value
        x = {0, 1};
    const bool logarithmic = options.choice("scale") == "log";
    const bool mass = data.measure == "retained_mass";
    const char* budget = options.choice("against") == "bytes" ? "KiB stored in the layer" : "Kept, % of the tokens before the cut";
    return Chart(viewport, axisOver(x, logarithmic, variesBudget(data) ? budget : data.title),
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

/// A policy without the parameter is the same at each of its values.
bool isLevel(const CurvesData& data, const Curve& curve) {
    return !variesBudget(data) && !curve.points.empty() && curve.points.front().setting.empty();
}

void drawLevel(SceneBuilder& builder, const PlotFrame& frame, const CurvePoint& point, const PolicyStyle& style) {
    const auto at = [&](double value) { return frame.toPixels(frame.x.low, value).y; };
    if (point.seeds > 1)
        builder.rectangle({frame.plot.x, at(point.high), frame.plot.width, at(point.low) - at(point.high)}, withAlpha(style.colour, 0.18));
    builder.line({frame.plot.x, at(point.mean)}, {frame.plot.right(), at(point.mean)}, {style.colour, 1.6, {1, 3}});
}

constexpr std::int64_t kMostPoints = 4096; // of a curve, for pick ids

void drawCurve(SceneBuilder& builder, const PlotFrame& frame, const CurvesData& data, std::size_t index, const ParameterValues& options,
               const PolicyStyle& style, const std::vector<double>& dash) {
    const Curve& curve = data.curves[index];
    if (isLevel(data, curve))
        return drawLevel(builder, frame, curve.points.front(), style);
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

/// Where the active pane stands on the axis; nothing where it has no place there.
std::optional<double> presentPlace(const CurvesData& data, const ViewInput& input, const ParameterValues& options) {
    const PaneData* pane = activePane(input);
    if (!pane || !pane->result)
        return {};
    const RunResult& result = *pane->result;
    if (variesBudget(data) && options.choice("against") == "bytes")
        return {};
    if (variesBudget(data))
        return 100 * result.selection.heads[static_cast<std::size_t>(input.kvHead.value)].attendedTokens() / static_cast<double>(result.visible);
    const ParameterValues& values = result.request.policy.values;
    return !result.request.recorded && values.has(data.parameter) ? std::optional(values.real(data.parameter)) : std::nullopt;
}

/// A hairline there.
void drawPresent(SceneBuilder& builder, const PlotFrame& frame, std::optional<double> place, const Theme& theme) {
    if (!place)
        return;
    const double x = frame.toPixels(*place, frame.y.low).x;
    if (x > frame.plot.x && x < frame.plot.right())
        builder.line({x, frame.plot.y}, {x, frame.plot.bottom()}, {theme.ink, 1, {4, 3}});
}

std::string legendNote(const CurvesData& data, const Curve& curve) {
    std::string note;
    if (isLevel(data, curve))
        note = fmt::format(" (has no {})", data.parameter);
    else if (!curve.error.empty())
        note = " (incomplete)";
    return curve.simulated ? note + " (simulated)" : note;
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
    drawPresent(builder, chart.frame, presentPlace(*data, input, options), theme);
    std::vector<LegendEntry> legend;
    for (std::size_t i = 0; i < data->curves.size(); ++i) {
        const Curve& curve = data->curves[i];
        const PolicyStyle style = policyStyle(curve.policyId, viewport.theme);
        drawCurve(builder, chart.frame, *data, i, options, style, dashOf(*data, i, style));
        legend.push_back({std::string(1, curve.letter) + " " + curve.policyName + legendNote(*data, curve), style.marker, style.colour, {}, 3});
    }
    builder.popClip();
    finishChart(chart, legend, input, viewport, false);
    return std::move(chart.scene);
}

/// The point of a curve for the same budget or value; a level has it everywhere. Null: it was refused there.
const CurvePoint* pointFor(const CurvesData& data, const Curve& curve, double asked) {
    if (isLevel(data, curve))
        return &curve.points.front();
    const auto found = std::find_if(curve.points.begin(), curve.points.end(), [&](const CurvePoint& p) { return p.asked == asked; });
    return found == curve.points.end() ? nullptr : &*found;
}

/// Who wins how many of the budgets or values that all curves share.
struct Contest {
    std::vector<int> wins; ///< per curve
    int shared = 0;
};

Contest contestOf(const CurvesData& data) {
    Contest contest{std::vector<int>(data.curves.size(), 0), 0};
    std::vector<std::size_t> runners;
    const Curve* longest = nullptr;
    for (std::size_t i = 0; i < data.curves.size(); ++i) {
        const Curve& curve = data.curves[i];
        if (curve.points.size() > 1 || isLevel(data, curve))
            runners.push_back(i);
        if (curve.points.size() > 1 && (!longest || curve.points.size() > longest->points.size()))
            longest = &curve;
    }
    const bool mass = data.measure == "retained_mass";
    for (std::size_t p = 0; longest && p < longest->points.size(); ++p) {
        std::size_t best = runners.front();
        bool all = true;
        for (const std::size_t i : runners) {
            const CurvePoint* mine = pointFor(data, data.curves[i], longest->points[p].asked);
            const CurvePoint* leader = pointFor(data, data.curves[best], longest->points[p].asked);
            all = all && mine;
            if (mine && leader && (mass ? mine->mean > leader->mean : mine->mean < leader->mean))
                best = i;
        }
        contest.shared += all;
        contest.wins[best] += all;
    }
    return contest;
}

std::string CurvesView::finding(const ViewInput& input, const ParameterValues&) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return why;
    const auto data = dataAs<CurvesData>(input);
    const Contest contest = contestOf(*data);
    if (contest.shared == 0)
        return variesBudget(*data) ? "One budget each: curves need policies that take a budget" : "No two values of " + data->parameter + " have been run yet";
    const auto most = static_cast<std::size_t>(std::max_element(contest.wins.begin(), contest.wins.end()) - contest.wins.begin());
    return fmt::format("{} has the {} at {} of {} {} in {}", data->curves[most].policyName,
                       data->measure == "retained_mass" ? "largest retained mass" : "smallest output error", contest.wins[most], contest.shared,
                       variesBudget(*data) ? "budgets" : "values of " + data->parameter, data->where);
}

/// What a click on the point gives to its pane; nothing where the pane has changed since, or takes no such thing.
std::optional<Adoption> adoptionOf(const ViewInput& input, const CurvesData& data, const Curve& curve, const CurvePoint& point) {
    const auto pane = std::find_if(input.panes.begin(), input.panes.end(), [&](const PaneData& p) { return p.letter == curve.letter; });
    const bool recorded = pane != input.panes.end() && pane->result && pane->result->request.recorded;
    if (pane == input.panes.end() || recorded || pane->policyId != curve.policyId)
        return {};
    const int index = static_cast<int>(pane - input.panes.begin());
    if (!point.setting.empty())
        return Adoption{index, {{data.parameter, point.setting}}, {}};
    if (!variesBudget(data) || !policyById(curve.policyId).card().usesBudget)
        return {};
    return Adoption{index, {}, Budget{Budget::Unit::Fraction, point.asked}};
}

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
    facts.rows = {{"policy", fmt::format("{} {}", curve.letter, curve.policyName)}};
    if (!point.setting.empty())
        facts.rows.emplace_back(data->parameter, point.setting);
    facts.rows.emplace_back("kept", fmt::format("{} %", formatFixed(100 * point.retention, 1)));
    facts.rows.emplace_back(data->measure == "retained_mass" ? "retained mass" : "output error", formatShort(point.mean));
    if (point.seeds > 1)
        facts.rows.emplace_back(fmt::format("over {} seeds", point.seeds), fmt::format("{} to {}", formatShort(point.low), formatShort(point.high)));
    facts.adoption = adoptionOf(input, *data, curve, point);
    if (facts.adoption)
        facts.rows.emplace_back("click", fmt::format("gives pane {} this {}", curve.letter, variesBudget(*data) ? "budget" : data->parameter));
    return facts;
}

ViewTable CurvesView::table(const ViewInput& input, const ParameterValues&) const {
    std::vector<std::vector<std::string>> rows;
    if (const auto data = dataAs<CurvesData>(input))
        for (const Curve& curve : data->curves)
            for (const CurvePoint& p : curve.points)
                rows.push_back({std::string(1, curve.letter), curve.policyName, curve.variant, p.setting.empty() ? "" : data->parameter,
                                p.setting.empty() ? fmt::format("{}", p.asked) : p.setting,
                                fmt::format("{:.6f}", p.retention), fmt::format("{:.0f}", p.bytes), fmt::format("{:.9g}", p.mean),
                                fmt::format("{:.9g}", p.low), fmt::format("{:.9g}", p.high), std::to_string(p.seeds),
                                curve.simulated ? "yes" : "no"});
    return tableOf({"pane", "policy", "variant", "parameter", "asked", "retention", "bytes", "mean", "lowest", "highest", "seeds", "simulated"},
                   std::move(rows));
}

} // namespace

const View& curvesView() {
    static const CurvesView view;
    return view;
}

} // namespace kvscope
