#pragma once

#include <string_view>

namespace kvscope {

/// The Markdown beside a view's source, by file stem ("token_strip_view"), built into the program.
std::string_view viewExplanation(std::string_view stem);

} // namespace kvscope
