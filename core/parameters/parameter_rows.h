#pragma once

#include "core/parameters/parameters.h"

#include <string>
#include <vector>

namespace kvscope {

/// Parameter rows.
ParameterSpec integerParameter(std::string id, std::string label, std::string symbol, double min, double max,
                               double defaultValue, Stage stage);
ParameterSpec choiceParameter(std::string id, std::string label, std::vector<ParameterChoice> choices, Stage stage);

} // namespace kvscope
