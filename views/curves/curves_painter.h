#pragma once

#include "core/parameters/parameters.h"
#include "views/curves/curves_data.h"
#include "views/view.h"

#include <optional>

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

} // namespace kvscope
