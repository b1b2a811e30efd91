#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// IDs of disagreements and traps that a help text names in parentheses: "can disagree (K1)", "(B17, B19)".
std::vector<std::string> trapsIn(std::string_view text);

} // namespace kvscope
