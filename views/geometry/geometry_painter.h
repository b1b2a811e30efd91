#pragma once

#include "views/geometry/geometry_data.h"
#include "views/view.h"

namespace kvscope {

/// Distributions as step outlines of 1.5 pixels, so that several can overlap.
Scene geometryHistogram(const GeometryData& data, const ViewInput& input, const Viewport& viewport);
/// Measured points with the bound as a curve; points on its wrong side in the colour of errors.
Scene geometryScatter(const GeometryData& data, const ViewInput& input, const Viewport& viewport);

/// False for a point on the wrong side of its own bound by more than float rounding.
bool holdsBound(const TheoremPoint& point, bool lemma);
/// "0.812 ± 0.004": mean and half of its 95 % interval of every series, all with the same decimals.
std::vector<std::string> meanTexts(const GeometryData& data);

} // namespace kvscope
