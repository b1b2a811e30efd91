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
/// Text that names something outside the view and changes what is computed. `unit` says what, so that a host can offer
/// choices: one table, any number of captures, a policy's parameter as "id" or "id=v1,v2" (any, or numbers only).
ParameterSpec namingOption(std::string id, std::string label, std::string help, std::string source, const char* unit);
inline constexpr const char *kTableFileUnit = "CSV file", *kCaptureFilesUnit = "capture files",
                            *kParameterUnit = "parameter", *kNumberUnit = "number";
/// The files of a text "FILE;FILE", without blanks about the names and without empty ones.
std::vector<std::string> filesOf(std::string_view text);
/// The sequential colour maps; the id is "colours".
ParameterSpec colourMapOption();

} // namespace kvscope
