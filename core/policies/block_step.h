#pragma once

#include "core/base/index.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// One eviction of block processing, for the step log and teaching.
struct BlockStep {
    TokenIndex end = 0;                           ///< tokens seen
    std::int64_t cached = 0;                      ///< rows before the eviction (cache + block)
    std::vector<std::vector<TokenIndex>> evicted; ///< [Hkv] ascending tokens evicted in this step
    float margin = 0;
};

} // namespace kvscope
