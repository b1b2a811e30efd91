#pragma once

#include "core/parameters/parameters.h"
#include "views/common/value_range.h"
#include "views/curves/curves_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// The complete scene, which cannot be zoomed. Curves without points are only in the legend.
Scene drawCurves(const CurvesData& data, const ViewInput& input, const ParameterValues& options,
                 const Viewport& viewport);

/// The values at the ends of the vertical axis.
ValueRange valuesOfAxis(const CurvesData& data, const ParameterValues& options);

/// A point of a curve, as the marks of a scene name it.
struct CurveMark {
    std::size_t curve = 0, point = 0;
};
/// The mark within 4 pixels of `at`.
std::optional<CurveMark> curveMarkAt(const CurvesData& data, const Scene& scene, Point at);

/// Where the active pane stands on the axis, as a value of the axis and in words: "now 25.0 %".
struct PresentPlace {
    double value = 0;
    std::string words;
};
/// Nothing where the pane has no place on the axis, such as bytes of one capture among means over several.
std::optional<PresentPlace> presentPlace(const CurvesData& data, const ViewInput& input,
                                         const ParameterValues& options);

/// Draws a hairline at that place, behind the curves.
void drawPresentLine(SceneBuilder& builder, const PlotFrame& frame, const PresentPlace& place, const Theme& theme);
/// Writes the words beside the hairline, where the fewest of `lines` run.
void namePresentLine(SceneBuilder& builder, const PlotFrame& frame, const PresentPlace& place,
                     const std::vector<std::vector<Point>>& lines, const Theme& theme);

/// Heights for labels beside the ends of lines, in the order of the ends, at least `pitch` apart and inside
/// [top, bottom]: the sum of the squared distances to the ends is the least. `ends` may be in any order. Empty where
/// the labels do not fit, or where one would stand farther than `farthest` from its end.
std::vector<double> spreadLabels(const std::vector<double>& ends, double pitch, double top, double bottom,
                                 double farthest);

} // namespace kvscope
