#pragma once

#include "views/scene/scene.h"

#include <array>
#include <cstddef>
#include <vector>

namespace kvscope {

/// Ear clipping of any simple polygon (either winding): indices of its triangles. O(n^2), for marks of a few dozen
/// corners. Fewer than three points, or none that clip, give nothing.
std::vector<std::array<std::size_t, 3>> triangulate(const std::vector<Point>& points);

/// Whether all corners turn the same way, once round: such a polygon is filled in one piece, without seams between
/// triangles.
bool isConvex(const std::vector<Point>& points);

/// The line cut where ImGui's joints fail it: at a sharp turn they thin both segments out, and beside a segment that is
/// hardly longer than the line is wide they bulge. Every piece begins where the one before ends. A closed line comes
/// back to its first point.
std::vector<std::vector<Point>> jointPieces(const std::vector<Point>& line, double width, bool closed);

/// The drawn pieces of a dashed line: on, off, on ... lengths repeat along the whole line.
std::vector<std::vector<Point>> dashes(const std::vector<Point>& line, const std::vector<double>& pattern, bool closed);

} // namespace kvscope
