#pragma once

#include "core/parameters/parameters.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// Units of texts that name something outside the view and change what is computed; by them a host offers choices: one
/// table, any number of captures, a policy's parameter as "id" or "id=v1,v2" (any, or numbers only).
inline constexpr const char *kTableFileUnit = "CSV file", *kCaptureFilesUnit = "capture files",
                            *kParameterUnit = "parameter", *kNumberUnit = "number";
/// The files of a text "FILE;FILE", without blanks about the names and without empty ones.
std::vector<std::string> filesOf(std::string_view text);
/// The sequential colour maps.
ParameterSpec colourMapOption(std::string id = "colours");

} // namespace kvscope
