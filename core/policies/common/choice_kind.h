#pragma once

#include "core/parameters/parameters.h"

#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// How what is kept follows from the scores that are shown with it.
enum class ChoiceKind {
    TopOfHead,     ///< the best of each head by scores that the budget has no part in: a larger budget keeps a superset
    ScoreOfBudget, ///< the best of each head, by scores that change with the budget (kvpress's λ)
    Joint,         ///< the best over all heads of the layer, then whole pages
    Drawn,         ///< chance decides, the score is at most the chance
};

/// Of a policy that scores, with these values; the parameters that change it are lambda_rule, selection and choice.
ChoiceKind choiceKindOf(const ParameterValues& values);
/// The same of parameters that a recorded list states; others are those of policies that keep the best of each head.
ChoiceKind choiceKindOf(const std::vector<std::pair<std::string, std::string>>& parameters);

} // namespace kvscope
