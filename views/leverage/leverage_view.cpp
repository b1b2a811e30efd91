// Leverage of each key, exact and sketched: concentration on the left, agreement on the right, or a single plot.
#include "core/metrics/theory.h"
#include "core/parameters/parameter_rows.h"
#include "views/leverage/leverage_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    constexpr const char* paper = "Compactor 3.1";
    return {
        choiceRow("picture", "Picture",
                  {{"overview", "Overview", "sorted and cumulative leverage and the scatter, as far as there is room"},
                   {"sorted", "Sorted", "leverage over rank, both logarithmic"},
                   {"cumulative", "Cumulative", "share of the sum on the best tokens"},
                   {"histogram", "Histogram", "tokens per bin of leverage"},
                   {"tokens", "Along the prompt", "leverage of every token with the line of the budget"},
                   {"spectrum", "Spectrum", "singular values of the keys"},
                   {"scatter", "Exact against sketched", "token by token, with the band of Theorem 2"}},
                  Stage::Select, "Which plot.", paper),
        choiceRow("sketch", "Sketch",
                  {{"gaussian", "Gaussian", "entries N(0, 1/k)"},
                   {"srht", "SRHT", "random signs, Walsh-Hadamard, k random columns"}},
                  Stage::Features, "The random matrix that the keys are multiplied by.", "Compactor Table 4"),
        integerRow(
            "sketch_size", "Sketch columns", "", "", {0, 256, 0}, Stage::Features,
            "Columns k of the sketch, at most the width of a key; 0: those of the active pane, else of the first "
            "pane with a sketch, else half that width, the paper's 64 of 128.",
            "Compactor 4: 64; both codes 48"),
        flagRow("centred", "Centre keys", false, Stage::Features,
                "Takes the mean key away first. Not in the paper, but in both codes (C2).", "kvpress, compactor-vllm"),
        realRow("epsilon", "ε of Theorem 2", "", {0.01, 0.99, 0.5}, Stage::Select,
                "Sets the width of the band, κ (1 + ε) / (1 − ε), and what k the theorem asks for.",
                "Compactor Theorem 2")};
}

/// The picture for the option, as far as the room allows.
std::string shownPicture(const ParameterValues& options, const Box& area) {
    const std::string& wanted = options.choice("picture");
    return wanted == "overview" && (area.width < 460 || area.height < 150) ? "sorted" : wanted;
}

/// Curve on the left, square scatter on the right, with the cumulative curve above it in the remaining room.
PlotFrame drawOverview(LeveragePainter& painter, const Box& area) {
    constexpr double kAxes = 22, kGap = 10, kLeastAbove = 104,
                     kLeastScatter = 170; // kAxes: by how much a square's area is wider than high
    double width = std::min(area.height + kAxes, 0.5 * area.width), above = area.height - (width - kAxes);
    if (above > kGap && area.height - kLeastAbove >= kLeastScatter) {
        above = std::max(above, kLeastAbove);
        width = std::min(width, area.height - above + kAxes);
        painter.cumulative({area.right() - width, area.y, width, above - kGap});
    } else {
        above = 0;
    }
    painter.scatter({area.right() - width, area.y + above, width, area.height - above});
    return painter.sorted({area.x, area.y, area.width - width - 12, area.height});
}

PlotFrame drawPicture(LeveragePainter& painter, const std::string& picture, const Box& area) {
    if (picture == "cumulative") return painter.cumulative(area);
    if (picture == "histogram") return painter.histogram(area);
    if (picture == "tokens") return painter.tokens(area);
    if (picture == "spectrum") return painter.spectrum(area);
    if (picture == "scatter") return painter.scatter(area);
    return picture == "overview" ? drawOverview(painter, area) : painter.sorted(area);
}

std::vector<std::int64_t> ranksOf(const std::vector<TokenIndex>& order) {
    std::vector<std::int64_t> ranks(order.size());
    for (std::size_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = static_cast<std::int64_t>(rank);
    return ranks;
}

/// Both scores of a token with their ranks.
std::vector<std::pair<std::string, std::string>> factsOf(const LeverageData& data, TokenIndex token) {
    const auto rank = [&](const LeverageData::Scores& scores) {
        return formatCount(std::ranges::find(scores.order, token) - scores.order.begin());
    };
    const auto words = [&](const LeverageData::Scores& scores) {
        return fmt::format("{}  rank {}", formatShort(scores.scores[token]), rank(scores));
    };
    return {{"exact leverage", words(data.exact)},
            {fmt::format("sketched, k = {}", data.columns), words(data.sketched)}};
}

class LeverageView final : public View {
public:
    LeverageView()
        : View({.id = "leverage",
                .name = "Leverage",
                .summary = "How concentrated the leverage of the keys is, and what a sketch changes",
                .paper = "Compactor 3.1 and 3.2, Table 4, Theorem 2",
                .group = ViewGroup::Why,
                .needs = {{"epsilon", {{"picture", {"overview", "scatter"}}}}},
                .data = "leverage",
                .waiting = "Computing leverage…",
                .teaching = TeachingRole::Steps},
               makeOptions()) {}

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const LeverageChoice choice = leverageChoice(input);
        LeveragePainter painter(builder, input, options, viewport, choice);
        const std::string picture = shownPicture(options, plotArea(viewport, {}));
        std::vector<LegendEntry> legend;
        const bool marksAlone = picture == "tokens" || picture == "scatter";
        if (!marksAlone) legend = painter.legend();
        if (marksAlone || picture == "overview")
            for (LegendEntry& entry : painter.markLegend()) legend.push_back(std::move(entry));
        const PlotFrame frame = drawPicture(painter, picture, plotArea(viewport, legend));
        drawTopLegend(builder, viewport, legend, frame.plot.x);
        drawProvenance(builder, input, viewport);
        scene.plot = frame.plot;
        if (picture == "tokens") setDataRange(scene, frame); // the only one with two linear axes worth zooming
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const LeverageChoice choice = leverageChoice(input);
        const LeverageData& data = *choice.data;
        const auto n = static_cast<double>(data.exact.scores.size());
        const char* centred = data.centred ? "centred " : "";
        if (choice.budget == 0)
            return fmt::format("The {}keys have rank {}: the mean leverage is {}, the largest {}", centred,
                               data.exact.rank, formatShort(data.exact.sum / n),
                               formatShort(data.exact.scores[data.exact.order.front()]));
        const std::string whose = data.pane ? fmt::format(", pane {}'s k,", data.pane) : "",
                          exact = data.columns >= data.keyDim ? ": as wide as a key it is exact" : "";
        return fmt::format("The best {} of {} ({}) {} {} of the {}leverage; a sketch of {} of {} columns{} picks "
                           "{} of them{}",
                           formatCount(choice.budget), formatCounted(std::llround(n), "token"),
                           formatPercent(static_cast<double>(choice.budget) / n), choice.budget == 1 ? "holds" : "hold",
                           formatPercent(choice.shareOfBest(choice.budget)), data.centred ? "centred keys’ " : "",
                           data.columns, data.keyDim, whose, formatPercent(choice.overlap()), exact);
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        const std::vector<std::string> columns = {"position",   "text",     "segment",       "exact",
                                                  "rank_exact", "sketched", "rank_sketched", "kept_by"};
        if (!whyNoPicture(input, options).empty()) return tableOf(columns, {});
        const LeverageChoice choice = leverageChoice(input);
        const auto data = choice.data;
        const auto rowAt = [choice, data, input, exact = ranksOf(data->exact.order),
                            sketched = ranksOf(data->sketched.order)](std::int64_t row) {
            static const char* const kept[] = {"neither", "exact", "sketched", "both"};
            const auto token = static_cast<TokenIndex>(row);
            return tableRow(row, tokenText(input, token), segmentOf(*input.capture, token), data->exact.scores[row],
                            exact[row], data->sketched.scores[row], sketched[row],
                            choice.budget == 0 ? "" : kept[choice.exact[row] + 2 * choice.sketched[row]]);
        };
        return tableOf(columns, std::ssize(data->exact.scores), rowAt);
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<LeverageData>(input);
        const PickId pick = pickAt(scene, at, 4);
        if (data->exact.order.empty()) return {};
        PointFacts facts;
        if (pick.kind == PickId::Kind::Token && pick.index < std::ssize(data->exact.scores)) {
            facts.rows = factsOf(*data, static_cast<TokenIndex>(pick.index));
            facts.token = static_cast<TokenIndex>(pick.index);
        } else if (pick.kind == PickId::Kind::Cell && scene.plot.width > 0) {
            const auto count = static_cast<double>(data->exact.order.size());
            const double rank = std::exp(std::log(std::max(2.0, count)) * (at.x - scene.plot.x) / scene.plot.width);
            const auto index = static_cast<std::size_t>(std::clamp(rank, 1.0, count)) - 1;
            facts.token = data->exact.order[index];
            facts.rows = factsOf(*data, facts.token);
            facts.rows.insert(facts.rows.begin(), {"token", quotedToken(input, facts.token)});
        }
        return facts;
    }
};

/// Index from 1, value; without the directions that are zero.
std::vector<Point> spectrumCurve(const LeverageData::Scores& scores) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < scores.spectrum.size(); ++i)
        if (scores.spectrum[i] > 0)
            points.push_back({static_cast<double>(i + 1), static_cast<double>(scores.spectrum[i])});
    return points;
}

double conditionOf(const LeverageData::Scores& scores) {
    if (scores.rank == 0) return 1;
    return static_cast<double>(scores.spectrum.front()) /
           static_cast<double>(scores.spectrum[static_cast<std::size_t>(scores.rank) - 1]);
}

constexpr double kTheoremDelta = 0.01;

std::vector<char> bestMask(const LeverageData::Scores& scores, std::int64_t count) {
    std::vector<char> mask(scores.scores.size(), 0);
    for (std::size_t rank = 0; rank < scores.order.size() && static_cast<std::int64_t>(rank) < count; ++rank)
        mask[scores.order[rank]] = 1;
    return mask;
}

} // namespace

const View& leverageView() { return onlyOne<LeverageView>(); }

void LeveragePainter::band(const PlotFrame& frame, const SketchTheorem& theorem) {
    const double low = frame.x.low, high = frame.x.high;
    m_builder.polyline({frame.toPixels(low, low), frame.toPixels(high, high)}, {m_theme.axis, 1, {5, 3}});
    if (theorem.factor > high / low) return; // the band covers the whole plot
    const auto at = [&](double x, double factor) { return frame.toPixels(x, x * factor); };
    m_builder.polygon(
        {at(low, theorem.factor), at(high, theorem.factor), at(high, 1 / theorem.factor), at(low, 1 / theorem.factor)},
        withAlpha(m_colour, 0.10));
    for (const double factor : {theorem.factor, 1 / theorem.factor})
        m_builder.polyline({at(low, factor), at(high, factor)}, {withAlpha(m_colour, 0.6), 1, {2, 2}});
}

std::vector<std::string> LeveragePainter::scatterNotes(const SketchTheorem& theorem) const {
    std::vector<std::string> notes;
    if (m_choice.budget > 0)
        notes.push_back(fmt::format("overlap {}\u00a0%", formatFixed(100 * m_choice.overlap(), 1)));
    notes.push_back(
        fmt::format("sketched / exact: {} to {}", formatShort(theorem.measuredLow), formatShort(theorem.measuredHigh)));
    const std::string epsilon = formatShort(theorem.epsilon),
                      demanded = formatCount(std::llround(std::ceil(theorem.demanded)));
    if (static_cast<double>(m_data.columns) >= theorem.demanded)
        notes.push_back(fmt::format("Compactor Thm 2, ε = {}: within 1/{} and {}", epsilon, formatShort(theorem.factor),
                                    formatShort(theorem.factor)));
    else
        notes.push_back(
            fmt::format("Compactor Thm 2, ε = {}, asks for k ≥ {}: not met, it promises nothing", epsilon, demanded));
    if (m_choice.withoutLeverage > 0)
        notes.push_back(formatCounted(m_choice.withoutLeverage, "token") +
                        (m_choice.withoutLeverage == 1 ? " has leverage 0" : " have leverage 0"));
    return notes;
}

PlotFrame LeveragePainter::scatter(const Box& area) {
    const AxisSpec both = positiveAxis(m_data.exact.scores, m_data.sketched.scores, "");
    SubPlot plot(m_viewport, area, both, both);
    plot.frame.x.title = "exact leverage";
    plot.frame.y.title = fmt::format("sketched, k = {}", m_data.columns);
    const double side =
        std::min(plot.frame.plot.width, plot.frame.plot.height); // equal axes: the diagonal is at 45 degrees
    plot.frame.plot.y += plot.frame.plot.height - side;
    plot.frame.plot.width = plot.frame.plot.height = side;
    plot.open(m_builder, m_theme);
    const SketchTheorem theorem = sketchTheorem(m_data, m_options.real("epsilon"));
    band(plot.frame, theorem);
    std::vector<Point> places;
    for (std::size_t i = 0; i < m_data.exact.scores.size(); ++i) {
        const float x = m_data.exact.scores[i], y = m_data.sketched.scores[i];
        places.push_back(x > 0 && y > 0 ? Point{static_cast<double>(x), static_cast<double>(y)} : Point{NAN, NAN});
    }
    clouds(plot.frame, places);
    label(plot.frame, scatterNotes(theorem), Corner::AboveDiagonal);
    return plot.close(m_builder, m_theme);
}

PlotFrame LeveragePainter::spectrum(const Box& area) {
    const auto count = static_cast<double>(std::max(m_data.exact.spectrum.size(), m_data.sketched.spectrum.size()));
    const SubPlot plot(
        m_viewport, area, {1, std::max(2.0, count), AxisScale::Linear, "Index, from 1"},
        positiveAxis(m_data.exact.spectrum, m_data.sketched.spectrum,
                     m_data.centred ? "Singular value of the centred keys" : "Singular value of the keys"));
    plot.open(m_builder, m_theme);
    curve(plot.frame, spectrumCurve(m_data.exact), false);
    curve(plot.frame, spectrumCurve(m_data.sketched), true);
    m_builder.popClip();
    label(plot.frame,
          {fmt::format("rank {} of {}", m_data.exact.rank, m_data.keyDim),
           fmt::format("condition number {}, sketched {}", formatShort(conditionOf(m_data.exact)),
                       formatShort(conditionOf(m_data.sketched)))},
          Corner::BottomLeft);
    drawAxes(m_builder, plot.frame, plot.style, m_theme);
    return plot.frame;
}

std::vector<LegendEntry> LeveragePainter::legend() const {
    const auto line = [&](std::vector<double> dash) { return Stroke{m_colour, 1.8, std::move(dash)}; };
    const std::string kind = m_data.sketch == "srht" ? "SRHT" : "Gaussian sketch";
    return {lineEntry("exact, Σ = " + formatShort(m_data.exact.sum), line({})),
            lineEntry(fmt::format("{}, k = {}, Σ = {}", kind, m_data.columns, formatShort(m_data.sketched.sum)),
                      line({6, 3}))};
}

std::vector<LegendEntry> LeveragePainter::markLegend() const {
    const std::int64_t stride = markStride(std::ssize(m_choice.exact));
    std::int64_t neither = 0, drawn = 0;
    for (std::int64_t i = 0; i < std::ssize(m_choice.exact); ++i)
        if (m_choice.exact[i] + m_choice.sketched[i] == 0) ++neither, drawn += i % stride == 0;
    const std::string thinned =
        stride > 1 ? fmt::format("showing {} of {}", formatCount(drawn), formatCount(neither)) : "";
    if (m_choice.budget == 0) return thinned.empty() ? std::vector<LegendEntry>{} : std::vector{wordsEntry(thinned)};
    return {{"both keep " + formatCount(m_choice.common), Marker::Circle, m_theme.kept, {}, 3},
            ringEntry("one keeps " + formatCount(2 * (m_choice.budget - m_choice.common)), {m_theme.ink, 1.2, {}}),
            ringEntry(thinned.empty() ? "neither" : "neither, " + thinned, {m_theme.evicted, 1.2, {}})};
}

double LeverageChoice::shareOfBest(std::int64_t count) const {
    double sum = 0;
    for (std::size_t rank = 0; rank < data->exact.order.size() && static_cast<std::int64_t>(rank) < count; ++rank)
        sum += static_cast<double>(data->exact.scores[data->exact.order[rank]]);
    return data->exact.sum > 0 ? sum / data->exact.sum : 0;
}

LeverageChoice leverageChoice(const ViewInput& input) {
    LeverageChoice choice;
    choice.data = dataAs<LeverageData>(input);
    const PaneData* pane = activePane(input);
    if (pane && pane->result) choice.budget = std::ssize(keptTokens(input, *pane));
    choice.budget = std::min<std::int64_t>(choice.budget, std::ssize(choice.data->exact.scores));
    choice.exact = bestMask(choice.data->exact, choice.budget);
    choice.sketched = bestMask(choice.data->sketched, choice.budget);
    for (std::size_t i = 0; i < choice.exact.size(); ++i) {
        choice.common += choice.exact[i] && choice.sketched[i] ? 1 : 0;
        choice.withoutLeverage += choice.data->exact.scores[i] <= 0 || choice.data->sketched.scores[i] <= 0 ? 1 : 0;
    }
    return choice;
}

SketchTheorem sketchTheorem(const LeverageData& data, double epsilon) {
    SketchTheorem theorem;
    theorem.epsilon = epsilon;
    const auto& exact = data.exact;
    if (exact.rank > 0)
        theorem.factor =
            leverageRatioBounds(static_cast<double>(exact.spectrum.front()),
                                static_cast<double>(exact.spectrum[static_cast<std::size_t>(exact.rank) - 1]), epsilon)
                .high;
    theorem.demanded = sketchColumnsDemanded(static_cast<double>(exact.rank), epsilon, kTheoremDelta);
    theorem.measuredLow = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < exact.scores.size(); ++i) {
        if (exact.scores[i] <= 0) continue;
        const double ratio = static_cast<double>(data.sketched.scores[i]) / static_cast<double>(exact.scores[i]);
        theorem.measuredLow = std::min(theorem.measuredLow, ratio);
        theorem.measuredHigh = std::max(theorem.measuredHigh, ratio);
    }
    return theorem;
}

} // namespace kvscope
