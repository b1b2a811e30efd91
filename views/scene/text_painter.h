#pragma once

#include "views/scene/scene.h"

#include <string>

namespace kvscope {

/// A scene as readable text, one line per drawable, coordinates rounded to whole pixels, for comparisons in tests.
/// Point clouds are named and counted, images give their size.
std::string paintSceneAsText(const Scene& scene);

/// "#0072b2" or "#0072b280" with its opacity.
std::string colourText(Colour colour);

} // namespace kvscope
