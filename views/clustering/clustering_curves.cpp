// The contents of the reservoirs with a test of their distribution, and two curves independent of policies: clusters
// against the radius, and the covering radius against the number of greedy centres.
#include "views/clustering/clustering_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kRail = 12; // height of the value reservoir's rail

/// Line of a source: keys solid, keys before RoPE dashed, values dotted and without hue.
Stroke strokeOf(std::size_t index, Colour colour, const Theme& theme) {
    static const std::vector<double> dashes[] = {{}, {6, 3}, {2, 2}};
    return {index == 2 ? theme.text2 : colour, 1.8, dashes[index % 3]};
}

} // namespace

PlotFrame ClusteringPainter::delta(const Box& area) {
    const bool relative = m_options.choice("delta_scale") == "relative";
    double low = INFINITY, high = 0;
    for (const auto& curve : m_data.curves)
        for (const double radius : curve.radius) {
            low = std::min(low, relative ? radius : radius * curve.median);
            high = std::max(high, relative ? radius : radius * curve.median);
        }
    if (!(high > low)) low = 0, high = std::max(1.0, high);
    const SubPlot plot(m_viewport, area,
                       {low, high, AxisScale::Linear, relative ? "δ / " + medianWords(m_data) : "Radius δ"},
                       {0.8, 1.3 * static_cast<double>(m_data.most), AxisScale::Logarithmic, "Clusters m"});
    plot.open(m_builder, m_theme);
    for (std::size_t i = 0; i < m_data.curves.size(); ++i) {
        const auto& curve = m_data.curves[i];
        std::vector<Point> line;
        for (std::size_t p = 0; p < curve.radius.size(); ++p)
            if (curve.clusters[p] > 0)
                line.push_back(plot.frame.toPixels(relative ? curve.radius[p] : curve.radius[p] * curve.median,
                                                   curve.clusters[p]));
        if (line.size() > 1) m_builder.polyline(line, strokeOf(i, m_colour, m_theme));
        m_builder.marks(curve.source, std::move(line), Marker::TriangleDown, 2.6,
                        strokeOf(i, m_colour, m_theme).colour);
    }
    m_builder.popClip();
    m_builder.rectangle(plot.frame.plot, kTransparent, {}, 0, {PickId::Kind::Cell, -2});
    drawAxes(m_builder, plot.frame, plot.style, m_theme);
    return plot.frame;
}

PlotFrame ClusteringPainter::cover(const Box& area) {
    double low = INFINITY, high = 0;
    for (const double radius : m_data.coverRadius)
        if (radius > 0) {
            low = std::min(low, radius);
            high = std::max(high, radius);
        }
    if (high <= 0) low = 0.1, high = 1;
    const double count = std::max<double>(2, static_cast<double>(m_data.coverRadius.size()));
    const SubPlot plot(m_viewport, area, {1, count, AxisScale::Logarithmic, "Greedy centres k"},
                       {low / 1.1, high * 1.1, AxisScale::Logarithmic, "Covering radius"});
    plot.open(m_builder, m_theme);
    const auto chosen = m_data.centres ? std::ssize(m_data.centres->order) : 0;
    if (chosen > 0) drawUpright(m_builder, plot.frame, chosen, {m_theme.ink, 1, {5, 3}});
    std::vector<Point> line;
    for (std::size_t k = 0; k < m_data.coverRadius.size(); ++k)
        if (m_data.coverRadius[k] > 0) line.push_back(plot.frame.toPixels(k + 1, m_data.coverRadius[k]));
    if (line.size() > 1) m_builder.polyline(std::move(line), {m_colour, 1.8, {}});
    m_builder.popClip();
    if (chosen > 0)
        note(plot.frame,
             fmt::format("k = {}: radius {}", formatCount(chosen), formatShort(m_data.centres->radius.back())), true);
    m_builder.rectangle(plot.frame.plot, kTransparent, {}, 0, {PickId::Kind::Cell, -3});
    drawAxes(m_builder, plot.frame, plot.style, m_theme);
    return plot.frame;
}

PlotFrame ClusteringPainter::reservoir(const Box& area) {
    const SubgenLog::Head& stream = *m_data.stream;
    const auto n = static_cast<double>(stream.cluster.size());
    const Box below{area.x, area.y + kRail + 6, area.width, area.height - kRail - 6};
    const SubPlot plot(
        m_viewport, below, {0, n, AxisScale::Position, "Token position (0-based)"},
        {static_cast<double>(stream.representatives.size()), -0.5, AxisScale::Linear, "Cluster, in order of birth"});
    const PlotFrame& frame = plot.frame;
    m_builder.pushClip(frame.plot);
    GatheredMarks members, held;
    for (TokenIndex token = 0; token < m_state.read; ++token)
        members.add(frame.toPixels(token + 0.5, stream.cluster[token]), token);
    for (std::size_t c = 0; c < m_state.clusters; ++c)
        for (const TokenIndex token : m_state.clusterSlots[c]) held.add(frame.toPixels(token + 0.5, c), token);
    m_builder.points(members.as("members", PickId::Kind::Token, Marker::Circle, 1, withAlpha(m_theme.text3, 0.55), {}));
    m_builder.points(held.as("slots", PickId::Kind::Token, Marker::TriangleDown, 3, m_colour, {}));
    cursorLine(frame);
    m_builder.popClip();
    const Box rail{frame.plot.x, frame.plot.y - kRail - 8, frame.plot.width, kRail};
    m_builder.rectangle(rail, m_theme.sunken);
    for (const TokenIndex token : m_state.valueSlots)
        if (token >= 0) {
            const double x = frame.toPixels(token + 0.5, 0).x;
            m_builder.line({x, rail.y}, {x, rail.bottom()}, {withAlpha(m_colour, 0.6), 1, {}});
        }
    m_builder.label({rail.x - 4, rail.y + kRail / 2}, "M", {FontFace::Monospace, 10, FontWeight::Bold}, m_theme.text2,
                    HorizontalAlign::Right);
    drawAxes(m_builder, frame, plot.style, m_theme);
    return frame;
}

PlotFrame ClusteringPainter::sampling(const Box& area) {
    const Sampling sampling = samplingOf(*m_data.stream, m_state);
    const auto slots = static_cast<double>(sampling.drawn);
    double most = 1;
    for (const SamplingBin& bin : sampling.bins)
        most =
            std::max({most, static_cast<double>(bin.realised), slots * bin.ideal + 2 * std::sqrt(slots * bin.ideal)});
    const double bins = std::max<double>(1, static_cast<double>(sampling.bins.size()));
    const SubPlot plot(m_viewport, area, {0, bins, AxisScale::Linear, "Tokens by ‖v‖², rare to likely, in bins"},
                       {0, 1.15 * most, AxisScale::Linear, "Value slots in the bin"});
    const PlotFrame& frame = plot.frame;
    drawGrid(m_builder, frame, m_theme);
    m_builder.pushClip(frame.plot);
    for (std::size_t b = 0; b < sampling.bins.size(); ++b) {
        const SamplingBin& bin = sampling.bins[b];
        const Point top = frame.toPixels(static_cast<double>(b) + 0.12, bin.realised);
        const double right = frame.toPixels(static_cast<double>(b) + 0.88, 0).x, middle = (top.x + right) / 2;
        m_builder.rectangle({top.x, top.y, right - top.x, frame.plot.bottom() - top.y}, withAlpha(m_colour, 0.75), {},
                            0, {PickId::Kind::Cell, static_cast<std::int64_t>(b)});
        const double expected = slots * bin.ideal, twice = 2 * std::sqrt(slots * bin.ideal * (1 - bin.ideal));
        const double y = frame.toPixels(0, expected).y;
        m_builder.line({top.x - 1, y}, {right + 1, y}, {m_theme.ink, 2, {}});
        m_builder.line({middle, frame.toPixels(0, std::max(0.0, expected - twice)).y},
                       {middle, frame.toPixels(0, expected + twice).y}, {m_theme.ink, 1, {}});
    }
    m_builder.popClip();
    note(frame, fmt::format("χ² = {}, {} degrees of freedom", formatShort(sampling.chiSquare), sampling.degrees()),
         true);
    drawAxes(m_builder, frame, plot.style, m_theme);
    return frame;
}

std::vector<LegendEntry> ClusteringPainter::legend(const std::string& picture) const {
    std::vector<LegendEntry> entries;
    const auto diamond = [&](std::string label, bool filled) {
        entries.push_back(markEntry(std::move(label), Marker::Diamond, filled ? m_theme.anchor : kTransparent, 4,
                                    {filled ? m_theme.text1 : ballColour(), 1, {}}));
    };
    if (picture == "delta")
        for (std::size_t i = 0; i < m_data.curves.size(); ++i)
            entries.push_back(lineEntry(m_data.curves[i].source, strokeOf(i, m_colour, m_theme)));
    if (picture == "overview" && m_data.stream) {
        diamond("representative", true);
        diamond("cluster of one", false);
        const std::string& balls = m_options.choice("balls");
        if (balls != "none")
            entries.push_back(markEntry(balls == "head" ? "ball of max ‖k − x‖ ≤ δ" : "its members in this plane",
                                        Marker::Circle, withAlpha(m_colour, 0.1), 5, {ballColour(), 1.2, {}}));
    }
    if (picture == "overview" && m_data.centres)
        diamond(fmt::format("{} greedy centres", formatCount(std::ssize(m_data.centres->order))), true);
    if (picture == "reservoir") {
        entries.push_back({"held by a slot", Marker::TriangleDown, m_colour, {}, 4});
        entries.push_back({"member", Marker::Circle, withAlpha(m_theme.text3, 0.55), {}, 2});
        entries.push_back({"M: value reservoir", Marker::Square, m_colour, {}, 3});
    }
    if (picture == "sampling") {
        entries.push_back(areaEntry("realised", withAlpha(m_colour, 0.75)));
        entries.push_back(lineEntry("s ‖v‖²/μ, ± 2σ", {m_theme.ink, 2, {}}));
    }
    if (picture == "sizes" && m_data.stream)
        entries.push_back(
            areaEntry(fmt::format("{} of {}", formatCounted(static_cast<std::int64_t>(m_state.clusters), "cluster"),
                                  formatCounted(m_state.read, "token")),
                      m_colour));
    return entries;
}

} // namespace kvscope
