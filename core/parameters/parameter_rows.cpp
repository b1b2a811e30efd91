// Rows of parameter tables, by what they all have to state.
#include "core/parameters/parameter_rows.h"

#include <utility>

namespace kvscope {

ParameterSpec integerParameter(std::string id, std::string label, std::string symbol, double min, double max,
                               double defaultValue, Stage stage) {
    ParameterSpec spec;
    spec.id = std::move(id);
    spec.label = std::move(label);
    spec.symbol = std::move(symbol);
    spec.kind = ParameterKind::Integer;
    spec.min = min;
    spec.max = max;
    spec.defaultValue = defaultValue;
    spec.step = 1;
    spec.stage = stage;
    return spec;
}

ParameterSpec choiceParameter(std::string id, std::string label, std::vector<ParameterChoice> choices, Stage stage) {
    ParameterSpec spec;
    spec.id = std::move(id);
    spec.label = std::move(label);
    spec.kind = ParameterKind::Choice;
    spec.max = static_cast<double>(choices.size()) - 1;
    spec.step = 1;
    spec.choices = std::move(choices);
    spec.stage = stage;
    return spec;
}

} // namespace kvscope
