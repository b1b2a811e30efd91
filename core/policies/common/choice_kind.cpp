// Most policies keep the best tokens of each head, and a larger budget keeps a superset. A few parameters, whichever
// policy has them, change that; then rank and score explain less.
#include "core/policies/common/choice_kind.h"

#include <algorithm>

namespace kvscope {

namespace {

/// `is(id, choice)`: whether a parameter of that id has that value.
template <class Is> ChoiceKind kindBy(const Is& is) {
    if (is("choice", "sample")) return ChoiceKind::Drawn;
    if (is("selection", "joint")) return ChoiceKind::Joint;
    return is("lambda_rule", "removed") ? ChoiceKind::ScoreOfBudget : ChoiceKind::TopOfHead;
}

} // namespace

ChoiceKind choiceKindOf(const ParameterValues& values) {
    return kindBy([&](const char* id, const char* choice) { return values.has(id) && values.choice(id) == choice; });
}

ChoiceKind choiceKindOf(const std::vector<std::pair<std::string, std::string>>& parameters) {
    return kindBy([&](const char* id, const char* choice) {
        return std::ranges::find(parameters, std::pair<std::string, std::string>(id, choice)) != parameters.end();
    });
}

} // namespace kvscope
