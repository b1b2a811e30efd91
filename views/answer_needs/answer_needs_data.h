#pragma once

#include "core/base/index.h"
#include "views/pane_name.h"
#include "views/view_data.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// What the expected answer of a live context needs, and what each pane keeps of it in all layers. A rise is the
/// answer's mean loss, in nat, minus the loss with the full cache. NaN and an empty list mean: not known yet.
struct AnswerNeedsData : ViewData {
    struct Pane : PaneName {
        std::string error = {};
        std::vector<double> kept = {}; ///< kept share of each chunk, mean over all heads
        double predicted = NAN;        ///< rise that the scores predict; NaN also for weighted lists
        double rise = NAN;             ///< rise measured with the model
    };
    std::vector<std::pair<TokenIndex, TokenIndex>> chunks; ///< tokens begin .. end - 1, without gaps
    std::vector<double> rises;                             ///< when this chunk is hidden in all layers and heads
    std::size_t answered = 0;                              ///< chunks tried so far, from the first; NaN: no finite loss
    std::vector<double> scores;                            ///< of the tokens before the cut, sums over all heads
    int steps = 0;                                         ///< passes that the gradients take; 0: no scores are wanted
    double fullLoss = NAN;
    std::vector<Pane> panes;
};

} // namespace kvscope
