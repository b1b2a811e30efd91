#pragma once

#include "views/scene/scene.h"

#include <cstddef>
#include <string_view>

namespace kvscope {

enum class ThemeId { Light, Dark, Paper };

/// The colours of the design; the only other literal colours are those of policies (views/common/policy_style.cpp).
struct Theme {
    ThemeId id;
    Colour window, panel, canvas, raised, sunken, hover, border, control, axis, grid;
    Colour text1, text2, text3, off, ink, paper, casing;
    Colour warning, warningGround, warningLine, error, errorGround, errorLine, ok;
    Colour kept, evicted, protectedToken, query, anchor, masked, notANumber;
};

const Theme& themeOf(ThemeId id);
ThemeId themeByName(std::string_view name); ///< "light", "dark", "paper"; throws Error

/// How many groups without an order have colours of their own: no two nearer than 8.8 (light) and 9.7 (dark) in OKLab
/// distance x 100 for normal, deutan, protan and tritan vision; contrast on the canvas >= 3. The first few lie farther
/// apart.
inline constexpr std::size_t kCategoryColours = 16;

/// Repeats from kCategoryColours on.
Colour categoryColour(std::size_t index, ThemeId theme);

/// Sequential maps of 256 entries: "viridis", "cividis", "magma", "greys"; diverging "rdbu". t in 0..1 is clamped.
Colour colourMap(std::string_view name, double t, bool inverted = false);

Colour withAlpha(Colour colour, double alpha); ///< alpha 0..1 times the colour's own
Colour blend(Colour over, Colour under);       ///< opaque result
double luminance(Colour colour);               ///< WCAG 2, relative, 0..1
Colour textOn(Colour ground);                  ///< near-black or near-white, whichever has more contrast there

} // namespace kvscope
