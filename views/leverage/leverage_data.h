#pragma once

#include "core/base/index.h"
#include "views/view_data.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

/// Leverage of one head's keys before RoPE, over the tokens before the cut: exactly, and after a sketch.
struct LeverageData : ViewData {
    struct Scores {
        std::vector<float> scores;     ///< [cut] 0..1
        std::vector<TokenIndex> order; ///< [cut] by (score descending, token ascending)
        std::vector<float> spectrum;   ///< singular values, descending
        std::int64_t rank = 0;         ///< numerical rank
        double sum = 0;                ///< the rank, but for rounding
    };
    Scores exact, sketched;
    std::string sketch;       ///< "gaussian", "srht"
    std::int64_t columns = 0; ///< of the sketch, at most the width of a key
    char pane = 0;            ///< letter of the pane that `columns` comes from; 0: none
    std::int64_t keyDim = 0;
    bool centred = false;
};

} // namespace kvscope
