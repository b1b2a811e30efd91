#pragma once

#include "core/parameters/parameters.h"

#include <cstdint>

namespace kvscope {

/// Maps slider positions to values from min to max, in steps or continuous, linear or logarithmic. Pure arithmetic.
struct SliderScale {
    double min = 0, max = 1;
    double step = 0; ///< 0: continuous
    bool logarithmic = false;

    /// The scale of a parameter; `tokens`: number of tokens before the cut, where the range ends there.
    static SliderScale of(const ParameterSpec& spec, std::int64_t tokens);

    int positions() const;              ///< the slider runs over 0 .. positions()
    int positionOf(double value) const; ///< clamped
    double valueAt(int position) const; ///< on a step; both ends exact

private:
    /// log(x + offset): a logarithmic range that starts at 0 keeps its zero.
    double offset() const { return min > 0 ? 0 : 1 - min; }
};

} // namespace kvscope
