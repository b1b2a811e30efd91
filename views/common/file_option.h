#pragma once

#include "core/parameters/parameters.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// Units of options that name files, so that a host can offer to choose them: one table, or any number of captures.
inline constexpr const char *kTableFileUnit = "CSV file", *kCaptureFilesUnit = "capture files";

/// The row of such an option; several files as "FILE;FILE". It changes what is computed.
ParameterSpec fileOption(std::string id, std::string label, std::string help, std::string source, const char* unit);

/// The files of such a text, blanks about the names apart; no empty ones.
std::vector<std::string> filesOf(std::string_view text);

} // namespace kvscope
