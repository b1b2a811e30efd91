#pragma once

#include <cstdint>
#include <vector>

namespace kvscope {

/// How PyramidKV distributes a cache over the layers: many tokens in the first layer, few in the last.
struct PyramidShape {
    enum class Schedule {
        Integer, ///< authors' code: smallest share and slope floored, the window on top
        Real,    ///< kvpress: real arithmetic, rounded at the end, the window included
    };
    Schedule schedule = Schedule::Integer;
    int layers = 1;
    std::int64_t tokens = 1;      ///< n, seen before the cut
    double capacity = 1;          ///< mean tokens per layer asked for, up to n; whole and at least 1 for Integer
    std::int64_t window = 0;      ///< W, kept in every layer
    double beta = 20;             ///< steepness, >= 1; the last layer gets about 1/beta of the mean
    bool slopeOverLayers = false; ///< L5: copies that divide the slope by L instead of L - 1
};

struct PyramidBudgets {
    std::vector<std::int64_t> tokens; ///< [layers] 1..n
    bool uniform = false;             ///< all layers fell back to the same number (L5)
};

/// The mean of the result can exceed the capacity where the integer slope is floored, and differ either way by the last
/// rounding of the real schedule. A capacity of at most the window, or a single layer, gives equal budgets.
PyramidBudgets pyramidBudgets(const PyramidShape& shape);

} // namespace kvscope
