// One way of drawing tokens where a view has given them a place: the same marks, the same order, the same rings.
#include "views/common/token_marks.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

void drawCloud(SceneBuilder& builder, const PlotFrame& frame, const TokenMarks& marks, TokenState state,
               std::int64_t stride, Marker marker, double radius, Colour fill, Stroke stroke) {
    GatheredMarks cloud;
    std::int64_t seen = 0;
    for (std::size_t i = 0; i < marks.places.size(); ++i) {
        const auto token = static_cast<TokenIndex>(i);
        if (marks.states[i] != state || !marks.hasPlace(token) || seen++ % stride != 0) continue;
        cloud.add(frame.toPixels(marks.places[i].x, marks.places[i].y), token);
    }
    builder.points(cloud.as(stateName(state), PickId::Kind::Token, marker, radius, fill, std::move(stroke)));
}

void drawMark(SceneBuilder& builder, const RingedMark& mark) {
    const double r = mark.radius;
    if (mark.marker == Marker::Square)
        builder.rectangle({mark.at.x - r, mark.at.y - r, 2 * r, 2 * r}, mark.fill, mark.stroke);
    else
        builder.circle(mark.at, r, mark.fill, mark.stroke);
}

RingedMark ringedMark(const TokenMarks& marks, const PlotFrame& frame, TokenIndex token, const Theme& theme) {
    const double radius = marks.keptRadius + 0.6;
    const Point at = frame.toPixels(marks.places[token].x, marks.places[token].y);
    switch (marks.states[token]) {
    case TokenState::Kept: return {token, at, radius, Marker::Circle, theme.kept, {}};
    case TokenState::Protected: return {token, at, radius, Marker::Square, theme.protectedToken, {}};
    case TokenState::Evicted: return {token, at, radius - 0.3, Marker::Circle, kTransparent, {theme.evicted, 1.2, {}}};
    case TokenState::AfterCut: break;
    }
    return {token, at, radius - 0.3, Marker::Circle, kTransparent, {theme.text3, 1.2, {}}};
}

void drawRings(SceneBuilder& builder, const PlotFrame& frame, const TokenMarks& marks, const TokenFocus& focus,
               const Theme& theme) {
    std::vector<RingedMark> selected;
    for (const TokenIndex token : focus.selected)
        if (marks.hasPlace(token)) selected.push_back(ringedMark(marks, frame, token, theme));
    drawRingedMarks(builder, selected, theme);
    if (!marks.hasPlace(focus.hovered)) return;
    drawHoveredMark(builder, ringedMark(marks, frame, focus.hovered, theme), theme);
}

std::int64_t countOf(const TokenMarks& marks, TokenState state) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < marks.places.size(); ++i)
        count += marks.states[i] == state && marks.hasPlace(static_cast<TokenIndex>(i)) ? 1 : 0;
    return count;
}

} // namespace

bool TokenMarks::hasPlace(TokenIndex token) const {
    if (token < 0 || static_cast<std::size_t>(token) >= places.size()) return false;
    const Point& place = places[token];
    return std::isfinite(place.x) && std::isfinite(place.y);
}

std::int64_t markStride(const TokenMarks& marks) {
    return std::max<std::int64_t>(1, (countOf(marks, TokenState::Evicted) + kMostTokenMarks - 1) / kMostTokenMarks);
}

std::int64_t drawTokenMarks(SceneBuilder& builder, const PlotFrame& frame, const TokenMarks& marks,
                            const TokenFocus& focus, const Theme& theme) {
    const std::int64_t evicted = countOf(marks, TokenState::Evicted), stride = markStride(marks);
    const double fade = focus.brushing ? 0.25 : 1, keptFade = focus.brushing ? 0.3 : 1;
    drawCloud(builder, frame, marks, TokenState::Evicted, stride, Marker::Circle, marks.evictedRadius, kTransparent,
              {withAlpha(theme.evicted, fade), 1, {}});
    drawCloud(builder, frame, marks, TokenState::Protected, 1, Marker::Square, marks.keptRadius,
              withAlpha(theme.protectedToken, keptFade), {});
    drawCloud(builder, frame, marks, TokenState::Kept, 1, Marker::Circle, marks.keptRadius,
              withAlpha(theme.kept, keptFade), {});
    drawRings(builder, frame, marks, focus, theme);
    return evicted - (evicted + stride - 1) / stride;
}

void drawRingedMarks(SceneBuilder& builder, const std::vector<RingedMark>& marks, const Theme& theme) {
    constexpr double kReach = 2; // from the mark to its ring
    for (const RingedMark& mark : marks) builder.circle(mark.at, mark.radius + kReach + 1, theme.casing, {});
    for (const RingedMark& mark : marks)
        builder.circle(mark.at, mark.radius + kReach, kTransparent, {theme.ink, 1.3, {}},
                       {PickId::Kind::Token, mark.token});
    for (const RingedMark& mark : marks) drawMark(builder, mark);
}

void drawHoverRing(SceneBuilder& builder, Point at, const Theme& theme) {
    constexpr double kRadius = 8;
    builder.circle(at, kRadius, kTransparent, {theme.casing, 4, {}});
    builder.circle(at, kRadius, kTransparent, {theme.ink, 2, {}});
}

void drawHoveredMark(SceneBuilder& builder, const RingedMark& mark, const Theme& theme) {
    drawHoverRing(builder, mark.at, theme);
    drawMark(builder, mark);
}

BeyondRange beyondRange(const PlotFrame& frame, const TokenMarks& marks) {
    BeyondRange beyond;
    const auto inside = [](const AxisSpec& axis, double value) {
        return value >= std::min(axis.low, axis.high) && value <= std::max(axis.low, axis.high);
    };
    for (std::size_t i = 0; i < marks.places.size(); ++i) {
        const Point& place = marks.places[i];
        if (!marks.hasPlace(static_cast<TokenIndex>(i)) || (inside(frame.x, place.x) && inside(frame.y, place.y)))
            continue;
        beyond.kept += marks.states[i] == TokenState::Kept ? 1 : 0;
        beyond.guarded += marks.states[i] == TokenState::Protected ? 1 : 0;
        beyond.evicted += marks.states[i] == TokenState::Evicted ? 1 : 0;
    }
    return beyond;
}

std::vector<LegendEntry> tokenLegend(const TokenMarks& marks, const Theme& theme) {
    std::vector<LegendEntry> legend = {
        {"kept " + formatCount(countOf(marks, TokenState::Kept)), Marker::Circle, theme.kept, {}, 3},
        ringEntry("evicted " + formatCount(countOf(marks, TokenState::Evicted)), {theme.evicted, 1.2, {}})};
    if (const std::int64_t guarded = countOf(marks, TokenState::Protected); guarded > 0)
        legend.push_back({"protected " + formatCount(guarded), Marker::Square, theme.protectedToken, {}, 3});
    return legend;
}

} // namespace kvscope
