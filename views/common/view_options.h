#pragma once

#include "core/parameters/parameters.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

// Rows of a view's option table. They change the drawing alone unless `stage` says Features, which computes data again.

ParameterSpec choiceOption(std::string id, std::string label, std::string help, std::string source,
                           std::vector<ParameterChoice> choices, Stage stage = Stage::Select);
ParameterSpec flagOption(std::string id, std::string label, std::string help, std::string source, bool standard = false,
                         Stage stage = Stage::Select);
ParameterSpec integerOption(std::string id, std::string label, std::string help, std::string source, double min,
                            double max, double standard, Stage stage = Stage::Select);
ParameterSpec realOption(std::string id, std::string label, std::string help, std::string source, double min,
                         double max, double standard, Stage stage = Stage::Select);
/// Text, which `check` refuses by throwing Error where it cannot be one; null: any text will do.
ParameterSpec textOption(std::string id, std::string label, std::string help, std::string source,
                         std::string standard = {}, void (*check)(std::string_view) = nullptr,
                         Stage stage = Stage::Select);
/// The sequential colour maps; the id is "colours".
ParameterSpec colourMapOption();

} // namespace kvscope
