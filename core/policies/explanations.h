#pragma once

#include <string_view>

namespace kvscope {

/// The Markdown of core/policies/<family>/<id>.md, built into the program. Empty when there is no such file.
std::string_view policyExplanation(std::string_view id);

} // namespace kvscope
