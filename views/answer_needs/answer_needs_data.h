#pragma once

#include "core/base/index.h"
#include "views/view_data.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// What the expected answer of a live context needs, and what each pane leaves of it in all layers. Rises are of the
/// answer's mean loss, in nat, over that with the full cache; NaN and empty lists: not known yet.
struct AnswerNeedsData : ViewData {
    struct Pane {
        char letter = 'A';
        std::string policyId, policyName, error;
        std::vector<double> kept; ///< share of each chunk, mean over all heads
        double predicted = NAN;   ///< by the scores; NaN also for weighted lists
        double rise = NAN;        ///< the model's
    };
    std::vector<std::pair<TokenIndex, TokenIndex>> chunks; ///< tokens begin .. end - 1, one behind the other
    std::vector<double> rises;                             ///< with the chunk hidden in all layers and heads
    std::size_t answered = 0;                              ///< the first chunks; NaN among them: no finite loss
    std::vector<double> scores;                            ///< of the tokens before the cut, sums over all heads
    int steps = 0;                                         ///< of the gradients; 0: no scores are asked for
    double fullLoss = NAN;
    std::vector<Pane> panes;
};

} // namespace kvscope
