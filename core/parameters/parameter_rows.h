#pragma once

#include "core/parameters/parameters.h"

#include <string>
#include <vector>

namespace kvscope {

/// The range of a number, its default, and the slider's step; a step of 0 is 1 for whole numbers, none for real ones.
struct NumberRange {
    double min = 0, max = 1, defaultValue = 0, step = 0;
    bool logarithmic = false;
};

/// Rows of the tables of policies' parameters and views' options, one function per kind.
ParameterSpec integerRow(std::string id, std::string label, std::string symbol, std::string unit, NumberRange range,
                         Stage stage, std::string help, std::string source);
/// Whole tokens; the slider ends at the number of tokens seen.
ParameterSpec tokensRow(std::string id, std::string label, std::string symbol, NumberRange range, Stage stage,
                        std::string help, std::string source);
ParameterSpec realRow(std::string id, std::string label, std::string symbol, NumberRange range, Stage stage,
                      std::string help, std::string source);
/// The first choice is the default.
ParameterSpec choiceRow(std::string id, std::string label, std::vector<ParameterChoice> choices, Stage stage,
                        std::string help, std::string source, std::string symbol = {});
ParameterSpec flagRow(std::string id, std::string label, bool on, Stage stage, std::string help, std::string source);
/// `check` throws Error for a text that the parameter cannot have; null: any text is allowed.
ParameterSpec textRow(std::string id, std::string label, std::string text, Stage stage, std::string help,
                      std::string source, void (*check)(std::string_view) = nullptr, std::string unit = {});

} // namespace kvscope
