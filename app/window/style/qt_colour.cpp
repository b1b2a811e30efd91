// A scene's colour in Qt's terms.
#include "app/window/style/qt_colour.h"

namespace kvscope {

QColor qColor(Colour colour) { return {colour.r, colour.g, colour.b, colour.a}; }

} // namespace kvscope
