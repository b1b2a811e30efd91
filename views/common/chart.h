#pragma once

#include "views/scene/axes.h"
#include "views/view.h"

#include <string>
#include <vector>

namespace kvscope {

/// What views with one plot and axes have in common: an empty scene of the viewport's size, the plot box under the rows
/// of a legend, and the provenance below an exported figure.
struct Chart {
    Scene scene;
    PlotFrame frame;
    AxesStyle style;
    std::vector<LegendEntry> legend;

    Chart(const Viewport& viewport, std::vector<LegendEntry> entries, AxisSpec x, AxisSpec y, double rightMargin = 0);
    SceneBuilder builder(const Viewport& viewport) { return {scene, *viewport.text}; }
};

/// Draws the legend above the plot, the axes over the data and the provenance under an exported figure (`wholeModel`:
/// of all heads). Returns the complete scene, whose plot can be zoomed if `zoomable`.
Scene finishChart(Chart& chart, const ViewInput& input, const Viewport& viewport, bool zoomable,
                  bool wholeModel = false);
/// With a provenance in the view's own words.
Scene finishChart(Chart& chart, const Viewport& viewport, bool zoomable, const std::string& provenance);

/// One of several plots in a scene: its axes have their room inside `area`.
struct SubPlot {
    PlotFrame frame;
    AxesStyle style;

    SubPlot(const Viewport& viewport, const Box& area, AxisSpec x, AxisSpec y);
    /// Grid first; what is drawn until `close` is cut at the plot's edge.
    void open(SceneBuilder& builder, const Theme& theme) const;
    /// Axes over the data.
    PlotFrame close(SceneBuilder& builder, const Theme& theme) const;
};

/// What is left for plots under a legend, above the provenance of an exported figure.
Box plotArea(const Viewport& viewport, const std::vector<LegendEntry>& legend);

/// By how much a legend along the upper edge is higher than one row.
double furtherLegendRows(const Viewport& viewport, const std::vector<LegendEntry>& legend);
/// Whether no label of such a legend is cut.
bool isTopLegendWhole(const Viewport& viewport, const std::vector<LegendEntry>& legend);
/// Draws such a legend: its rows begin at `left` where they fit there, else as far left of it as they need. Returns
/// their right end.
double drawTopLegend(SceneBuilder& builder, const Viewport& viewport, const std::vector<LegendEntry>& legend,
                     double left, double middle = 13);

/// Whether the canvas is too low for axis titles. An export keeps titles at lower heights: paper has no read-out.
inline bool isLowDock(const Viewport& viewport) { return viewport.height < (viewport.forExport ? 140 : 170); }

/// Where an exported figure comes from, along its lower edge; nothing on the screen.
void drawProvenance(SceneBuilder& builder, const ViewInput& input, const Viewport& viewport, bool wholeModel = false);
void drawProvenance(SceneBuilder& builder, const Viewport& viewport, const std::string& provenance);

} // namespace kvscope
