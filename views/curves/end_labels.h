#pragma once

#include "views/scene/axes.h"

#include <vector>

namespace kvscope {

/// Heights for labels beside the ends of lines: as near to them as labels of this pitch can be in sum of squares, in
/// the order of the ends, inside [top, bottom]. `ends` in any order; empty where they do not fit, or where one would
/// stand farther than `farthest` from its end.
std::vector<double> spreadLabels(const std::vector<double>& ends, double pitch, double top, double bottom,
                                 double farthest);

} // namespace kvscope
