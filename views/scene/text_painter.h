#pragma once

#include "views/scene/scene.h"

#include <string>

namespace kvscope {

/// A scene as readable text, one line a drawable, coordinates rounded to whole pixels: what tests compare and what a
/// failure shows. Point clouds are named and counted, images give their size.
std::string paintSceneAsText(const Scene& scene);

/// "#0072b2" or "#0072b280" with its opacity.
std::string colourText(Colour colour);

} // namespace kvscope
