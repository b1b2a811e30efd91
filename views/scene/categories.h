#pragma once

#include "views/scene/theme.h"

#include <cstddef>

namespace kvscope {

/// How many groups without an order have colours of their own: no two nearer than 8.8 (light) and 9.7 (dark) in OKLab
/// distance x 100 for normal, deutan, protan and tritan vision; contrast on the canvas >= 3. The first few lie farther apart.
inline constexpr std::size_t kCategoryColours = 16;

/// Repeats from kCategoryColours on.
Colour categoryColour(std::size_t index, ThemeId theme);

} // namespace kvscope
