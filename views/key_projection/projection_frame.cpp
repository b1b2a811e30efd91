// Axes, legend, notes and caption around the marks of the key projection.
#include "views/key_projection/projection_frame.h"

#include "core/run/run.h"
#include "views/common/chart.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

constexpr double kNotePitch = 13;     // of the lines under a figure
constexpr double kLegendColumn = 112; // beside the plot of a low picture
constexpr double kRowEdge = 10;       // beside the row that panes share
const TextStyle kNote{FontFace::Interface, 10};

/// An embedding has no unit, variance or direction, so its axes name only the method.
AxisSpec axisOf(const ProjectionData& projection, int component, double low, double high) {
    if (projection.tsne) return {low, high, AxisScale::Linear, fmt::format("t-SNE {}", component + 1)};
    const auto& shares = projection.axes.explainedVariance;
    const auto index = static_cast<std::size_t>(component);
    const std::string share =
        index < shares.size() ? fmt::format(" ({} of variance)", formatPercent(shares[index])) : "";
    return {low, high, AxisScale::Linear, fmt::format("PC {}{}", component + 1, share)};
}

/// Drops the share of variance from a title that is longer than the axis.
void shortenTitle(AxisSpec& axis, double room, const TextService& text) {
    if (text.measure(axis.title, {FontFace::Interface, 11}).width > room)
        axis.title = axis.title.substr(0, axis.title.find(" ("));
}

/// At most so many lines; a cut text ends with an ellipsis.
std::vector<std::string> firstLines(const SceneBuilder& builder, const std::string& text, double width,
                                    std::size_t most) {
    std::vector<std::string> lines = builder.wrap(text, kNote, width);
    for (std::size_t i = most; i < lines.size(); ++i) lines[most - 1] += " " + lines[i];
    lines.resize(std::min(lines.size(), most));
    for (std::string& line : lines) line = builder.elide(line, kNote, width);
    return lines;
}

void drawCaption(SceneBuilder& builder, const std::vector<std::string>& lines, const Viewport& viewport) {
    double y = viewport.height - 6 - kNotePitch * static_cast<double>(lines.size());
    for (const std::string& line : lines) {
        builder.text({viewport.width / 2, y}, line, kNote, themeOf(viewport.theme).text2, HorizontalAlign::Centre,
                     VerticalAlign::Top);
        y += kNotePitch;
    }
}

/// On the screen: one line in the upper right corner of the plot.
void drawNotes(SceneBuilder& builder, const PlotFrame& frame, const std::string& notes, const Theme& theme) {
    if (notes.empty()) return;
    builder.labelOnCanvas({frame.plot.right() - 4, frame.plot.y + 9}, builder.elide(notes, kNote, frame.plot.width - 8),
                          kNote, theme.text2, theme, HorizontalAlign::Right);
}

} // namespace

std::string tsneLabel(const TsneRun& run) {
    return fmt::format("perplexity {:g}, seed {}{}", run.request.perplexity, run.request.seed,
                       run.repulsion == TsneRepulsion::Grid ? ", repulsion on a grid" : "");
}

std::string tsneNote(const TsneRun& run) {
    if (run.iteration < run.request.iterations)
        return fmt::format("t-SNE, {}: iteration {} of {}", tsneLabel(run), formatCount(run.iteration),
                           formatCount(run.request.iterations));
    return fmt::format("t-SNE, {}, {} iterations: KL {} nats", tsneLabel(run), formatCount(run.iteration),
                       formatFixed(run.divergence, 3));
}

ProjectionFrame::ProjectionFrame(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks,
                                 const Viewport& viewport, SceneBuilder& builder)
    : m_input(input), m_pane(pane), m_marks(marks), m_viewport(viewport), m_builder(builder),
      m_theme(themeOf(viewport.theme)), m_room(room()) {
    if (m_room.legend || m_room.column)
        m_legend = m_room.shared ? sharedLegend(input, marks, m_theme) : legendOf(input, pane, marks, m_theme);
    m_scale = !marks.shade.empty() && viewport.width >= 300 && viewport.height >= 150;
    setAxes(marks.range);
}

ProjectionFrame::Room ProjectionFrame::room() const {
    Room room;
    const double scale =
        m_viewport.forExport ? 1.5 : 1; // nobody can hover over a figure: its small panels name everything too
    const double width = scale * m_viewport.width, height = scale * m_viewport.height;
    room.legend = width >= 200 && height >= 160;
    room.column = !room.legend && width >= 2 * height && width >= kLegendColumn + 120 && height >= 3 * kLegendPitch;
    room.shared = m_viewport.besideOthers && !m_viewport.forExport && room.legend && m_marks.shade.empty() &&
                  m_marks.category.empty(); // else each has a legend of its own
    room.axes.titles = width >= 220 && height >= 180 && !room.shared;
    room.axes.tickLabels = width >= 180 && height >= 140 && !projectionOf(m_input).tsne;
    room.axes.forPaper = m_viewport.theme == ThemeId::Paper;
    room.caption = m_viewport.forExport;
    return room;
}

int ProjectionFrame::sharedRows() const {
    const double width = m_viewport.width - 2 * kRowEdge;
    const bool fits = m_builder.width(fmt::format("{}", fmt::join(sharedAxes(), ", ")), kNote) <= width;
    return fits ? legendRows(m_legend, width, 2, *m_viewport.text) : 2;
}

/// What panes share: their axes, and that they have one range.
std::vector<std::string> ProjectionFrame::sharedAxes() const {
    return {m_frame.x.title + " × " + m_frame.y.title, "one range for all panes"};
}

void ProjectionFrame::setAxes(const Viewport::Range& range) {
    m_frame.x = axisOf(projectionOf(m_input), m_marks.xAxis, range.xMin, range.xMax);
    m_frame.y = axisOf(projectionOf(m_input), m_marks.yAxis, range.yMin, range.yMax);
    if (m_room.caption)
        m_caption = firstLines(m_builder, fmt::format("{}", fmt::join(notes(), " · ")), m_viewport.width - 16, 2);
    const double top = m_room.legend && !m_room.shared ? 26 + furtherLegendRows(m_viewport, m_legend) : 4;
    const double bottom = m_room.caption       ? kNotePitch * static_cast<double>(m_caption.size()) + 4
                          : m_room.shared      ? kLegendPitch * sharedRows() + 2
                          : m_room.axes.titles ? 4
                                               : 0;
    const double left = m_room.column ? 8 + kLegendColumn : 8;
    const Box area{left, top, m_viewport.width - left - 4 - (m_scale ? kLabelledColumnWidth + 6 : 0),
                   m_viewport.height - top - bottom - 4};
    m_frame.plot = plotBoxFor(area, m_frame.y, m_room.axes, *m_viewport.text);
    if (!m_viewport.range) makeAspectEqual(m_frame.x, m_frame.y, m_frame.plot);
    m_frame.plot = plotBoxFor(area, m_frame.y, m_room.axes, *m_viewport.text);
    if (m_room.shared) return;
    shortenTitle(m_frame.x, m_frame.plot.width, *m_viewport.text);
    shortenTitle(m_frame.y, m_frame.plot.height, *m_viewport.text);
}

/// Notes on the picture: method and source, thinning, tokens beyond the range, and a figure's provenance.
std::vector<std::string> ProjectionFrame::notes() const {
    std::vector<std::string> notes;
    if (const auto& run = projectionOf(m_input).tsne) notes.push_back(tsneNote(*run));
    if (const std::string& source = projectionOf(m_input).source; source == "values" || source == "queries")
        notes.push_back(source == "values" ? "values of the KV head"
                                           : fmt::format("queries of query head {}", m_input.queryHead.value));
    if (projectionOf(m_input).source == "keys_pre_rope") notes.emplace_back("keys before RoPE");
    if (m_marks.colourBy == "cluster" && projectionOf(m_input).centres.empty())
        notes.emplace_back("looking for the greedy centres…");
    if (m_marks.tinted) notes.push_back(tintNote(projectionOf(m_input), m_marks));
    if (const std::string crowd = crowdNote(m_marks); !crowd.empty()) notes.push_back(crowd);
    if (m_marks.crowd.beyond > 0) notes.push_back(formatCounted(m_marks.crowd.beyond, "token") + " beyond the range");
    if (m_pane.result->simulated && !m_room.caption) notes.push_back("simulated on full-attention tensors");
    if (m_room.caption) {
        ViewInput own = m_input;
        own.cut = m_pane.result->request.cut; // a recorded list has its own cut
        notes.push_back(provenance(own, {&m_pane}));
    }
    return notes;
}

void ProjectionFrame::drawBehind() { drawGrid(m_builder, m_frame, m_theme); }

void ProjectionFrame::drawAround() {
    drawAxes(m_builder, m_frame, m_room.axes, m_theme);
    if (m_scale)
        drawColourColumn(
            m_builder, {m_frame.plot.right() + 10, m_frame.plot.y, kLabelledColumnWidth, m_frame.plot.height},
            m_marks.scale ? m_marks.scale->column() : ColourColumnSpec{"viridis", false, m_marks.shadeTicks, {}},
            m_theme);
    if (m_room.shared)
        drawSharedRow();
    else if (m_room.column)
        drawLegend(m_builder, {8, 14}, kLegendColumn, m_legend, m_theme,
                   static_cast<int>(m_viewport.height / kLegendPitch));
    else
        drawTopLegend(m_builder, m_viewport, m_legend, m_frame.plot.x, 15);
    if (m_room.caption)
        drawCaption(m_builder, m_caption, m_viewport);
    else
        drawNotes(m_builder, m_frame, fmt::format("{}", fmt::join(notes(), " · ")), m_theme);
}

/// The shared row: the legend under the first pane's plot, the axes' names under the second.
void ProjectionFrame::drawSharedRow() {
    const auto ready = readyPanes(m_input);
    const int rows = sharedRows();
    const double width = m_viewport.width - 2 * kRowEdge;
    double y = m_viewport.height - 4 - kLegendPitch * (rows - 0.5);
    if (!ready.empty() && ready.front() == &m_pane)
        drawLegend(m_builder, {kRowEdge, y}, width, m_legend, m_theme, rows);
    if (ready.size() < 2 || ready[1] != &m_pane) return;
    std::vector<std::string> lines{fmt::format("{}", fmt::join(sharedAxes(), ", "))};
    if (m_builder.width(lines.front(), kNote) > width) lines = sharedAxes();
    for (const std::string& whole : lines) {
        const std::string line = m_builder.elide(whole, kNote, width);
        m_builder.label({kRowEdge + width, y}, line, kNote, m_theme.text2, HorizontalAlign::Right);
        y += kLegendPitch;
    }
}

} // namespace kvscope
