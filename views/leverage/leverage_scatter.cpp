// Exact against sketched, token by token, with what Theorem 2 promises about their ratio; and the singular values that
// both start from.
#include "core/metrics/theory.h"
#include "views/leverage/leverage_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

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
        notes.push_back(formatCount(m_choice.withoutLeverage) + " tokens have leverage 0");
    return notes;
}

PlotFrame LeveragePainter::scatter(const Box& area) {
    PositiveRange range;
    range.include(m_data.exact.scores);
    range.include(m_data.sketched.scores);
    const AxisSpec both = range.axis("");
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
    PositiveRange range;
    range.include(m_data.exact.spectrum);
    range.include(m_data.sketched.spectrum);
    const auto count = static_cast<double>(std::max(m_data.exact.spectrum.size(), m_data.sketched.spectrum.size()));
    const SubPlot plot(
        m_viewport, area, {1, std::max(2.0, count), AxisScale::Linear, "Index, from 1"},
        range.axis(m_data.centred ? "Singular value of the centred keys" : "Singular value of the keys"));
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
    if (m_choice.budget == 0) return {};
    return {{"both keep " + formatCount(m_choice.common), Marker::Circle, m_theme.kept, {}, 3},
            ringEntry("one keeps " + formatCount(2 * (m_choice.budget - m_choice.common)), {m_theme.ink, 1.2, {}}),
            ringEntry("neither", {m_theme.evicted, 1.2, {}})};
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
    if (pane && pane->result) choice.budget = std::ssize(pane->result->selection.heads[input.kvHead.value].kept);
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
