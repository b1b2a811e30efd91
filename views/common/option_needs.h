#pragma once

#include "views/view.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// "Map is Chunks, or Minus is Chunks": in the words of the view's options.
std::string needWords(const View& view, const OptionNeed& need);
/// Why an option has no effect now: "Matters only while Scale is Logarithmic". Empty: it has one. An option on which
/// another depends counts only while it has an effect itself.
std::string whyIdle(const View& view, const ParameterValues& options, std::string_view id);
/// The choices of an option except some, for a row that names incompatible ones.
std::vector<std::string> choicesBut(const ParameterTable& options, std::string_view id,
                                    const std::vector<std::string>& left);

} // namespace kvscope
