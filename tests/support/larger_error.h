#pragma once

#include <cmath>
#include <limits>

namespace kvscope::testing {

/// The larger of two errors. NaN is larger than every number: std::max would leave it out.
inline double larger(double a, double b) {
    return b <= a ? a : std::isnan(b) ? std::numeric_limits<double>::infinity() : b;
}

} // namespace kvscope::testing
