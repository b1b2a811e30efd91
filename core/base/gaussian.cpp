// Normal numbers from counter-based uniform ones.
#include "core/base/gaussian.h"

#include <cmath>
#include <numbers>

namespace kvscope {

std::pair<double, double> gaussianPairAt(RandomKey key) {
    const double radius = std::sqrt(-2 * std::log(1 - uniformAt(key)));
    key.slot += 0x80000000u;
    const double angle = 2 * std::numbers::pi * uniformAt(key);
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

} // namespace kvscope
