// Compactor keeps a token for one of two reasons, and here both are axes: a token is kept when it lies beyond the line.
// Turning lambda turns the line, changing the budget moves it.
#include "core/parameters/parameter_rows.h"
#include "core/policies/policy.h"
#include "core/run/run.h"
#include "views/common/chart.h"
#include "views/common/pane_offers.h"
#include "views/common/policy_style.h"
#include "views/score_plane/score_plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kTrimmed = 0.005; // of the tokens at each end of an axis, in the range "middle"

ParameterTable makeOptions() {
    return {choiceRow("shown", "Shown",
                      {{"middle", "The middle 99 %", "of each score, so that few far tokens do not squeeze the others"},
                       {"all", "Everything", "every token"}},
                      Stage::Select, "What the axes span. How many tokens lie beyond is always stated, by state.",
                      "no clipping without a count")};
}

constexpr PickId kLambdaHandle{PickId::Kind::Handle, 0}, kLine{PickId::Kind::Handle, 1};

/// Low and high of one coordinate, with a margin.
std::pair<double, double> spanOf(const ScorePlane& plane, double Point::*coordinate, double trimmed) {
    std::vector<double> values;
    for (std::size_t i = 0; i < plane.marks.places.size(); ++i)
        if (plane.marks.hasPlace(static_cast<TokenIndex>(i))) values.push_back(plane.marks.places[i].*coordinate);
    if (values.empty()) return {-1, 1};
    std::ranges::sort(values);
    const auto cut = static_cast<std::size_t>(trimmed * static_cast<double>(values.size()));
    const double low = values[cut], high = values[values.size() - 1 - cut];
    const double margin = std::max(0.06 * (high - low), 0.1);
    return {low - margin, high + margin};
}

std::string leverageTitle(const ParameterValues& values, std::int64_t keyDim) {
    if (values.choice("sketch") == "none") return "z(leverage): exact";
    return fmt::format("z(leverage): sketch, k = {}", std::min(values.integer("sketch_size"), keyDim));
}

Chart chartFor(const ViewInput& input, const ScorePlane& plane, const ParameterValues& options,
               const Viewport& viewport) {
    const double trimmed = options.choice("shown") == "all" ? 0 : kTrimmed;
    const auto [left, right] = spanOf(plane, &Point::x, trimmed);
    const auto [bottom, top] = spanOf(plane, &Point::y, trimmed);
    const Viewport::Range range = viewport.range.value_or(Viewport::Range{left, right, bottom, top});
    const ParameterValues& values = activePane(input)->result->request.policy.values;
    std::vector<LegendEntry> legend = tokenLegend(plane.marks, themeOf(viewport.theme));
    legend.push_back(
        areaEntry(paneTitle(*activePane(input)), policyStyle(firstOf(PolicyFamily::Compactor), viewport.theme).colour));
    return Chart(viewport, std::move(legend),
                 {range.xMin, range.xMax, AxisScale::Linear,
                  fmt::format("z(attention): non-causal, C = {}", values.integer("chunk"))},
                 {range.yMin, range.yMax, AxisScale::Linear, leverageTitle(values, input.capture->info().headDim)});
}

std::string slopeText(double lambda) {
    return lambda > 0 ? fmt::format("slope −1/λ = {}", formatShort(-1 / lambda)) : "vertical: leverage does not count";
}

void drawLine(SceneBuilder& builder, const ScorePlane& plane, const PlotFrame& frame, const Theme& theme) {
    const std::vector<Point> inside = lineInside(plane, frame);
    if (inside.empty()) return;
    const Point from = frame.toPixels(inside[0].x, inside[0].y), to = frame.toPixels(inside[1].x, inside[1].y);
    builder.scene().items.push_back(PolylineItem{{from, to}, {theme.ink, 2, {}}, false, kLine});
    const Point handle{from.x + 0.12 * (to.x - from.x), from.y + 0.12 * (to.y - from.y)};
    builder.circle(handle, 5, theme.canvas, {theme.ink, 2, {}}, kLambdaHandle);
    const TextStyle bold{FontFace::Monospace, 11, FontWeight::Bold}, plain{FontFace::Interface, 11};
    const std::string name = "λ = " + formatFixed(plane.lambda, 2);
    const double nameWidth = builder.width(name, bold),
                 room = nameWidth + builder.width(slopeText(plane.lambda), plain) + 24;
    const double left = handle.x + 14 + room < frame.plot.right() ? handle.x + 14 : handle.x - 6 - room;
    if (left < frame.plot.x) return;
    builder.labelOnCanvas({left, handle.y}, name, bold, theme.text1, theme);
    builder.labelOnCanvas({left + nameWidth + 8, handle.y}, slopeText(plane.lambda), plain, theme.text1, theme);
}

/// "38 beyond the range: 36 kept, 2 evicted"; empty when nothing is left out.
std::string beyondText(const BeyondRange& beyond) {
    if (beyond.all() == 0) return {};
    std::vector<std::string> parts;
    for (const auto& [count, word] :
         {std::pair{beyond.kept, "kept"}, {beyond.guarded, "protected"}, {beyond.evicted, "evicted"}})
        if (count > 0) parts.push_back(formatCount(count) + " " + word);
    return fmt::format("{} beyond the range: {}", formatCount(beyond.all()), fmt::join(parts, ", "));
}

/// Notes on what the picture leaves out, in its upper right corner.
void drawNotes(SceneBuilder& builder, const ScorePlane& plane, std::int64_t thinned, const PlotFrame& frame,
               const Theme& theme) {
    std::vector<std::string> notes;
    if (std::string beyond = beyondText(beyondRange(frame, plane.marks)); !beyond.empty())
        notes.push_back(std::move(beyond));
    if (plane.unplaced > 0)
        notes.push_back(formatCounted(plane.unplaced, "token") +
                        (plane.unplaced == 1 ? " has no score" : " have no scores"));
    if (thinned > 0) notes.push_back(formatCounted(thinned, "evicted mark") + " left out");
    const TextStyle style{FontFace::Interface, 11};
    double y = frame.plot.y + 10;
    for (const std::string& note : notes) {
        builder.labelOnCanvas({frame.plot.right() - 6, y}, builder.elide(note, style, frame.plot.width - 12), style,
                              theme.text1, theme, HorizontalAlign::Right);
        y += 17;
    }
}

/// 0 = best; empty for tokens that left the cache in an earlier block and have no score.
std::vector<std::string> ranksOf(const std::vector<float>& total) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < total.size(); ++i)
        if (!std::isnan(total[i])) order.push_back(i);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return total[a] > total[b]; });
    std::vector<std::string> ranks(total.size());
    for (std::size_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = std::to_string(rank);
    return ranks;
}

class ScorePlaneView final : public View {
public:
    ScorePlaneView()
        : View({.id = "score_plane",
                .name = "Score plane",
                .summary = "Compactor's two scores against each other, with the line of its choice",
                .paper = "Compactor 3.4",
                .group = ViewGroup::Why,
                .teaching = TeachingRole::Steps},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues&) const override {
        return whyNoPlane(input);
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const ScorePlane plane = scorePlaneOf(input);
        const Theme& theme = themeOf(viewport.theme);
        Chart chart = chartFor(input, plane, options, viewport);
        SceneBuilder builder = chart.builder(viewport);
        drawGrid(builder, chart.frame, theme);
        builder.pushClip(chart.frame.plot);
        const std::int64_t thinned = drawTokenMarks(builder, chart.frame, plane.marks, input.focus, theme);
        drawLine(builder, plane, chart.frame, theme);
        drawNotes(builder, plane, thinned, chart.frame, theme);
        builder.popClip();
        return finishChart(chart, input, viewport, true);
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const ScorePlane plane = scorePlaneOf(input);
        const Deciders deciders = decidersOf(plane);
        if (deciders.kept == 0) return "No token is kept for its scores: protection fills the budget";
        const auto leads = [](std::int64_t a, std::int64_t b) { return 10 * a > 11 * b; }; // by a tenth
        const char* who = leads(deciders.byAttention, deciders.byLeverage)   ? "Attention decides"
                          : leads(deciders.byLeverage, deciders.byAttention) ? "Leverage decides"
                                                                             : "Both weigh about alike";
        return fmt::format("{}: of {} kept by score, {} would be by attention alone, {} by leverage alone, {} by "
                           "each of them (λ = {})",
                           who, formatCounted(deciders.kept, "token"), formatCount(deciders.byAttention),
                           formatCount(deciders.byLeverage), formatCount(deciders.byBoth), formatShort(plane.lambda));
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        const std::vector<std::string> columns = {"position",    "text",       "segment", "state",
                                                  "z_attention", "z_leverage", "score",   "rank"};
        if (!whyNoPlane(input).empty()) return tableOf(columns, {});
        const ScorePlane plane = scorePlaneOf(input);
        const auto rowAt = [plane, ranks = ranksOf(plane.total), input](std::int64_t row) {
            const auto token = static_cast<TokenIndex>(row);
            return tableRow(row, tokenText(input, token), segmentOf(*input.capture, token),
                            stateName(plane.marks.states[row]), plane.marks.places[row].x, plane.marks.places[row].y,
                            plane.total[row], ranks[row]);
        };
        return tableOf(columns, std::ssize(plane.total), rowAt);
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const PickId pick = pickAt(scene, at, 4);
        if (!whyNoPlane(input).empty() || pick.kind == PickId::Kind::None) return {};
        const ScorePlane plane = scorePlaneOf(input);
        PointFacts facts;
        if (pick.kind == PickId::Kind::Token) {
            facts.token = static_cast<TokenIndex>(pick.index);
            const Point place = plane.marks.places[pick.index];
            facts.rows = {{"z(attention)", formatFixed(place.x, 3)}, {"z(leverage)", formatFixed(place.y, 3)}};
            return facts;
        }
        if (pick.kind != PickId::Kind::Handle) return {};
        facts.rows = {{"score", "z(attention) + λ z(leverage)"},
                      {"λ", formatShort(plane.lambda)},
                      {"line", slopeText(plane.lambda)},
                      {"kept from", formatShort(plane.threshold)}};
        return facts;
    }

    std::optional<SettingChange> draggedTo(const ViewInput& input, const ParameterValues&, const Scene& scene,
                                           PickId handle, Point at) const override {
        if (!whyNoPlane(input).empty() || scene.plot.width < 1 || scene.plot.height < 1) return std::nullopt;
        const ScorePlane plane = scorePlaneOf(input);
        const Point data{scene.dataAt(at).x,
                         scene.yMin + (scene.plot.bottom() - at.y) / scene.plot.height * (scene.yMax - scene.yMin)};
        SettingChange settingChange;
        if (handle == kLine) {
            settingChange.budget = Budget{Budget::Unit::Tokens, static_cast<double>(budgetThrough(plane, data))};
        } else {
            const auto lambda = lambdaThrough(plane, data);
            if (!lambda) return std::nullopt;
            settingChange.values = {{"lambda_rule", "fixed"}, {"lambda", fmt::format("{:.2f}", *lambda)}};
        }
        return settingChange;
    }

    std::optional<PaneOffer> offer(const ViewInput& input, const ParameterValues&) const override {
        return offerPolicy(input, {PolicyFamily::Compactor});
    }
};

} // namespace

const View& scorePlaneView() { return onlyOne<ScorePlaneView>(); }

} // namespace kvscope
