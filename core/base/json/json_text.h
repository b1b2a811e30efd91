#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvscope {

/// Throws Error where the brackets of a JSON text are nested more than 100 deep, which no file of ours is: what parses,
/// copies and writes values does it recursively, and the stack ends at some depth.
void checkNesting(std::string_view json, const std::string& path);

/// readWholeFile, checked.
std::string readJsonText(const std::string& path, std::size_t maxBytes = std::size_t{1} << 30);

} // namespace kvscope
