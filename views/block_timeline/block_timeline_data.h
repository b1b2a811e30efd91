#pragma once

#include "core/base/index.h"
#include "views/view_data.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// Effect of block processing on the anchor and on the error, for the active pane at its budget; only what the shown
/// picture needs.
struct BlockTimelineData : ViewData {
    /// The mean of the keys that a step chooses among, cache and block, against the mean of all keys read (K10).
    struct Drift {
        TokenIndex end = 0; ///< tokens read
        double cosine = 1;  ///< of the two means
        double ratio = 1;   ///< length of the cache's mean over that of all keys' mean
    };
    struct BlockSize {
        std::int64_t block = 0; ///< tokens; 0: the prompt at once
        double error = 0;       ///< relative output error, mean over the query heads of the KV head
        double overlap = 1;     ///< Jaccard of the kept tokens with those chosen at once
        std::int64_t steps = 0; ///< evictions
    };
    std::vector<Drift> drift;
    std::vector<BlockSize> sizes; ///< the prompt at once first, then ascending
};

} // namespace kvscope
