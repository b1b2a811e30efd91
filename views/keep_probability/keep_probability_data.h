#pragma once

#include "core/base/index.h"
#include "views/pane_name.h"
#include "views/view_data.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// What the active pane's policy keeps in one KV head with one seed after the other. Only random numbers differ: coins,
/// samples and sketches.
struct KeepProbabilityData : ViewData, PaneName {
    bool drawsRandomNumbers = false; ///< that depend on the seed; otherwise one list stands for every seed
    bool replayed = false;           ///< its random numbers all come from files: one drawing, whatever the seed
    bool sketchIsExact = false;      ///< the sketch is as wide as a key: random numbers change nothing
    std::int64_t visible = 0;        ///< tokens before the cut
    int seedsAsked = 1;
    std::vector<std::vector<TokenIndex>> lists; ///< of the seeds that have run, ascending tokens
    std::vector<std::int32_t> times;            ///< [visible] how many of `lists` hold the token

    int seeds() const { return static_cast<int>(lists.size()); }
};

} // namespace kvscope
