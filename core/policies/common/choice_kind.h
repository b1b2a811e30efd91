#pragma once

#include "core/parameters/parameters.h"

#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// How the kept tokens follow from the displayed scores.
enum class ChoiceKind {
    TopOfHead,     ///< the best of each head by scores independent of the budget: a larger budget keeps a superset
    ScoreOfBudget, ///< the best of each head by scores that depend on the budget (kvpress's λ)
    Joint,         ///< the best over all heads of the layer, then whole pages
    Drawn,         ///< drawn at random; the score only sets the probability
};

/// For a scoring policy with these values; the deciding parameters are lambda_rule, selection and choice.
ChoiceKind choiceKindOf(const ParameterValues& values);
/// The same from the parameters stated in a recorded list.
ChoiceKind choiceKindOf(const std::vector<std::pair<std::string, std::string>>& parameters);

} // namespace kvscope
