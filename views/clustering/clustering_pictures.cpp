// The clusters themselves: where they lie, when they were born, how large and how wide they are. A ball has the radius
// that its members really need, not delta.
#include "views/clustering/clustering_pictures.h"

#include "core/policies/policy.h"
#include "views/common/policy_style.h"
#include "views/common/token_marks.h"
#include "views/common/voronoi_tint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

constexpr std::size_t kMostBalls = 60;
constexpr std::size_t kMostBars = 300;

/// Indices of the largest numbers first, ties to the earlier.
std::vector<std::size_t> largestFirst(const std::vector<std::int64_t>& numbers) {
    std::vector<std::size_t> order(numbers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return numbers[a] > numbers[b]; });
    return order;
}

} // namespace

ClusteringPainter::ClusteringPainter(SceneBuilder& builder, const ViewInput& input, const ParameterValues& options,
                                     const Viewport& viewport, const ClusteringData& data)
    : m_builder(builder), m_input(input), m_options(options), m_viewport(viewport), m_data(data),
      m_state(data.stream ? streamState(*data.stream, input.cursor) : StreamState{}), m_theme(themeOf(viewport.theme)),
      m_colour(policyStyle(firstOf(PolicyFamily::Clusters), viewport.theme).colour) {}

Point ClusteringPainter::keyPlace(TokenIndex token) const {
    const auto columns = static_cast<std::size_t>(m_data.points.shape[1]);
    const float* row = m_data.points.data.data() + static_cast<std::size_t>(token) * columns;
    return {static_cast<double>(row[0]), columns > 1 ? static_cast<double>(row[1]) : 0};
}

std::vector<std::int64_t> ClusteringPainter::clusterSizes() const {
    return m_data.stream ? m_state.counts : m_data.centres ? m_data.centres->cellSize : std::vector<std::int64_t>{};
}

void ClusteringPainter::note(const PlotFrame& frame, const std::string& text, bool top) {
    const TextStyle style{FontFace::Interface, 11, FontWeight::SemiBold};
    if (frame.plot.height < 40 || frame.plot.width < 60) return;
    m_builder.labelOnCanvas({frame.plot.right() - 6, top ? frame.plot.y + 11 : frame.plot.bottom() - 11},
                            m_builder.elide(text, style, frame.plot.width - 14), style, m_theme.text1, m_theme,
                            HorizontalAlign::Right);
}

void ClusteringPainter::cursorLine(const PlotFrame& frame) {
    if (!m_input.cursor) return;
    drawUpright(m_builder, frame, m_state.read, {m_theme.ink, 1, {5, 3}});
}

Colour ClusteringPainter::ballColour() const {
    return blend(withAlpha(m_theme.ink, 0.35), m_colour); // the policy's green alone is as dim as the grey of the keys
}

std::vector<double> ClusteringPainter::ballRadii() const {
    if (m_options.choice("balls") == "head") return m_state.radii;
    std::vector<double> reach(m_state.clusters, 0);
    for (TokenIndex token = 0; token < m_state.read; ++token) {
        const auto c = static_cast<std::size_t>(m_data.stream->cluster[token]);
        const Point key = keyPlace(token), centre = keyPlace(m_data.stream->representatives[c]);
        reach[c] = std::max(reach[c], std::hypot(key.x - centre.x, key.y - centre.y));
    }
    return reach;
}

void ClusteringPainter::tint(const PlotFrame& frame) {
    std::vector<TintSite> sites;
    const auto add = [&](TokenIndex token) {
        sites.push_back({keyPlace(token), withAlpha(categoryColour(sites.size(), m_theme.id), 0.14)});
    };
    if (m_data.stream)
        std::for_each_n(m_data.stream->representatives.begin(), m_state.clusters, add);
    else if (m_data.centres)
        std::ranges::for_each(m_data.centres->order, add);
    m_builder.scene().items.push_back(voronoiTint(frame, sites));
}

void ClusteringPainter::balls(const PlotFrame& frame) {
    if (m_options.choice("balls") == "none") return;
    const double unit = frame.plot.width / (frame.x.high - frame.x.low); // the same in y
    const std::vector<std::size_t> order = largestFirst(m_state.counts);
    const std::vector<double> reach = ballRadii();
    const std::size_t count = std::min(order.size(), kMostBalls);
    const double strength = std::min(1.0, 8.0 / static_cast<double>(count)); // many lines stay transparent
    const Colour outline = withAlpha(ballColour(), 0.35 + 0.55 * strength);
    for (std::size_t i = count; i-- > 0;) {
        const std::size_t c = order[i];
        if (m_state.counts[c] < 2) continue;
        const Point at = keyPlace(m_data.stream->representatives[c]);
        m_builder.circle(frame.toPixels(at.x, at.y), reach[c] * unit, withAlpha(m_colour, 0.01 + 0.07 * strength),
                         {outline, 1.2, {}});
    }
}

void ClusteringPainter::representatives(const PlotFrame& frame) {
    GatheredMarks shared, alone;
    for (std::size_t c = 0; c < m_state.clusters; ++c) {
        const Point at = keyPlace(m_data.stream->representatives[c]);
        (m_state.counts[c] > 1 ? shared : alone).add(frame.toPixels(at.x, at.y), static_cast<std::int64_t>(c));
    }
    m_builder.points(
        alone.as("clusters of one", PickId::Kind::Cell, Marker::Diamond, 3.4, kTransparent, {ballColour(), 1.2, {}}));
    m_builder.points(
        shared.as("representatives", PickId::Kind::Cell, Marker::Diamond, 4, m_theme.anchor, {m_theme.text1, 1, {}}));
}

void ClusteringPainter::centreMarks(const PlotFrame& frame) {
    GatheredMarks centres;
    for (std::size_t i = 0; i < m_data.centres->order.size(); ++i) {
        const Point at = keyPlace(m_data.centres->order[i]);
        centres.add(frame.toPixels(at.x, at.y), static_cast<std::int64_t>(i));
    }
    m_builder.points(
        centres.as("centres", PickId::Kind::Cell, Marker::Diamond, 3.6, m_theme.anchor, {m_theme.text1, 1, {}}));
}

void ClusteringPainter::ring(const PlotFrame& frame, TokenIndex token) {
    const Point place = keyPlace(token), at = frame.toPixels(place.x, place.y);
    m_builder.circle(at, 4.5, kTransparent, {m_theme.casing, 3, {}});
    m_builder.circle(at, 4.5, kTransparent, {m_theme.ink, 1.3, {}}, {PickId::Kind::Token, token});
}

PlotFrame ClusteringPainter::plane(const Box& area) {
    Viewport::Range range{INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (TokenIndex token = 0; token < m_data.points.shape[0]; ++token) {
        const Point p = keyPlace(token);
        range = {std::min(range.xMin, p.x), std::max(range.xMax, p.x), std::min(range.yMin, p.y),
                 std::max(range.yMax, p.y)};
    }
    const double margin = 0.05 * std::max({range.xMax - range.xMin, range.yMax - range.yMin, 1e-6});
    range = m_viewport.range.value_or(
        Viewport::Range{range.xMin - margin, range.xMax + margin, range.yMin - margin, range.yMax + margin});
    const auto title = [&](int axis) {
        return fmt::format("PC {} ({} of variance)", axis + 1, formatPercent(m_data.explained[axis]));
    };
    SubPlot plot(m_viewport, area, {range.xMin, range.xMax, AxisScale::Linear, title(0)},
                 {range.yMin, range.yMax, AxisScale::Linear, title(1)});
    if (!m_viewport.range) makeAspectEqual(plot.frame.x, plot.frame.y, plot.frame.plot);
    plot.frame.plot = plotBoxFor(area, plot.frame.y, plot.style, *m_viewport.text);
    plot.open(m_builder, m_theme);
    if (m_options.flag("tint")) tint(plot.frame);
    if (m_data.stream) balls(plot.frame);
    GatheredMarks keys;
    const TokenIndex read = m_data.stream ? m_state.read : static_cast<TokenIndex>(m_data.points.shape[0]);
    for (TokenIndex token = 0; token < read; ++token)
        keys.add(plot.frame.toPixels(keyPlace(token).x, keyPlace(token).y), token);
    m_builder.points(keys.as("keys", PickId::Kind::Token, Marker::Circle, 1.3, withAlpha(m_theme.text3, 0.8), {}));
    if (m_data.stream)
        representatives(plot.frame);
    else if (m_data.centres)
        centreMarks(plot.frame);
    for (const TokenIndex token : m_input.focus.selected)
        if (token < read) ring(plot.frame, token);
    if (const TokenIndex hovered = m_input.focus.hovered; hovered >= 0 && hovered < read)
        drawHoverRing(m_builder, plot.frame.toPixels(keyPlace(hovered).x, keyPlace(hovered).y), m_theme);
    return plot.close(m_builder, m_theme);
}

PlotFrame ClusteringPainter::births(const Box& area) {
    const SubgenLog::Head& stream = *m_data.stream;
    const auto n = static_cast<double>(stream.cluster.size());
    // The axis grows in doublings and nothing is drawn ahead: whether m flattens is what the reader watches for.
    const double most = static_cast<double>(std::bit_ceil(std::max<std::size_t>(8, m_state.clusters)));
    const SubPlot plot(m_viewport, area, {0, n, AxisScale::Position, "Tokens read"},
                       {0, 1.08 * most, AxisScale::Linear, "Clusters m"});
    plot.open(m_builder, m_theme);
    std::vector<Point> past = {plot.frame.toPixels(0, 0)};
    for (std::size_t c = 0; c < m_state.clusters; ++c) {
        const double at = stream.representatives[c];
        past.push_back(plot.frame.toPixels(at, c));
        past.push_back(plot.frame.toPixels(at, c + 1));
    }
    past.push_back(plot.frame.toPixels(m_state.read, m_state.clusters));
    m_builder.polyline(past, {m_colour, 1.8, {}});
    cursorLine(plot.frame);
    m_builder.popClip();
    note(plot.frame, "m = " + formatCount(static_cast<std::int64_t>(m_state.clusters)), false);
    drawAxes(m_builder, plot.frame, plot.style, m_theme);
    return plot.frame;
}

PlotFrame ClusteringPainter::sizes(const Box& area) {
    std::vector<std::int64_t> counts = clusterSizes();
    std::ranges::sort(counts, std::greater<>());
    const double most = counts.empty() ? 1 : static_cast<double>(counts.front()),
                 bars = std::max<double>(1, static_cast<double>(counts.size()));
    const SubPlot plot(
        m_viewport, area,
        {0, bars, AxisScale::Linear, m_data.stream ? "Cluster, by size" : "Centre, by keys nearest to it"},
        {0.7, 1.4 * std::max(2.0, most), AxisScale::Logarithmic, "Tokens"});
    plot.open(m_builder, m_theme);
    const std::size_t stride = counts.size() / kMostBars + 1;
    for (std::size_t i = 0; i < counts.size(); i += stride) {
        if (counts[i] < 1) continue;
        const Point top = plot.frame.toPixels(i, counts[i]);
        const double width = plot.frame.plot.width / bars * static_cast<double>(stride);
        m_builder.rectangle(
            {top.x, top.y, std::max(0.6, width - (width > 3 ? 1 : 0)), plot.frame.plot.bottom() - top.y}, m_colour);
    }
    return plot.close(m_builder, m_theme);
}

PlotFrame ClusteringPainter::radii(const Box& area) {
    const SubgenLog::Head& stream = *m_data.stream;
    const double most = m_state.counts.empty() ? 2 : static_cast<double>(*std::ranges::max_element(m_state.counts));
    const SubPlot plot(m_viewport, area,
                       {0.8, 1.4 * std::max(2.0, most), AxisScale::Logarithmic, "Tokens of the cluster"},
                       {0, std::max(1e-6, 1.1 * stream.delta), AxisScale::Linear, "Radius max ‖k − x‖"});
    plot.open(m_builder, m_theme);
    drawAcross(m_builder, plot.frame, stream.delta, {m_theme.ink, 1, {5, 3}});
    GatheredMarks marks;
    for (std::size_t c = 0; c < m_state.clusters; ++c)
        marks.add(plot.frame.toPixels(m_state.counts[c], m_state.radii[c]), static_cast<std::int64_t>(c));
    m_builder.points(marks.as("radii", PickId::Kind::Cell, Marker::Diamond, 3.4, kTransparent, {m_colour, 1.1, {}}));
    m_builder.popClip();
    note(plot.frame, "δ = " + formatShort(stream.delta), false);
    drawAxes(m_builder, plot.frame, plot.style, m_theme);
    return plot.frame;
}

} // namespace kvscope
