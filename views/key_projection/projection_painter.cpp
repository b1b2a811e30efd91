// Paints the projection: evicted tokens first and kept ones last, so that kept tokens stay visible, then selected and
// hovered tokens and centres.
#include "views/key_projection/projection_marks.h"

#include "views/common/token_marks.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

namespace {

/// Radii of the design, smaller in a crowd.
struct Radii {
    double kept, evicted;
};

Radii radiiFor(std::int64_t tokens) {
    const double shrink = tokens <= 8000 ? 1.0 : std::max(0.45, std::sqrt(8000.0 / static_cast<double>(tokens)));
    return {2.3 * shrink, 2.0 * shrink};
}

/// Marks of tokens.
PointCloudItem cloudOf(const GatheredMarks& from, const char* name, Marker marker, double radius, Colour fill,
                       Stroke stroke) {
    return from.as(name, PickId::Kind::Token, marker, radius, fill, std::move(stroke));
}

Point pixelOf(const PlotFrame& frame, const ProjectionData& projection, const ProjectionMarks& marks,
              TokenIndex token) {
    const Point p = keyPoint(projection, marks, token);
    return frame.toPixels(p.x, p.y);
}

bool isInRange(const PlotFrame& frame, Point p) {
    return p.x >= frame.x.low && p.x <= frame.x.high && p.y >= frame.y.low && p.y <= frame.y.high;
}

/// A copy of the fields that tell where a token lies and whether it is kept.
ProjectionMarks placesOf(const ProjectionMarks& marks) {
    ProjectionMarks places;
    places.xAxis = marks.xAxis;
    places.yAxis = marks.yAxis;
    places.states = marks.states;
    return places;
}

bool isDrawn(const ProjectionMarks& marks, TokenIndex token) {
    const TokenState state = marks.states[token];
    if (state == TokenState::AfterCut) return marks.showAfterCut;
    return state != TokenState::Evicted || !marks.retainedOnly;
}

class MarkPainter {
public:
    MarkPainter(SceneBuilder& builder, const PlotFrame& frame, const ViewInput& input, const PaneData& pane,
                const ProjectionMarks& marks, const Theme& theme)
        : m_builder(builder), m_frame(frame), m_input(input), m_pane(pane), m_marks(marks),
          m_projection(projectionOf(input)), m_theme(theme), m_radii(radiiFor(input.capture->info().numTokens)) {}

    /// Faint, so that marks of the same colour stand out.
    void drawTint() {
        if (!m_marks.tinted) return;
        std::vector<TintSite> sites = centreSites(m_projection, m_marks, m_theme.id);
        for (TintSite& site : sites) site.colour = withAlpha(site.colour, 0.16);
        m_builder.scene().items.push_back(voronoiTint(m_frame, sites));
    }

    void drawClouds() {
        if (!m_marks.shade.empty() || !m_marks.category.empty()) return drawShaded();
        GatheredMarks kept, guarded, evicted, later;
        kept.reserve(m_marks.keptTotal);
        if (!m_marks.retainedOnly && !m_marks.crowd.density)
            evicted.reserve(m_marks.evictedTotal / m_marks.crowd.stride + 1);
        std::int64_t evictedSeen = 0;
        for (std::size_t i = 0; i < m_marks.states.size(); ++i) {
            const auto token = static_cast<TokenIndex>(i);
            const TokenState state = m_marks.states[i];
            if (!isDrawn(m_marks, token) ||
                (state == TokenState::Evicted && (m_marks.crowd.density || isLeftOut(token, evictedSeen))))
                continue;
            GatheredMarks& cloud = state == TokenState::Kept        ? kept
                                   : state == TokenState::Protected ? guarded
                                   : state == TokenState::Evicted   ? evicted
                                                                    : later;
            cloud.add(pixelOf(m_frame, m_projection, m_marks, token), token);
        }
        const double fade = m_input.focus.brushing ? 0.25 : 1, keptFade = m_input.focus.brushing ? 0.3 : 1;
        m_builder.points(cloudOf(later, "after the cut", Marker::Circle, m_radii.evicted * 0.7,
                                 withAlpha(m_theme.text3, 0.5 * fade), {}));
        if (m_marks.crowd.density)
            drawDensity(TokenState::Evicted, fade);
        else
            m_builder.points(cloudOf(evicted, "evicted", Marker::Circle, m_radii.evicted, kTransparent,
                                     {withAlpha(m_theme.evicted, fade), 1, {}}));
        drawQueries(fade);
        m_builder.points(cloudOf(guarded, "protected", Marker::Square, m_radii.kept,
                                 withAlpha(m_theme.protectedToken, keptFade), {}));
        const Colour keptColour = m_marks.crowd.keptToo ? kTransparent : withAlpha(m_theme.kept, keptFade);
        m_builder.points(cloudOf(kept, "kept", Marker::Circle, m_radii.kept, keptColour, {}));
    }

    /// The same marks, filled and hollow, coloured by a value in steps, or by cluster.
    void drawShaded() {
        const double fade = m_input.focus.brushing ? 0.25 : 1;
        const int steps = stepCount();
        for (const TokenState state :
             {TokenState::AfterCut, TokenState::Evicted, TokenState::Protected, TokenState::Kept}) {
            if (m_marks.crowd.density &&
                (state == TokenState::Evicted || (state == TokenState::Kept && m_marks.crowd.keptToo))) {
                drawDensity(state, fade);
                continue;
            }
            std::vector<GatheredMarks> clouds(static_cast<std::size_t>(steps) + 1); // the last: no value
            std::int64_t seen = 0;
            for (std::size_t i = 0; i < m_marks.states.size(); ++i) {
                const auto token = static_cast<TokenIndex>(i);
                if (m_marks.states[i] != state || !isDrawn(m_marks, token) ||
                    (state == TokenState::Evicted && isLeftOut(token, seen)))
                    continue;
                clouds[stepOf(i)].add(pixelOf(m_frame, m_projection, m_marks, token), token);
            }
            for (int step = 0; step <= steps; ++step)
                if (!clouds[step].points().empty()) drawStep(clouds[step], state, withAlpha(stepColour(step), fade));
        }
        drawQueries(fade);
    }

    /// Diamonds in the colours of their clusters, with numbers: colours alone would be hard to name, and from the
    /// seventeenth cluster on they repeat.
    void drawCentres() {
        if (m_marks.category.empty()) return;
        std::vector<Box> taken;
        for (std::size_t i = 0; i < m_projection.centres.size(); ++i) {
            const TokenIndex token = m_projection.centres[i];
            GatheredMarks centre;
            centre.add(pixelOf(m_frame, m_projection, m_marks, token), token);
            m_builder.points(cloudOf(centre, "centres", Marker::Diamond, 5,
                                     stepColour(stepOf(static_cast<std::size_t>(token))), {m_theme.ink, 1.2, {}}));
            nameCentre(centre.points().front(), std::to_string(i), taken);
        }
    }

    /// A needle stands out of the crowd; many selected tokens are a crowd themselves.
    void drawSelection() {
        const double radius = m_radii.kept + (m_input.focus.selected.size() <= kFewSelected ? 1.4 : 0.6);
        std::vector<RingedMark> selected;
        for (const TokenIndex token : m_input.focus.selected)
            if (isDrawn(m_marks, token)) selected.push_back(ownMark(token, radius));
        drawRingedMarks(m_builder, selected, m_theme);
    }

    void drawAnchor() {
        if (const auto anchor = anchorMark(m_input, m_pane, m_marks))
            m_builder.mark(m_frame.toPixels(anchor->at.x, anchor->at.y), Marker::Star, 7, m_theme.anchor,
                           {m_theme.text1, 1, {}});
    }

    void drawHover() {
        const TokenIndex token = m_input.focus.hovered;
        if (token < 0 || token >= static_cast<TokenIndex>(m_marks.states.size()) || !isDrawn(m_marks, token)) return;
        drawHoveredMark(m_builder, ownMark(token, m_radii.kept + 1.4), m_theme);
    }

private:
    static constexpr int kSteps = 24; ///< of a scale
    static constexpr std::size_t kFewSelected = 128;

    /// Whether thinning skips an evicted token in the range, or the token lies beyond it; `seen` counts those in the
    /// range.
    bool isLeftOut(TokenIndex token, std::int64_t& seen) const {
        return !isInRange(m_frame, keyPoint(m_projection, m_marks, token)) ||
               (m_marks.crowd.stride > 1 && seen++ % m_marks.crowd.stride != 0);
    }

    /// The density, and invisible marks of its tokens for hovering and lasso.
    void drawDensity(TokenState state, double fade) {
        const auto gather = [frame = m_frame, data = m_input.data.value, marks = placesOf(m_marks), state] {
            const auto& projection = static_cast<const ProjectionData&>(*data);
            GatheredMarks points;
            for (TokenIndex token = 0; token < std::ssize(marks.states); ++token)
                if (marks.states[token] == state && isInRange(frame, keyPoint(projection, marks, token)))
                    points.add(pixelOf(frame, projection, marks, token), token);
            return points;
        };
        m_builder.points(
            GatheredMarks::later(gather, stateName(state), PickId::Kind::Token, Marker::Circle, m_radii.evicted));
        if (std::exchange(m_densityDrawn, true)) return;
        const DensityGrid& grid = *m_marks.crowd.density;
        const Viewport::Range covered = grid.covered();
        const Point from = m_frame.toPixels(covered.xMin, covered.yMax),
                    to = m_frame.toPixels(covered.xMax, covered.yMin);
        const Box box{from.x, from.y, to.x - from.x, to.y - from.y};
        const bool isPlain = m_marks.shade.empty() && m_marks.category.empty() && !m_marks.crowd.keptToo;
        m_builder.scene().items.push_back(isPlain ? grid.image(box, withAlpha(m_theme.evicted, fade))
                                                  : grid.image(box, [&](const DensityGrid::Cell& cell) {
                                                        return withAlpha(cellColour(cell), fade);
                                                    }));
    }

    Colour cellColour(const DensityGrid::Cell& cell) const {
        if (!m_marks.category.empty()) return stepColour(static_cast<int>(cell.category));
        return m_marks.shade.empty() ? blend(withAlpha(m_theme.kept, static_cast<double>(cell.shade)), m_theme.evicted)
                                     : stepColour(stepOfShade(cell.shade));
    }

    int stepCount() const { return m_marks.category.empty() ? kSteps : static_cast<int>(kCategoryColours); }

    int stepOf(std::size_t token) const {
        if (!m_marks.category.empty()) return m_marks.category[token];
        return stepOfShade(m_marks.shade[token]);
    }

    static int stepOfShade(float shade) {
        return std::isnan(shade) ? kSteps : std::min(kSteps - 1, static_cast<int>(shade * kSteps));
    }

    Colour stepColour(int step) const {
        if (step == stepCount()) return m_theme.notANumber;
        return m_marks.category.empty() ? colourMap("viridis", (step + 0.5) / kSteps)
                                        : categoryColour(static_cast<std::size_t>(step), m_theme.id);
    }

    /// Writes the name beside the diamond, on the side with room; leaves it out where it overlaps one or does not fit.
    void nameCentre(Point at, const std::string& name, std::vector<Box>& taken) {
        const TextStyle style{FontFace::Monospace, 10, FontWeight::Bold};
        const double width = m_builder.width(name, style) + 4, height = 13;
        const double x = at.x + 7 + width <= m_frame.plot.right() ? at.x + 7 : at.x - 7 - width;
        const Box box{x, at.y - height / 2, width, height};
        const auto inside = [&](Point p) { return m_frame.plot.contains(p); };
        const auto meets = [&](const Box& b) {
            return b.x < box.right() && box.x < b.right() && b.y < box.bottom() && box.y < b.bottom();
        };
        if (!inside({box.x, box.y}) || !inside({box.right(), box.bottom()}) || std::ranges::any_of(taken, meets))
            return;
        taken.push_back(box);
        m_builder.rectangle(box, withAlpha(m_theme.canvas, 0.8), {}, 3);
        m_builder.label({x + width / 2, at.y}, name, style, m_theme.text1, HorizontalAlign::Centre);
    }

    void drawStep(const GatheredMarks& points, TokenState state, Colour colour) {
        const bool hollow = state == TokenState::Evicted || state == TokenState::AfterCut;
        const Marker marker = state == TokenState::Protected ? Marker::Square : Marker::Circle;
        m_builder.points(cloudOf(points, stateName(state), marker, hollow ? m_radii.evicted : m_radii.kept + 0.3,
                                 hollow ? kTransparent : colour, hollow ? Stroke{colour, 1, {}} : Stroke{}));
    }

    void drawQueries(double fade) {
        if (!m_marks.showQueries || m_projection.queries.empty()) return;
        std::vector<Point> points;
        const std::int64_t components = m_projection.queries.shape[1];
        for (std::int64_t i = 0; i < m_projection.queries.shape[0]; ++i) {
            const float* row = m_projection.queries.data.data() + i * components;
            points.push_back(m_frame.toPixels(row[m_marks.xAxis], row[m_marks.yAxis]));
        }
        m_builder.marks("queries", std::move(points), Marker::TriangleUp, 2.4, kTransparent,
                        {withAlpha(m_theme.query, 0.7 * fade), 1, {}});
        const float* mean = m_projection.queryMean.data.data();
        m_builder.marks("query mean", {m_frame.toPixels(mean[m_marks.xAxis], mean[m_marks.yAxis])}, Marker::TriangleUp,
                        6, m_theme.query, {m_theme.text1, 1, {}});
    }

    RingedMark ownMark(TokenIndex token, double r) const {
        const Point at = pixelOf(m_frame, m_projection, m_marks, token);
        const bool byState = m_marks.shade.empty() && m_marks.category.empty();
        const auto own = [&](Colour ofState) {
            return byState ? ofState : stepColour(stepOf(static_cast<std::size_t>(token)));
        };
        switch (m_marks.states[token]) {
        case TokenState::Kept: return {token, at, r, Marker::Circle, own(m_theme.kept), {}};
        case TokenState::Protected: return {token, at, r, Marker::Square, own(m_theme.protectedToken), {}};
        case TokenState::Evicted:
            return {token, at, r - 0.3, Marker::Circle, kTransparent, {own(m_theme.evicted), 1.2, {}}};
        case TokenState::AfterCut: break;
        }
        return {token, at, r - 0.6, Marker::Circle, m_theme.text3, {}};
    }

    SceneBuilder& m_builder;
    const PlotFrame& m_frame;
    const ViewInput& m_input;
    const PaneData& m_pane;
    const ProjectionMarks& m_marks;
    const ProjectionData& m_projection;
    const Theme& m_theme;
    Radii m_radii;
    bool m_densityDrawn = false;
};

} // namespace

void drawMarks(SceneBuilder& builder, const PlotFrame& frame, const ViewInput& input, const PaneData& pane,
               const ProjectionMarks& marks, const Theme& theme) {
    MarkPainter painter(builder, frame, input, pane, marks, theme);
    builder.pushClip(frame.plot);
    painter.drawTint();
    painter.drawClouds();
    painter.drawSelection();
    painter.drawCentres();
    painter.drawAnchor();
    painter.drawHover();
    builder.popClip();
}

} // namespace kvscope
