#pragma once

#include "app/session/session.h"
#include "views/scene/theme.h"

namespace kvscope {

/// The theme of the chrome for a choice. "System" follows the palette that the desktop gave the program at its start:
/// Qt 6.4 has no colour-scheme query yet. Call `rememberSystemPalette` before the first style sheet is set.
ThemeId themeFor(ThemeChoice choice);
void rememberSystemPalette();

} // namespace kvscope
