#pragma once

#include "core/base/random.h"

#include <utility>

namespace kvscope {

/// Two independent standard normal numbers at a place: Box-Muller over two uniforms, of which the second lies at slot +
/// 2^31.
std::pair<double, double> gaussianPairAt(RandomKey key);

/// The first of the two.
inline double gaussianAt(const RandomKey& key) { return gaussianPairAt(key).first; }

} // namespace kvscope
