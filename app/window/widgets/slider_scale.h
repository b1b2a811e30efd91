#pragma once

#include "core/parameters/parameters.h"

#include <cstdint>

namespace kvscope {

/// The line of a slider: values from min to max, in steps or continuous, linear or logarithmic. Pure arithmetic.
struct SliderScale {
    double min = 0, max = 1;
    double step = 0; ///< 0: continuous
    bool logarithmic = false;

    /// The slider of a parameter; `tokens` is the number of tokens seen, where a row ends at it.
    static SliderScale of(const ParameterSpec& spec, std::int64_t tokens);

    int positions() const;              ///< the slider runs over 0 .. positions()
    int positionOf(double value) const; ///< clamped
    double valueAt(int position) const; ///< on a step; both ends exact

private:
    /// log(x + offset): a logarithmic range that starts at 0 keeps its zero.
    double offset() const { return min > 0 ? 0 : 1 - min; }
};

} // namespace kvscope
