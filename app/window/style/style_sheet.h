#pragma once

#include "views/scene/theme.h"

#include <QString>

namespace kvscope {

/// The one style sheet of the program, written from the theme's tokens at an interface scale.
QString styleSheetOf(const Theme& theme, double scale);

} // namespace kvscope
