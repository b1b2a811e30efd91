#pragma once

#include "core/parameters/parameters.h"
#include "views/curves/curves_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// Of the curves that hold a point; the scene has no curve that holds none. Complete, zooming apart.
Scene drawCurves(const CurvesData& data, const ViewInput& input, const ParameterValues& options,
                 const Viewport& viewport);

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
/// Nothing where it has no place there, as the bytes of one capture beside means over several.
std::optional<PresentPlace> presentPlace(const CurvesData& data, const ViewInput& input,
                                         const ParameterValues& options);

/// A hairline there, behind the curves.
void drawPresentLine(SceneBuilder& builder, const PlotFrame& frame, const PresentPlace& place, const Theme& theme);
/// The words beside it, where the fewest of these lines run.
void namePresentLine(SceneBuilder& builder, const PlotFrame& frame, const PresentPlace& place,
                     const std::vector<std::vector<Point>>& lines, const Theme& theme);

/// Heights for labels beside the ends of lines: as near to them as labels of this pitch can be in sum of squares, in
/// the order of the ends, inside [top, bottom]. `ends` in any order; empty where they do not fit, or where one would
/// stand farther than `farthest` from its end.
std::vector<double> spreadLabels(const std::vector<double>& ends, double pitch, double top, double bottom,
                                 double farthest);

} // namespace kvscope
