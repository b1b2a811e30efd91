#pragma once

#include "views/scene/scene.h"

#include <QColor>

namespace kvscope {

QColor qColor(Colour colour);

} // namespace kvscope
