#pragma once

#include "views/scene/theme.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace kvscope {

/// Identity of a policy wherever several are shown: colour, marker, dash.
struct PolicyStyle {
    Colour colour;
    Marker marker = Marker::Circle;
    std::vector<double> dash;
};

/// The chosen style of a policy, else one of the spare styles, else (a recorded list of an unknown policy) a neutral
/// one.
PolicyStyle policyStyle(std::string_view policyId, ThemeId theme);

/// The style of the policy `index`-th in the registry among those without a chosen one. The first kSpareColours have
/// colours as far from all others as the chosen ones are from each other; then colours repeat with another marker or
/// dash. No two of the first 24 are alike.
PolicyStyle spareStyle(std::size_t index, ThemeId theme);
inline constexpr std::size_t kSpareColours = 2;

} // namespace kvscope
