// The six pictures of leverage. Lines compare the exact scores (solid) with the sketched ones (dashed); marks are
// tokens, blue where both would keep them, orange where neither would, ink where they disagree.
#include "views/leverage/leverage_pictures.h"

#include "core/policies/policy.h"
#include "views/common/policy_style.h"
#include "views/common/token_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

constexpr std::size_t kMostPoints = 600; // of a curve
constexpr int kBins = 40;
constexpr double kNoteRow = 16;

/// Numbers 0 .. count - 1 spaced so that a curve over a logarithmic axis stays smooth.
std::vector<std::size_t> sparse(std::size_t count) {
    std::vector<std::size_t> chosen;
    if (count == 0) return chosen;
    for (std::size_t i = 0; i <= kMostPoints; ++i) {
        const double rank =
            std::exp(std::log(static_cast<double>(count)) * static_cast<double>(i) / static_cast<double>(kMostPoints));
        const std::size_t at = std::min(count, static_cast<std::size_t>(std::lround(rank))) - 1;
        if (chosen.empty() || at > chosen.back()) chosen.push_back(at);
    }
    return chosen;
}

std::vector<Point> rankCurve(const LeverageData::Scores& scores, double floor) {
    std::vector<Point> points;
    for (const std::size_t rank : sparse(scores.order.size())) {
        const auto value = static_cast<double>(scores.scores[scores.order[rank]]);
        points.push_back({static_cast<double>(rank + 1), std::max(value, floor)});
    }
    return points;
}

/// Points of (percent of the tokens, percent of the sum).
std::vector<Point> cumulativeCurve(const LeverageData::Scores& scores) {
    std::vector<Point> points = {{0, 0}};
    const auto count = static_cast<double>(scores.order.size());
    const std::size_t stride = std::max<std::size_t>(1, scores.order.size() / kMostPoints);
    double sum = 0;
    for (std::size_t rank = 0; rank < scores.order.size(); ++rank) {
        sum += static_cast<double>(scores.scores[scores.order[rank]]);
        if (rank % stride == 0 || rank + 1 == scores.order.size())
            points.push_back(
                {100 * static_cast<double>(rank + 1) / count, scores.sum > 0 ? 100 * sum / scores.sum : 0});
    }
    return points;
}

/// How many scores fall into each of kBins bins of equal ratio.
std::vector<int> binned(const std::vector<float>& scores, const AxisSpec& axis) {
    std::vector<int> counts(kBins, 0);
    for (const float score : scores) {
        if (score <= 0) continue;
        const double f = std::log(static_cast<double>(score) / axis.low) / std::log(axis.high / axis.low);
        ++counts[std::clamp(static_cast<int>(f * kBins), 0, kBins - 1)];
    }
    return counts;
}

} // namespace

std::int64_t markStride(std::int64_t tokens) { return std::max<std::int64_t>(1, tokens / kMostTokenMarks); }

AxisSpec positiveAxis(const std::vector<float>& exact, const std::vector<float>& sketched, std::string title) {
    double low = std::numeric_limits<double>::infinity(), high = 0;
    for (const auto* numbers : {&exact, &sketched})
        for (const float number : *numbers)
            if (number > 0) {
                low = std::min(low, static_cast<double>(number));
                high = std::max(high, static_cast<double>(number));
            }
    if (high <= 0) return {0.1, 10, AxisScale::Logarithmic, std::move(title)};
    const double least = std::max(low, high * 1e-6);
    return {least / 1.3, high * 1.3, AxisScale::Logarithmic, std::move(title)};
}

LeveragePainter::LeveragePainter(SceneBuilder& builder, const ViewInput& input, const ParameterValues& options,
                                 const Viewport& viewport, const LeverageChoice& choice)
    : m_builder(builder), m_input(input), m_options(options), m_viewport(viewport), m_choice(choice),
      m_data(*choice.data), m_theme(themeOf(viewport.theme)),
      m_colour(policyStyle(firstOf(PolicyFamily::Compactor), viewport.theme).colour) {}

void LeveragePainter::curve(const PlotFrame& frame, const std::vector<Point>& points, bool sketched) {
    std::vector<Point> pixels;
    for (const Point& p : points) pixels.push_back(frame.toPixels(p.x, p.y));
    m_builder.polyline(std::move(pixels),
                       {m_colour, 1.8, sketched ? std::vector<double>{6, 3} : std::vector<double>{}});
}

void LeveragePainter::budgetLine(const PlotFrame& frame, double x) {
    if (m_choice.budget == 0) return;
    const double at = frame.toPixels(x, frame.y.high).x;
    m_builder.rectangle({frame.plot.x, frame.plot.y, at - frame.plot.x, frame.plot.height},
                        withAlpha(m_theme.kept, 0.08));
    m_builder.line({at, frame.plot.y}, {at, frame.plot.bottom()}, {m_theme.ink, 1, {5, 3}});
}

void LeveragePainter::label(const PlotFrame& frame, const std::vector<std::string>& lines, Corner corner) {
    const Box& plot = frame.plot;
    if (plot.height < 60 || plot.width < 90) return;
    const TextStyle bold{FontFace::Interface, 11, FontWeight::SemiBold}, plain{FontFace::Interface, 11};
    std::vector<std::pair<std::string, TextStyle>> rows;
    std::vector<std::size_t> ends; // of each line, in rows
    double width = 0;
    // In the triangle above the diagonal the label is as narrow as it takes to stay inside, or has fewer lines.
    for (const double share : {0.95, 0.7, 0.55, 0.45}) {
        rows.clear();
        ends.clear();
        width = 0;
        for (const std::string& line : lines) {
            const TextStyle& style = &line == &lines.front() ? bold : plain;
            for (const std::string& part : m_builder.wrap(line, style, share * plot.width - 12)) {
                rows.push_back({m_builder.elide(part, style, share * plot.width - 12), style});
                width = std::max(width, m_builder.width(rows.back().first, style));
            }
            ends.push_back(rows.size());
        }
        if (corner != Corner::AboveDiagonal ||
            (width + 11) / plot.width + (kNoteRow * static_cast<double>(rows.size()) + 4) / plot.height < 1)
            break;
    }
    const double most =
        corner == Corner::AboveDiagonal ? plot.height * (1 - (width + 11) / plot.width) : plot.height - 60;
    while (ends.size() > 1 && static_cast<double>(ends.back()) * kNoteRow > most) // whole sentences only
        ends.pop_back();
    rows.resize(ends.back());
    width = 0;
    for (const auto& [text, style] : rows) width = std::max(width, m_builder.width(text, style));
    const double height = kNoteRow * static_cast<double>(rows.size()),
                 left = corner == Corner::BottomRight ? plot.right() - width - 11 : plot.x + 3;
    double y = corner == Corner::BottomLeft || corner == Corner::BottomRight ? plot.bottom() - height - 4 : plot.y + 4;
    m_builder.rectangle({left, y, width + 8, height}, withAlpha(m_theme.canvas, 0.93));
    for (const auto& [text, style] : rows) {
        m_builder.label({left + 4, y + kNoteRow / 2}, text, style, m_theme.text1);
        y += kNoteRow;
    }
}

PlotFrame LeveragePainter::sorted(const Box& area) {
    const double n = std::max(2.0, static_cast<double>(m_data.exact.scores.size()));
    const SubPlot plot(m_viewport, area, {1, n, AxisScale::Logarithmic, "Rank of token"},
                       positiveAxis(m_data.exact.scores, m_data.sketched.scores, "Leverage l"));
    plot.open(m_builder, m_theme);
    budgetLine(plot.frame, std::max<double>(1, static_cast<double>(m_choice.budget)));
    curve(plot.frame, rankCurve(m_data.exact, plot.frame.y.low), false);
    curve(plot.frame, rankCurve(m_data.sketched, plot.frame.y.low), true);
    if (m_choice.budget > 0)
        label(plot.frame,
              {fmt::format("top {} hold {} of the sum", formatCount(m_choice.budget),
                           formatPercent(m_choice.shareOfBest(m_choice.budget)))},
              Corner::BottomLeft);
    m_builder.popClip();
    m_builder.rectangle(plot.frame.plot, kTransparent, {}, 0, {PickId::Kind::Cell, 0});
    drawAxes(m_builder, plot.frame, plot.style, m_theme);
    return plot.frame;
}

PlotFrame LeveragePainter::cumulative(const Box& area) {
    const SubPlot plot(m_viewport, area, {0, 100, AxisScale::Linear, "Tokens, best first, %"},
                       {0, 100, AxisScale::Linear, "Leverage, % of the sum"});
    plot.open(m_builder, m_theme);
    const auto n = static_cast<double>(m_data.exact.scores.size());
    budgetLine(plot.frame, 100 * static_cast<double>(m_choice.budget) / n);
    m_builder.polyline({plot.frame.toPixels(0, 0), plot.frame.toPixels(100, 100)}, {m_theme.axis, 1, {1, 3}});
    curve(plot.frame, cumulativeCurve(m_data.exact), false);
    curve(plot.frame, cumulativeCurve(m_data.sketched), true);
    const std::vector<Point> exact = cumulativeCurve(m_data.exact);
    const auto half = std::ranges::find_if(exact, [](const Point& p) { return p.y >= 50; });
    const char* words =
        plot.frame.plot.width < 400 ? "half lies on {} of the tokens" : "half of the sum lies on {} of the tokens";
    label(plot.frame, {fmt::format(fmt::runtime(words), half == exact.end() ? "none" : formatPercent(half->x / 100))},
          Corner::BottomRight);
    return plot.close(m_builder, m_theme);
}

PlotFrame LeveragePainter::histogram(const Box& area) {
    const AxisSpec x = positiveAxis(m_data.exact.scores, m_data.sketched.scores, "Leverage l");
    const std::vector<int> exact = binned(m_data.exact.scores, x), sketched = binned(m_data.sketched.scores, x);
    const int most = std::max(*std::ranges::max_element(exact), *std::ranges::max_element(sketched));
    const SubPlot plot(m_viewport, area, x, {0, std::max(1.0, 1.08 * most), AxisScale::Linear, "Tokens per bin"});
    drawGrid(m_builder, plot.frame, m_theme);
    for (const auto& [counts, isSketched] : {std::pair{&exact, false}, std::pair{&sketched, true}}) {
        std::vector<Point> outline = {{x.low, 0}};
        for (int bin = 0; bin < kBins; ++bin)
            for (const int edge : {bin, bin + 1})
                outline.push_back({x.low * std::pow(x.high / x.low, static_cast<double>(edge) / kBins),
                                   static_cast<double>((*counts)[bin])});
        outline.push_back({x.high, 0});
        curve(plot.frame, outline, isSketched);
    }
    drawAxes(m_builder, plot.frame, plot.style, m_theme);
    return plot.frame;
}

void LeveragePainter::clouds(const PlotFrame& frame, const std::vector<Point>& places) {
    const Stroke evicted{m_theme.evicted, 1, {}}, ink{m_theme.ink, 1, {}};
    const struct {
        const char* name;
        int inSets;
        Colour fill;
        Stroke stroke;
        double radius;
    } kinds[] = {{"neither", 0, kTransparent, evicted, 2},
                 {"one", 1, kTransparent, ink, 2.2},
                 {"both", 2, m_theme.kept, {}, 2.2}};
    const std::int64_t stride = markStride(std::ssize(places));
    const auto hasPlace = [&](std::int64_t token) {
        const auto i = static_cast<std::size_t>(token);
        return token >= 0 && i < places.size() && std::isfinite(places[i].x) && std::isfinite(places[i].y);
    };
    const auto pixelOf = [&](std::int64_t token) {
        const Point place = places[token];
        return frame.toPixels(place.x, place.y);
    };
    for (const auto& kind : kinds) {
        GatheredMarks marks;
        for (std::int64_t i = 0; i < std::ssize(places); ++i) {
            const bool isLeftOut = kind.inSets == 0 && i % stride != 0;
            if (m_choice.exact[i] + m_choice.sketched[i] == kind.inSets && hasPlace(i) && !isLeftOut)
                marks.add(pixelOf(i), i);
        }
        m_builder.points(marks.as(kind.name, PickId::Kind::Token, Marker::Circle, kind.radius, kind.fill, kind.stroke));
    }
    const auto markOf = [&](TokenIndex token) {
        const auto& kind = kinds[m_choice.exact[token] + m_choice.sketched[token]];
        return RingedMark{token, pixelOf(token), kind.radius + 0.4, Marker::Circle, kind.fill, kind.stroke};
    };
    std::vector<RingedMark> selected;
    for (const TokenIndex token : m_input.focus.selected)
        if (hasPlace(token)) selected.push_back(markOf(token));
    drawRingedMarks(m_builder, selected, m_theme);
    if (hasPlace(m_input.focus.hovered)) drawHoveredMark(m_builder, markOf(m_input.focus.hovered), m_theme);
}

PlotFrame LeveragePainter::tokens(const Box& area) {
    const auto n = static_cast<double>(m_data.exact.scores.size());
    const double high = n > 0 ? static_cast<double>(m_data.exact.scores[m_data.exact.order.front()]) : 1;
    // Room for the note above the marks.
    const Viewport::Range range = m_viewport.range.value_or(
        Viewport::Range{0, n, 0, std::max(1e-9, (1.04 + 2.4 * kNoteRow / area.height) * high)});
    const SubPlot plot(m_viewport, area, {range.xMin, range.xMax, AxisScale::Position, "Token position (0-based)"},
                       {range.yMin, range.yMax, AxisScale::Linear, "Leverage l, exact"});
    plot.open(m_builder, m_theme);
    std::vector<Point> places;
    for (std::size_t i = 0; i < m_data.exact.scores.size(); ++i)
        places.push_back({static_cast<double>(i) + 0.5, static_cast<double>(m_data.exact.scores[i])});
    clouds(plot.frame, places);
    std::vector<std::string> lines = {fmt::format("mean {} = rank {} / {}", formatShort(m_data.exact.sum / n),
                                                  formatCount(m_data.exact.rank), formatCount(std::llround(n)))};
    drawAcross(m_builder, plot.frame, m_data.exact.sum / n, {m_theme.ink, 1, {1, 3}});
    if (m_choice.budget > 0) {
        const double last =
            static_cast<double>(m_data.exact.scores[m_data.exact.order[static_cast<std::size_t>(m_choice.budget) - 1]]);
        drawAcross(m_builder, plot.frame, last, {m_theme.ink, 1, {5, 3}});
        lines.insert(lines.begin(),
                     fmt::format("rank {}: l ≥ {} stays", formatCount(m_choice.budget), formatShort(last)));
    }
    label(plot.frame, lines, Corner::TopLeft);
    return plot.close(m_builder, m_theme);
}

} // namespace kvscope
