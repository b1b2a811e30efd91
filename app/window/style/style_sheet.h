#pragma once

#include "views/scene/theme.h"

#include <QString>

namespace kvscope {

/// The program's style sheet for a theme and an interface scale.
QString styleSheetOf(const Theme& theme, double scale);

} // namespace kvscope
