// A measure at every budget, or at every value of a parameter: one curve per pane. Budgets are drawn at the realised
// retention.
#include "core/parameters/parameter_rows.h"
#include "core/policies/balance/balance_rounds.h"
#include "core/policies/policy.h"
#include "core/run/head_means.h"
#include "views/common/measure_options.h"
#include "views/common/view_facts.h"
#include "views/common/view_options.h"
#include "views/curves/curves_painter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace kvscope {

namespace {

void checkRange(std::string_view text) {
    static const std::vector<ParameterChoice> measures = measureChoices();
    checkValueRange(text, idsOf(measures), "a curve");
}

ParameterTable makeOptions() {
    constexpr const char* source = "BalanceKV Fig. 1, KeyDiff Tables 9 to 13";
    return {
        choiceRow("measure", "Measure", measureChoices(), Stage::Features, "What the curves show.", source),
        choiceRow(
            "heads", "Heads",
            {{"kv_head", "This KV head", "with the query heads that read it"}, {"layer", "The layer", "all heads"}},
            Stage::Features, "Over which heads the mean runs.", source),
        integerRow("seeds", "Seeds", "", "", {1, 10, 5}, Stage::Features,
                   "Runs of a policy that draws random numbers; the band shows their extremes.", source),
        textRow("vary", "Vary", "", Stage::Features,
                "A number among the policies' parameters that runs along the curves, each pane at its own "
                "budget, as id or id=v1,v2; empty: the budget; budget=0.1,0.3: at these shares.",
                "KeyDiff Tables 9, 10, 12, 13; BalanceKV Fig. 3; Compactor 3.4", nullptr, kNumberUnit),
        textRow("captures", "Further captures", "", Stage::Features,
                "FILE.h5;FILE.h5: the curves become means over these and the open one, each prompt a thin line; the "
                "same layer and KV head of each.",
                source, nullptr, kCaptureFilesUnit),
        choiceRow("against", "Against",
                  {{"retention", "Retention", "realised share of tokens kept"},
                   {"bytes", "Bytes", "stored keys and values of the layer"}},
                  Stage::Select, "The horizontal axis while the budget varies.", source),
        choiceRow("scale", "Scale", {{"log", "Logarithmic", ""}, {"linear", "Linear", ""}}, Stage::Select,
                  "Of both axes.", source),
        axisRangeOption(source, checkRange)};
}

/// The point of a curve for this budget or value; a level has one everywhere. Null: the curve has no point there.
const CurvePoint* pointFor(const CurvesData& data, const Curve& curve, double asked) {
    if (isLevel(data, curve)) return &curve.points.front();
    const auto found = std::ranges::find(curve.points, asked, &CurvePoint::asked);
    return found == curve.points.end() ? nullptr : &*found;
}

/// The policy's name, with the pane's letter where several panes run the same policy.
std::string nameOf(const CurvesData& data, const Curve& curve) {
    const auto same = std::ranges::count(data.curves, curve.policyId, &Curve::policyId);
    return same > 1 ? letteredName(curve) : curve.policyName;
}

/// How many of the shared budgets or values each curve wins.
struct Contest {
    std::vector<int> wins; ///< per curve: where it alone is best
    int shared = 0, ties = 0;
    std::size_t runners = 0; ///< curves that are compared
    std::string lonely = {}; ///< curves of one budget, which are not compared
};

Contest contestOf(const CurvesData& data) {
    Contest contest{.wins = std::vector<int>(data.curves.size(), 0)};
    std::vector<std::size_t> runners;
    const Curve* longest = nullptr;
    for (std::size_t i = 0; i < data.curves.size(); ++i) {
        const Curve& curve = data.curves[i];
        if (curve.points.size() > 1 || isLevel(data, curve))
            runners.push_back(i);
        else if (!curve.points.empty())
            contest.lonely += (contest.lonely.empty() ? "" : ", ") + nameOf(data, curve);
        if (curve.points.size() > 1 && (!longest || curve.points.size() > longest->points.size())) longest = &curve;
    }
    contest.runners = runners.size();
    const bool higher = higherWins(measureById(data.measure));
    for (std::size_t p = 0; longest && p < longest->points.size(); ++p) {
        std::size_t best = runners.front();
        bool all = true, tie = false;
        for (const std::size_t i : runners) {
            const CurvePoint* mine = pointFor(data, data.curves[i], longest->points[p].asked);
            const CurvePoint* leader = pointFor(data, data.curves[best], longest->points[p].asked);
            all = all && mine;
            if (!mine || !leader) continue;
            const bool isBetter = higher ? mine->mean > leader->mean : mine->mean < leader->mean;
            tie = !isBetter && (tie || (i != best && mine->mean == leader->mean));
            if (isBetter) best = i;
        }
        contest.shared += all;
        contest.ties += all && tie;
        contest.wins[best] += all && !tie;
    }
    return contest;
}

std::string overCaptures(const CurvesData& data) {
    if (data.captures < 2) return "";
    return fmt::format(", mean of {} captures{}", data.captures,
                       data.models > 1 ? fmt::format(" of {} models", data.models) : "");
}

/// The finding of a measure without a direction, or of one curve alone: its extremes, or that no selection changes it.
std::string rangesText(const CurvesData& data, const MeasureCard& measure) {
    std::string text;
    for (const Curve& curve : data.curves) {
        if (curve.points.empty()) continue;
        const auto [low, high] = std::ranges::minmax_element(curve.points, {}, &CurvePoint::mean);
        const std::string least = formatShort(low->mean), most = formatShort(high->mean);
        const std::string range = (least == most ? least : least + " to " + most) + unitBehind(measure.unit);
        if (measure.subject == MeasureSubject::Layer)
            return fmt::format("The {} in {} is {}{}: it describes the layer, whatever is kept", measureWords(measure),
                               data.where, range, overCaptures(data));
        text += (text.empty() ? "" : ", ") + nameOf(data, curve) + " " + range;
    }
    return fmt::format("The {} in {}{}: {}", measureWords(measure), data.where, overCaptures(data), text);
}

/// The setting change of a click on the point; nothing where the pane has changed since, or lacks the parameter.
std::optional<SettingChange> settingChangeOf(const ViewInput& input, const CurvesData& data, const Curve& curve,
                                             const CurvePoint& point) {
    const auto pane = std::ranges::find(input.panes, curve.letter, &PaneData::letter);
    const bool recorded = pane != input.panes.end() && pane->result && pane->result->request.recorded;
    if (pane == input.panes.end() || recorded || pane->policyId != curve.policyId) return {};
    const int index = static_cast<int>(pane - input.panes.begin());
    if (!point.setting.empty()) return SettingChange{index, {{data.parameter, point.setting}}, {}};
    if (!variesBudget(data) || !policyById(curve.policyId).card().usesBudget) return {};
    return SettingChange{index, {}, Budget{Budget::Unit::Fraction, point.asked}};
}

/// How far runs or captures lie apart at a point.
void addSpread(PointFacts& facts, const Curve& curve, const CurvePoint& point) {
    constexpr std::size_t kNamed = 6;
    const std::string range = fmt::format("{} to {}", formatShort(point.low), formatShort(point.high));
    if (curve.captures.size() < 2 && point.seeds > 1)
        facts.rows.emplace_back(fmt::format("over {} seeds", point.seeds), range);
    if (curve.captures.size() < 2) return;
    facts.rows.emplace_back(fmt::format("95 % of {} captures", curve.captures.size()), range);
    for (std::size_t i = 0; i < std::min(kNamed, curve.captures.size()); ++i)
        for (const CurvePoint& one : curve.captures[i].points)
            if (one.asked == point.asked) facts.rows.emplace_back(curve.captures[i].capture, formatShort(one.mean));
}

std::vector<std::string> rowOf(const CurvesData& data, const Curve& curve, const std::string& capture,
                               const CurvePoint& p) {
    return tableRow(curve.letter, curve.policyName, curve.variant, capture, p.setting.empty() ? "" : data.parameter,
                    p.setting.empty() ? fmt::format("{}", p.asked) : p.setting, fmt::format("{:.6f}", p.retention),
                    fmt::format("{:.0f}", p.bytes), p.mean, p.low, p.high, p.seeds, curve.simulated ? "yes" : "no",
                    p.balancedNothing ? kNothingBalanced : "");
}

class CurvesView final : public View {
public:
    CurvesView()
        : View({.id = "curves",
                .name = "Budget curves",
                .summary = "A measure against the budget or against a parameter, for all panes",
                .paper = "BalanceKV Fig. 1; KeyDiff Tables 9, 10, 12",
                .group = ViewGroup::Cost,
                .needs = {{"against", {{"vary", {"", "budget"}}}}},
                .data = "curves",
                .waiting = "Running the policies through the budgets…",
                .place = ViewPlace::ModelSide,
                .teaching = TeachingRole::Detail},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = View::whyNoPicture(input, options); !why.empty()) return why;
        const auto data = dataAs<CurvesData>(input);
        if (std::ranges::any_of(data->curves, [](const Curve& c) { return !c.points.empty(); })) return "";
        return data->curves.empty() || data->curves.front().error.empty()
                   ? card().waiting
                   : withFullStop(asSentence(data->curves.front().error));
    }

    std::optional<ValueRange> valueRange(const ViewInput& input, const ParameterValues& options) const override {
        if (!whyNoPicture(input, options).empty()) return std::nullopt;
        return valuesOfAxis(*dataAs<CurvesData>(input), options);
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        return drawCurves(*dataAs<CurvesData>(input), input, options, viewport);
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<CurvesData>(input);
        const MeasureCard& measure = measureById(data->measure);
        if (measure.better == MeasureDirection::Neither) return rangesText(*data, measure);
        const Contest contest = contestOf(*data);
        if (contest.shared == 0)
            return variesBudget(*data) ? "One budget each: curves need policies that take a budget"
                                       : "No two values of " + data->parameter + " have been run yet";
        if (contest.runners == 1) return rangesText(*data, measure);
        const std::string measured =
            fmt::format("{} {}", higherWins(measure) ? "largest" : "smallest", measureWords(measure));
        const std::string settings = variesBudget(*data) ? "budgets" : "values of " + data->parameter;
        const std::string lonely = contest.lonely.empty() ? ""
                                                          : fmt::format("; {} has one {} only", contest.lonely,
                                                                        variesBudget(*data) ? "budget" : "value");
        if (contest.ties == contest.shared)
            return fmt::format("No curve alone has the {}: the best are equal at {} of {} {} in {}{}{}", measured,
                               contest.ties, contest.shared, settings, data->where, overCaptures(*data), lonely);
        const auto most = static_cast<std::size_t>(std::ranges::max_element(contest.wins) - contest.wins.begin());
        return fmt::format("{} has the {} at {} of {} {} in {}{}{}{}", nameOf(*data, data->curves[most]), measured,
                           contest.wins[most], contest.shared, settings, data->where, overCaptures(*data),
                           contest.ties > 0 ? fmt::format("; at {} the best are equal", contest.ties) : "", lonely);
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        std::vector<std::vector<std::string>> rows;
        const auto data = dataAs<CurvesData>(input);
        for (std::size_t i = 0; data && i < data->curves.size(); ++i) {
            const Curve& curve = data->curves[i];
            const bool several = curve.captures.size() > 1;
            for (const CurvePoint& point : curve.points)
                rows.push_back(
                    rowOf(*data, curve, several ? "mean, 95 % interval" : input.capture->info().fileName, point));
            for (const CaptureCurve& one : curve.captures)
                for (const CurvePoint& point : one.points) rows.push_back(rowOf(*data, curve, one.capture, point));
        }
        return tableOf({"pane", "policy", "variant", "capture", "parameter", "asked", "retention", "bytes", "mean",
                        "lowest", "highest", "seeds", "simulated", "notes"},
                       std::move(rows));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<CurvesData>(input);
        const auto mark = curveMarkAt(*data, scene, at);
        if (!mark) return {};
        const Curve& curve = data->curves[mark->curve];
        const CurvePoint& point = curve.points[mark->point];
        PointFacts facts;
        facts.rows = {{"policy", letteredName(curve)}};
        if (!point.setting.empty()) facts.rows.emplace_back(data->parameter, point.setting);
        facts.rows.emplace_back("kept", formatPercent(point.retention));
        const MeasureCard& measure = measureById(data->measure);
        if (data->valueTitle.empty())
            facts.rows.emplace_back(measureWords(measure), formatShort(point.mean) + unitBehind(measure.unit));
        else
            facts.rows.emplace_back(data->valueTitle, formatShort(point.mean));
        addSpread(facts, curve, point);
        if (point.balancedNothing) facts.rows.emplace_back("note", kNothingBalanced);
        facts.settingChange = settingChangeOf(input, *data, curve, point);
        if (facts.settingChange)
            facts.rows.emplace_back("click", fmt::format("gives pane {} this {}", curve.letter,
                                                         variesBudget(*data) ? "budget" : data->parameter));
        return facts;
    }
};

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

const View& curvesView() { return onlyOne<CurvesView>(); }

std::optional<PresentPlace> presentPlace(const CurvesData& data, const ViewInput& input,
                                         const ParameterValues& options) {
    if (!data.valueTitle.empty()) { // the pane's result is of one layer
        if (std::isnan(data.present.first) || options.choice("against") == "bytes") return {};
        return PresentPlace{100 * data.present.first, "now " + data.present.second};
    }
    const PaneData* pane = activePane(input);
    if (!pane || !pane->result) return {};
    const RunResult& result = *pane->result;
    if (variesBudget(data) && options.choice("against") == "bytes") {
        if (data.captures > 1) return {}; // the points lie at means over captures, these bytes are the open one's
        const double kibibytes = static_cast<double>(storedBytes(result)) / 1024;
        return PresentPlace{kibibytes, fmt::format("now {} KiB", formatShort(kibibytes))};
    }
    if (variesBudget(data)) {
        const double share = keptShareOf(result, data.head); // the points lie at shares of the same heads
        return PresentPlace{100 * share, "now " + (data.head ? keptBudget(result, *data.head)
                                                             : formatPercent(share) + " of the layer")};
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
