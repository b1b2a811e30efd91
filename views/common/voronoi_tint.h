#pragma once

#include "views/scene/axes.h"

#include <cstddef>
#include <vector>

namespace kvscope {

/// A coloured place of the plane, in data coordinates.
struct TintSite {
    Point at;
    Colour colour;
};

/// The plot of two linear axes tinted by the nearest site (Voronoi cells), in squares of two logical pixels; ties to
/// the earlier site. An item without pixels where there is no site.
ImageItem voronoiTint(const PlotFrame& frame, const std::vector<TintSite>& sites);

/// For each point the index of its nearest site in `sites`, which must not be empty; ties to the earlier one.
std::vector<std::size_t> nearestSites(const std::vector<TintSite>& sites, const std::vector<Point>& points);

} // namespace kvscope
