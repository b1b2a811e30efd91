#pragma once

#include <string_view>

namespace kvscope {

/// The table of a colour map in resources/colour_maps: 256 words RRGGBB, one character between two. Empty: no such map.
std::string_view colourMapTable(std::string_view name);

} // namespace kvscope
