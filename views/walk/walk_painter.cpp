// The three rows of a walk. The first one always spans a little more than -1 .. 1, because these two values are its
// meaning: beyond them a sign is certain, or the walk fails.
#include "views/walk/walk_picture.h"

#include "views/common/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kLeanRange = 1.25;

struct Rows {
    PlotFrame lean, quadratic;
    Box signs;
    double slot = 1; ///< pixels of a step

    double left(std::int64_t step) const { return lean.toPixels(step, 0).x; }
    double middle(std::int64_t step) const { return lean.toPixels(static_cast<double>(step) + 0.5, 0).x; }
};

double largestQ(const WalkPicture& p) {
    const WalkData::Walk& walk = *p.now.walk;
    double highest = 0;
    for (const auto* list : {&walk.log->quadratic, &walk.log->fairCoins, &walk.band.high})
        for (const double q : *list) highest = std::max(highest, q);
    return highest > 0 ? highest * 1.05 : 1;
}

constexpr double kLabelPitch = 12; // least distance of labels under each other

Rows rowsOf(const WalkPicture& p) {
    const double left = p.viewport.width >= 260 ? 74 : 40, right = 16,
                 bottom = (isLowDock(p.viewport) ? 22 : 40) + (p.viewport.forExport ? 16 : 0);
    const double height = std::max(24.0, p.viewport.height - p.top - bottom), width = p.viewport.width - left - right;
    const double signs = std::clamp(height * 0.16, 14.0, 44.0), gap = std::clamp(height * 0.035, 4.0, 12.0);
    const double rest = height - signs - 2 * gap;
    Rows rows;
    const Viewport::Range range =
        p.viewport.range.value_or(Viewport::Range{0, static_cast<double>(p.now.size()), 0, 1});
    const AxisSpec x{range.xMin, range.xMax, AxisScale::Linear, {}};
    rows.lean = {{left, p.top, width, rest * 0.46}, x, {-kLeanRange, kLeanRange, AxisScale::Linear, {}}};
    rows.signs = {left, p.top + rest * 0.46 + gap, width, signs};
    rows.quadratic = {
        {left, rows.signs.bottom() + gap, width, rest * 0.54}, x, {0, largestQ(p), AxisScale::Linear, {}}};
    rows.slot = width / (range.xMax - range.xMin);
    return rows;
}

/// Steps that the zoomed plot shows, among those that have their sign.
std::pair<std::int64_t, std::int64_t> shownSteps(const WalkPicture& p, const Rows& rows) {
    return {std::clamp<std::int64_t>(static_cast<std::int64_t>(rows.lean.x.low) - 1, 0, p.now.steps),
            std::clamp<std::int64_t>(static_cast<std::int64_t>(rows.lean.x.high) + 2, 0, p.now.steps)};
}

void paintGround(SceneBuilder& b, const WalkPicture& p, const Rows& rows) {
    for (const Box& box : {rows.lean.plot, rows.signs, rows.quadratic.plot}) {
        const double x = std::clamp(rows.left(p.now.steps), box.x, box.right());
        if (p.now.steps < p.now.size() && x < box.right())
            b.rectangle({x, box.y, box.right() - x, box.height}, p.theme.sunken);
    }
    for (const Tick& tick : linearTicks(rows.lean.x.low, rows.lean.x.high,
                                        std::clamp(static_cast<int>(rows.lean.plot.width / 60), 2, 7))) {
        const double x = rows.lean.toPixels(tick.value, 0).x;
        b.line({x, rows.lean.plot.y}, {x, rows.quadratic.plot.bottom()}, {p.theme.grid, 1, {}});
    }
}

/// Selected pairs as ticks above their signs, the hovered one as a line through all rows.
void paintFocus(SceneBuilder& b, const WalkPicture& p, const Rows& rows) {
    const auto& tokens = p.now.walk->log->tokens;
    for (std::int64_t step = 0; step < p.now.size(); ++step) {
        const TokenIndex token = tokens[step];
        const double x = rows.middle(step);
        if (token == p.input.focus.hovered)
            b.line({x, rows.lean.plot.y}, {x, rows.quadratic.plot.bottom()}, {p.theme.ink, 1.5, {}});
        if (std::ranges::binary_search(p.input.focus.selected, token))
            b.rectangle({x - 1, rows.lean.plot.bottom() + 1, 2, 5}, p.theme.ink);
    }
}

void paintLean(SceneBuilder& b, const WalkPicture& p, const Rows& rows) {
    const Box& plot = rows.lean.plot;
    const TextStyle label{FontFace::Monospace, 10};
    const double unit = rows.lean.toPixels(0, 0).y - rows.lean.toPixels(0, 1).y;
    for (const double line : {1.0, 0.0, -1.0}) {
        const double y = rows.lean.toPixels(0, line).y;
        b.line({plot.x, y}, {plot.right(), y},
               line == 0 ? Stroke{p.theme.grid, 1, {}} : Stroke{p.theme.errorLine, 1.2, {4, 3}});
        if ((line == 0 ? unit : 2 * unit) >= kLabelPitch)
            b.label({plot.x - 6, y},
                    line > 0   ? "+1"
                    : line < 0 ? "−1"
                               : "0",
                    label, p.theme.text2, HorizontalAlign::Right);
    }
    const auto [begin, end] = shownSteps(p, rows);
    std::vector<Point> line;
    std::vector<Point> up, down;
    for (std::int64_t step = begin; step < end; ++step) {
        const double lean = leanOf(*p.now.walk->log, step);
        line.push_back(rows.lean.toPixels(static_cast<double>(step) + 0.5, std::clamp(lean, -kLeanRange, kLeanRange)));
        if (std::abs(lean) > kLeanRange)
            (lean > 0 ? up : down).push_back({line.back().x, line.back().y + (lean > 0 ? 3.0 : -3.0)});
    }
    b.pushClip(plot);
    if (line.size() > 1) b.polyline(std::move(line), {p.theme.text1, 1.3, {}});
    if (!up.empty()) b.marks("beyond +1", std::move(up), Marker::TriangleUp, 2.2, p.theme.error);
    if (!down.empty()) b.marks("beyond −1", std::move(down), Marker::TriangleDown, 2.2, p.theme.error);
    b.popClip();
    b.line({plot.x, plot.y}, {plot.x, plot.bottom()}, {p.theme.axis, 1, {}});
}

/// Plus above the middle, filled; minus below it, hollow where there is room for an outline.
void paintSigns(SceneBuilder& b, const WalkPicture& p, const Rows& rows) {
    const auto [begin, end] = shownSteps(p, rows);
    const double half = rows.signs.height / 2 - 2, gap = rows.slot > 3 ? 1 : 0,
                 width = std::max(0.8, std::min(rows.slot - gap, 14.0));
    const double middle = rows.signs.y + rows.signs.height / 2;
    b.pushClip(rows.signs);
    for (std::int64_t step = begin; step < end; ++step) {
        const std::int8_t sign = p.now.walk->log->signs[step];
        const double x = rows.middle(step) - width / 2;
        if (sign > 0)
            b.rectangle({x, middle - half - 1, width, half}, p.theme.text1);
        else if (sign < 0 && width >= 4)
            b.rectangle({x + 0.5, middle + 1.5, width - 1, half - 1}, kTransparent, {p.theme.text2, 1, {}});
        else if (sign < 0)
            b.rectangle({x, middle + 1, width, half}, p.theme.control);
    }
    b.popClip();
}

void paintQuadratic(SceneBuilder& b, const WalkPicture& p, const Rows& rows) {
    const WalkData::Walk& walk = *p.now.walk;
    const auto [begin, end] = shownSteps(p, rows);
    const auto at = [&](const std::vector<double>& list, std::int64_t step) {
        return rows.quadratic.toPixels(static_cast<double>(step) + 0.5, list[step]);
    };
    std::vector<Point> band, fair, q;
    for (std::int64_t step = begin; step < end; ++step) {
        fair.push_back(at(walk.log->fairCoins, step));
        q.push_back(at(walk.log->quadratic, step));
        if (!walk.band.low.empty()) band.push_back(at(walk.band.high, step));
    }
    for (std::int64_t step = end; step-- > begin && !walk.band.low.empty();) band.push_back(at(walk.band.low, step));
    b.pushClip(rows.quadratic.plot);
    if (band.size() > 2) b.polygon(std::move(band), withAlpha(p.theme.control, 0.28));
    if (q.size() > 1) {
        b.polyline(std::move(fair), {p.theme.control, 1.4, {5, 3}});
        b.polyline(std::move(q), {p.policy, 2, {}});
    }
    b.popClip();
    const Box& plot = rows.quadratic.plot;
    const TextStyle label{FontFace::Monospace, 10};
    b.line({plot.x, plot.y}, {plot.x, plot.bottom()}, {p.theme.axis, 1, {}});
    double above = INFINITY; // height of the label before
    for (const Tick& tick :
         linearTicks(0, rows.quadratic.y.high, std::clamp(static_cast<int>(plot.height / 34), 2, 5))) {
        const double y = rows.quadratic.toPixels(0, tick.value).y;
        if (above - y < kLabelPitch) continue;
        above = y;
        b.line({plot.x - 4, y}, {plot.x, y}, {p.theme.axis, 1, {}});
        b.label({plot.x - 7, y}, formatShort(std::abs(tick.value)), label, p.theme.text2, HorizontalAlign::Right);
    }
}

void paintAxis(SceneBuilder& b, const WalkPicture& p, const Rows& rows) {
    const Box& plot = rows.quadratic.plot;
    const TextStyle label{FontFace::Monospace, 10}, title{FontFace::Interface, 11};
    b.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, {p.theme.axis, 1, {}});
    for (const Tick& tick :
         linearTicks(rows.lean.x.low, rows.lean.x.high, std::clamp(static_cast<int>(plot.width / 60), 2, 7))) {
        const double x = rows.lean.toPixels(tick.value, 0).x;
        b.line({x, plot.bottom()}, {x, plot.bottom() + 4}, {p.theme.axis, 1, {}});
        b.text({x, plot.bottom() + 7}, tick.label, label, p.theme.text2, HorizontalAlign::Centre, VerticalAlign::Top);
    }
    const std::string words = fmt::format("Pair of {} (0-based)", walkName(p.data, *p.now.walk->log));
    if (!isLowDock(p.viewport))
        b.text({plot.x + plot.width / 2, plot.bottom() + 21}, b.elide(words, title, plot.width), title, p.theme.text2,
               HorizontalAlign::Centre, VerticalAlign::Top);
    if (p.viewport.width < 260) return;
    const auto upright = [&](const char* text, const Box& box) {
        if (b.width(text, title) <= box.height)
            b.text({14, box.y + box.height / 2}, text, title, p.theme.text2, HorizontalAlign::Centre,
                   VerticalAlign::Middle, -90);
    };
    upright("yᵀη / (cR²)", rows.lean.plot);
    upright("Q", rows.quadratic.plot);
    b.label({rows.signs.x - 6, rows.signs.y + rows.signs.height / 2}, "η", title, p.theme.text2,
            HorizontalAlign::Right);
}

/// Signs so far along the top: + in the upper row, - in the lower row.
void paintSignRail(SceneBuilder& b, const WalkPicture& p, const Box& map) {
    const double slot = map.width / static_cast<double>(p.now.size());
    for (std::int64_t step = 0; step < p.now.steps; ++step) {
        const std::int8_t sign = p.now.walk->log->signs[step];
        if (sign != 0)
            b.rectangle(
                {map.x + slot * static_cast<double>(step), map.y - (sign > 0 ? 15 : 8), std::max(0.8, slot * 0.9), 6},
                sign > 0 ? p.theme.text1 : p.theme.control);
    }
}

double largestEntry(const WalkData::Walk& walk) {
    double largest = 0;
    for (const float entry : walk.kernel) largest = std::max(largest, std::abs(static_cast<double>(entry)));
    return largest;
}

} // namespace

void paintWalk(SceneBuilder& b, const WalkPicture& p) {
    const Rows rows = rowsOf(p);
    const Box all{rows.lean.plot.x, p.top, rows.lean.plot.width, rows.quadratic.plot.bottom() - p.top};
    paintGround(b, p, rows);
    paintLean(b, p, rows);
    paintSigns(b, p, rows);
    paintQuadratic(b, p, rows);
    b.pushClip(all);
    paintFocus(b, p, rows);
    b.popClip();
    paintAxis(b, p, rows);
    b.rectangle(all, kTransparent, {}, 0, {PickId::Kind::Cell, 0});
    setDataRange(b.scene(), {all, rows.lean.x, {}});
}

KernelScale::KernelScale(const WalkData::Walk& walk, const ParameterValues& options)
    : ColourScale(options.choice("scale") == "root" ? Kind::SignedRoot : Kind::Signed, "kernel", "cells", {}, false),
      m_walk(walk) {
    const double end = levelOfValue(walk.range > 0 ? walk.range : 1),
                 more = std::clamp(levelOfValue(largestEntry(walk)) - end, 0.0, end);
    setEnds(-end, end);
    stretchColumn(more, more); // towards the diagonal, which is far larger than the rest
    choose(ValueRange::parse(options.text(kValueRangeOption)));
}

void KernelScale::visitLevels(const VisitLevels& visit) const {
    std::vector<double> levels;
    for (const float entry : m_walk.kernel) levels.push_back(levelOfValue(static_cast<double>(entry)));
    visit(levels);
}

void paintKernel(SceneBuilder& b, const WalkPicture& p, const KernelScale& scale) {
    const double left = 52, bottom = p.viewport.forExport ? 56 : 40,
                 column = p.viewport.width >= 320 ? kLabelledColumnWidth + 14 : 12;
    const double side =
        std::max(40.0, std::min(p.viewport.width - left - column, p.viewport.height - p.top - 16 - bottom));
    const double leftOver = isLowDock(p.viewport) ? 0 : std::max(0.0, p.viewport.width - left - side - column);
    const Box map{left + std::floor(leftOver / 2), p.top + 16, side, side};
    const TextStyle label{FontFace::Monospace, 10}, title{FontFace::Interface, 11};
    std::vector<Colour> colours;
    for (const float entry : p.now.walk->kernel) colours.push_back(scale.colourOf(static_cast<double>(entry)));
    b.image(map, p.now.walk->side, p.now.walk->side, colours, {PickId::Kind::Cell, 0});
    b.rectangle(map, kTransparent, {p.theme.axis, 1, {}});
    paintSignRail(b, p, map);
    const auto size = static_cast<double>(p.now.size());
    for (const Tick& tick : linearTicks(0, size, std::clamp(static_cast<int>(side / 48), 2, 7))) {
        const double offset = tick.value / size * side;
        b.line({map.x + offset, map.bottom()}, {map.x + offset, map.bottom() + 4}, {p.theme.axis, 1, {}});
        b.text({map.x + offset, map.bottom() + 7}, tick.label, label, p.theme.text2, HorizontalAlign::Centre,
               VerticalAlign::Top);
        b.line({map.x - 4, map.y + offset}, {map.x, map.y + offset}, {p.theme.axis, 1, {}});
        b.label({map.x - 7, map.y + offset}, tick.label, label, p.theme.text2, HorizontalAlign::Right);
    }
    const std::string words = fmt::format("M of {}, pairs (0-based)", walkName(p.data, *p.now.walk->log));
    b.text({map.x, map.bottom() + 21}, b.elide(words, title, p.viewport.width - map.x - 8), title, p.theme.text2,
           HorizontalAlign::Left, VerticalAlign::Top);
    if (p.now.steps > 0 && p.now.steps < p.now.size()) { // the current pair
        const double offset = (static_cast<double>(p.now.steps) - 0.5) / size * side;
        b.line({map.x, map.y + offset}, {map.right(), map.y + offset}, {p.theme.ink, 1, {}});
        b.line({map.x + offset, map.y}, {map.x + offset, map.bottom()}, {p.theme.ink, 1, {}});
    }
    if (p.viewport.width >= 320) {
        drawColourColumn(b, {map.right() + 12, map.y, kLabelledColumnWidth, map.height}, scale.column(), p.theme);
    }
    setDataRange(b.scene(), {map, {0, size, AxisScale::Linear, {}}, {size, 0, AxisScale::Linear, {}}});
}

} // namespace kvscope
