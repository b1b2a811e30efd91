// Makes rows of parameter tables from what each kind of parameter has to state.
#include "core/parameters/parameter_rows.h"

#include <utility>

namespace kvscope {

ParameterSpec integerRow(std::string id, std::string label, std::string symbol, std::string unit, NumberRange range,
                         Stage stage, std::string help, std::string source) {
    range.step = range.step == 0 ? 1 : range.step;
    ParameterSpec spec =
        realRow(std::move(id), std::move(label), std::move(symbol), range, stage, std::move(help), std::move(source));
    spec.kind = ParameterKind::Integer;
    spec.unit = std::move(unit);
    return spec;
}

ParameterSpec tokensRow(std::string id, std::string label, std::string symbol, NumberRange range, Stage stage,
                        std::string help, std::string source) {
    ParameterSpec spec = integerRow(std::move(id), std::move(label), std::move(symbol), "tokens", range, stage,
                                    std::move(help), std::move(source));
    spec.maxIsTokens = true;
    return spec;
}

ParameterSpec realRow(std::string id, std::string label, std::string symbol, NumberRange range, Stage stage,
                      std::string help, std::string source) {
    return {.id = std::move(id),
            .label = std::move(label),
            .symbol = std::move(symbol),
            .help = std::move(help),
            .source = std::move(source),
            .min = range.min,
            .max = range.max,
            .defaultValue = range.defaultValue,
            .step = range.step,
            .logarithmic = range.logarithmic,
            .stage = stage};
}

ParameterSpec choiceRow(std::string id, std::string label, std::vector<ParameterChoice> choices, Stage stage,
                        std::string help, std::string source, std::string symbol) {
    const NumberRange range{0, static_cast<double>(choices.size()) - 1, 0, 1};
    ParameterSpec spec =
        realRow(std::move(id), std::move(label), std::move(symbol), range, stage, std::move(help), std::move(source));
    spec.kind = ParameterKind::Choice;
    spec.choices = std::move(choices);
    return spec;
}

ParameterSpec flagRow(std::string id, std::string label, bool on, Stage stage, std::string help, std::string source) {
    ParameterSpec spec = realRow(std::move(id), std::move(label), {}, {0, 1, on ? 1.0 : 0.0, 1}, stage, std::move(help),
                                 std::move(source));
    spec.kind = ParameterKind::Flag;
    return spec;
}

ParameterSpec textRow(std::string id, std::string label, std::string text, Stage stage, std::string help,
                      std::string source, void (*check)(std::string_view), std::string unit) {
    ParameterSpec spec = realRow(std::move(id), std::move(label), {}, {}, stage, std::move(help), std::move(source));
    spec.kind = ParameterKind::Text;
    spec.unit = std::move(unit);
    spec.defaultText = std::move(text);
    spec.check = check;
    return spec;
}

} // namespace kvscope
