// PyramidKV's budgets lie on a straight line from the first layer to the last. The authors' code and kvpress differ in
// rounding and in when they fall back to equal budgets (L5).
#include "core/policies/baselines/pyramid_budgets.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

PyramidBudgets uniformBudgets(const PyramidShape& shape) {
    const std::int64_t each = std::max<std::int64_t>(1, std::llrint(shape.capacity));
    return {std::vector<std::int64_t>(static_cast<std::size_t>(shape.layers), each), true};
}

int slopeDivisor(const PyramidShape& shape) { return shape.slopeOverLayers ? shape.layers : shape.layers - 1; }

PyramidBudgets integerBudgets(const PyramidShape& shape) {
    const std::int64_t free = std::llrint(shape.capacity) - shape.window; // b
    if (shape.tokens < 2 * free) return uniformBudgets(shape);
    auto least = static_cast<std::int64_t>(std::floor(static_cast<double>(free) / shape.beta));
    std::int64_t most = 2 * free - least;
    if (most >= shape.tokens - shape.window) {
        most = shape.tokens - shape.window;
        least = 2 * free - most;
    }
    const std::int64_t step = (most - least) / slopeDivisor(shape);
    PyramidBudgets budgets;
    for (int layer = 0; layer < shape.layers; ++layer) budgets.tokens.push_back(most - layer * step + shape.window);
    return budgets;
}

PyramidBudgets realBudgets(const PyramidShape& shape) {
    const double mean = shape.capacity;
    const auto n = static_cast<double>(shape.tokens), window = static_cast<double>(shape.window);
    double least = mean / shape.beta, most = 2 * mean - least;
    if (most >= n - window) {
        most = n - window;
        least = 2 * mean - most;
    }
    if (!(n >= most && most >= least && least >= window)) return uniformBudgets(shape);
    const double step = (most - least) / slopeDivisor(shape);
    PyramidBudgets budgets;
    for (int layer = 0; layer < shape.layers; ++layer) // halves to even, as Python rounds
        budgets.tokens.push_back(std::max<std::int64_t>(1, std::llrint(most - layer * step)));
    return budgets;
}

} // namespace

PyramidBudgets pyramidBudgets(const PyramidShape& shape) {
    assert(shape.layers >= 1 && shape.beta >= 1 && shape.capacity > 0 &&
           shape.capacity <= static_cast<double>(shape.tokens));
    if (shape.layers == 1 || shape.capacity <= static_cast<double>(shape.window)) return uniformBudgets(shape);
    return shape.schedule == PyramidShape::Schedule::Integer ? integerBudgets(shape) : realBudgets(shape);
}

} // namespace kvscope
