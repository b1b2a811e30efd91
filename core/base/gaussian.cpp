// Normal numbers from counter-based uniform ones.
#include "core/base/gaussian.h"

#include <cmath>
#include <numbers>

namespace kvscope {

double gaussianAt(RandomKey key) {
    const double radius = std::sqrt(-2 * std::log(1 - uniformAt(key)));
    key.slot += 0x80000000u;
    return radius * std::cos(2 * std::numbers::pi * uniformAt(key));
}

} // namespace kvscope
