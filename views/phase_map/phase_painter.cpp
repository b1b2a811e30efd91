// The cells of a phase map: a sequential map for a measure, the winner's identity with its letter otherwise.
#include "views/phase_map/phase_painter.h"

#include "core/metrics/measures.h"
#include "core/policies/selection.h"
#include "core/run/run.h"
#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kvscope {

namespace {

void drawWinner(SceneBuilder& builder, const ViewInput& input, const PhaseMapData& data, const PhaseCell& cell,
                const Box& box, PickId pick, ThemeId themeId) {
    const auto mark = [&](const std::string& text, Colour colour) {
        if (box.width >= 14 && box.height >= 14)
            builder.label(box.centre(), text, {FontFace::Interface, 11, FontWeight::SemiBold}, colour,
                          HorizontalAlign::Centre);
    };
    const int winner = data.winner(cell);
    if (winner == PhaseMapData::kTie) {
        builder.rectangle(box, themeOf(themeId).sunken, {}, 0, pick);
        return mark("=", themeOf(themeId).text2);
    }
    const PaneName& pane = data.panes[winner];
    const PaneIdentity identity = identityOf(input, pane, themeId);
    identity.drawArea(builder, box, pick);
    mark(std::string(1, pane.letter), textOn(blend(identity.areaFill(), themeOf(themeId).canvas)));
}

/// Stride at which labels fit.
std::size_t strideFor(double pitch, double least) {
    return static_cast<std::size_t>(std::max(1.0, std::ceil(least / pitch)));
}

} // namespace

ValueScale phaseScale(const PhaseMapData& data, const ParameterValues& options) {
    std::vector<double> values;
    for (const PhaseCell& cell : data.cells)
        if (cell.computed && !data.winners) values.push_back(cell.values.front());
    return {std::move(values), measureById(data.measure).isSigned, data.measure,
            "settings",        options.choice("colours"),          ValueRange::parse(options.text(kValueRangeOption))};
}

PhaseLayout phaseLayoutOf(const PhaseMapData& data, const std::vector<LegendEntry>& legend, const Viewport& viewport) {
    const TextStyle label{FontFace::Monospace, 10};
    double names = 0;
    for (std::size_t i = 0; i < data.y.texts.size(); ++i)
        names = std::max(names, viewport.text->measure(data.y.label(i), label).width);
    PhaseLayout layout;
    layout.rows = data.y.texts.size();
    layout.titles = viewport.width >= 220 && viewport.height >= 160;
    const double left = 14 + std::min(names, 0.3 * viewport.width) + (layout.titles ? 18 : 0);
    const double bottom = 20 + (layout.titles ? 18 : 0) + (viewport.forExport ? 16 : 0),
                 top = 28 + furtherLegendRows(viewport, legend);
    const double right = data.winners || viewport.width < 320 ? 0 : kLabelledColumnWidth + 6;
    layout.grid = {left, top, viewport.width - left - 12 - right, std::max(20.0, viewport.height - top - bottom)};
    layout.cellWidth = layout.grid.width / static_cast<double>(data.x.texts.size());
    layout.cellHeight = layout.grid.height / static_cast<double>(layout.rows);
    if (right > 0) layout.column = {layout.grid.right() + 8, layout.grid.y, kLabelledColumnWidth, layout.grid.height};
    return layout;
}

std::string PhaseAxis::label(std::size_t i) const {
    const std::string& text = texts.at(i);
    if (id != "budget") return text;
    const Budget budget = Budget::parse(text);
    if (budget.unit == Budget::Unit::Tokens) return formatCounted(std::llround(budget.value), "token");
    return budget.unit == Budget::Unit::Fraction ? formatShort(100 * budget.value) + " %" : text;
}

std::optional<double> placeOnAxis(const PhaseAxis& axis, const std::string& text) {
    for (std::size_t i = 0; i < axis.texts.size(); ++i)
        if (axis.texts[i] == text) return static_cast<double>(i);
    const bool isBudget = axis.id == "budget";
    Budget present;
    if (isBudget && !text.empty()) present = Budget::parse(text);
    double value = present.value;
    const char* end = text.data() + text.size();
    if (!axis.isNumeric || text.empty() ||
        (!isBudget && std::from_chars(text.data(), end, value) != std::from_chars_result{end, std::errc{}}))
        return std::nullopt;
    // Budgets in different units have no known order: 0.5 may or may not lie between 0.1 and 100t.
    const auto hasUnit = [&](const std::string& other) {
        return !isBudget || (Budget::parse(other).unit == present.unit && Budget::parse(other).curve == present.curve);
    };
    for (std::size_t i = 0; i + 1 < axis.numbers.size(); ++i)
        if (axis.numbers[i] <= value && value <= axis.numbers[i + 1] && hasUnit(axis.texts[i]) &&
            hasUnit(axis.texts[i + 1]))
            return static_cast<double>(i) + (value - axis.numbers[i]) / (axis.numbers[i + 1] - axis.numbers[i]);
    return std::nullopt;
}

std::string presentText(const ViewInput& input, const PhaseAxis& axis) {
    const PaneData* pane = activePane(input);
    if (!pane || !pane->result) return {};
    const RunRequest& request = pane->result->request;
    if (axis.id == "budget") return request.budget.text();
    return request.policy.values.has(axis.id) ? request.policy.values.text(axis.id) : std::string();
}

std::optional<Point> phasePresentPlace(const PhaseMapData& data, const ViewInput& input) {
    const auto x = placeOnAxis(data.x, presentText(input, data.x)), y = placeOnAxis(data.y, presentText(input, data.y));
    return x && y ? std::optional(Point{*x, *y}) : std::nullopt;
}

void drawPhaseCells(SceneBuilder& builder, const ViewInput& input, const PhaseLayout& layout, const PhaseMapData& data,
                    const ValueScale& scale, const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    for (std::size_t i = 0; i < data.cells.size(); ++i) {
        const PhaseCell& cell = data.cells[i];
        const Box box = layout.cell(i % data.x.texts.size(), i / data.x.texts.size());
        const PickId pick{PickId::Kind::Cell, static_cast<std::int64_t>(i)};
        if (!cell.computed)
            builder.rectangle(box, kTransparent, {theme.border, 1, {}}, 0, pick);
        else if (data.winner(cell) == PhaseMapData::kNoWinner)
            builder.rectangle(box, theme.notANumber, {}, 0, pick);
        else if (data.winners)
            drawWinner(builder, input, data, cell, box, pick, viewport.theme);
        else
            builder.rectangle(box, scale.colourOf(cell.values.front()), {}, 0, pick);
    }
    if (layout.column.width <= 0 || scale.isEmpty()) return;
    drawColourColumn(builder, layout.column, scale.column(), theme);
}

void drawPhaseAxes(SceneBuilder& builder, const PhaseLayout& layout, const PhaseMapData& data, const Theme& theme) {
    const TextStyle label{FontFace::Monospace, 10};
    double widest = 0;
    for (std::size_t i = 0; i < data.x.texts.size(); ++i)
        widest = std::max(widest, builder.width(data.x.label(i), label));
    const std::size_t xStep = strideFor(layout.cellWidth, widest + 8), yStep = strideFor(layout.cellHeight, 13);
    for (std::size_t x = 0; x < data.x.texts.size(); x += xStep) {
        const std::string text =
            builder.elide(data.x.label(x), label, std::max(layout.cellWidth * static_cast<double>(xStep) - 4, 20.0));
        builder.text({layout.centre(static_cast<double>(x), 0).x, layout.grid.bottom() + 13}, text, label, theme.text2,
                     HorizontalAlign::Centre);
    }
    for (std::size_t y = 0; y < data.y.texts.size(); y += yStep)
        builder.label({layout.grid.x - 5, layout.centre(0, static_cast<double>(y)).y},
                      builder.elide(data.y.label(y), label, layout.grid.x - 8 - (layout.titles ? 18 : 0)), label,
                      theme.text2, HorizontalAlign::Right);
    if (!layout.titles) return;
    builder.text({layout.grid.x + layout.grid.width / 2, layout.grid.bottom() + 30},
                 builder.elide(data.x.title, kPhaseTitle, layout.grid.width), kPhaseTitle, theme.text2,
                 HorizontalAlign::Centre);
    builder.text({14, layout.grid.y + layout.grid.height / 2},
                 builder.elide(data.y.title, kPhaseTitle, layout.grid.height), kPhaseTitle, theme.text2,
                 HorizontalAlign::Centre, VerticalAlign::Middle, -90);
}

void drawPhasePresent(SceneBuilder& builder, const PhaseLayout& layout, const PhaseMapData& data,
                      const ViewInput& input, const Theme& theme) {
    const auto place = phasePresentPlace(data, input);
    if (!place) return;
    const Point at = layout.centre(place->x, place->y);
    const double radius = std::clamp(0.3 * std::min(layout.cellWidth, layout.cellHeight), 4.0, 11.0);
    builder.circle(at, radius, kTransparent, {theme.casing, 4, {}});
    builder.circle(at, radius, kTransparent, {theme.ink, 2, {}});
}

} // namespace kvscope
