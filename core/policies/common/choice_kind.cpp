// Most policies keep the best tokens of each head, and a token that is kept stays kept when the budget grows. A few
// parameters change that, whatever policy offers them, and then a rank or a score explains less than it seems to.
#include "core/policies/common/choice_kind.h"

#include <algorithm>

namespace kvscope {

namespace {

/// `is(id, choice)`: is there a parameter of that id with that value?
template <class Is> ChoiceKind kindBy(const Is& is) {
    if (is("choice", "sample"))
        return ChoiceKind::Drawn;
    if (is("selection", "joint"))
        return ChoiceKind::Joint;
    return is("lambda_rule", "removed") ? ChoiceKind::ScoreOfBudget : ChoiceKind::TopOfHead;
}

} // namespace

ChoiceKind choiceKindOf(const ParameterValues& values) {
    return kindBy([&](const char* id, const char* choice) { return values.has(id) && values.choice(id) == choice; });
}

ChoiceKind choiceKindOf(const std::vector<std::pair<std::string, std::string>>& parameters) {
    return kindBy([&](const char* id, const char* choice) {
        return std::find(parameters.begin(), parameters.end(), std::pair<std::string, std::string>(id, choice)) !=
               parameters.end();
    });
}

} // namespace kvscope
