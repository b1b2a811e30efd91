#pragma once

#include "app/window/style/appearance.h"

#include <QString>

namespace kvscope {

/// The one style sheet of the program, written from the theme's tokens at an interface scale.
QString styleSheetOf(const Appearance& appearance);

} // namespace kvscope
