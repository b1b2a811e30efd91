#pragma once

#include <string_view>

namespace kvscope {

/// The text of reproductions.json, built into the program; id: "reproductions".
std::string_view reproductionText(std::string_view id);

} // namespace kvscope
