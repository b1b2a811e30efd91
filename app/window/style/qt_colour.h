#pragma once

#include "views/scene/scene.h"

#include <QColor>

namespace kvscope {

inline QColor qColor(Colour colour) { return {colour.r, colour.g, colour.b, colour.a}; }

} // namespace kvscope
