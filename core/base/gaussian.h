#pragma once

#include "core/base/random.h"

namespace kvscope {

/// Standard normal number at a place: Box-Muller over two uniforms, of which the second lies at slot + 2^31.
double gaussianAt(RandomKey key);

} // namespace kvscope
