#pragma once

#include "views/scene/scene.h"

#include <QPainter>

namespace kvscope {

struct PaintOptions {
    /// Point clouds with more marks than this become one image of `rasterDpi` inside a vector file; 0: never.
    std::size_t rasteriseAbove = 0;
    double rasterDpi = 600;
};

/// The largest number of device pixels per logical pixel for an image of this size: QPainter allows 32767 pixels a
/// side, and an image may take 1 GiB.
double largestImageScale(double width, double height);

/// Paints a scene with QPainter in logical pixels; text stays text in vector formats.
void paintScene(QPainter& painter, const Scene& scene, const PaintOptions& options = {});

} // namespace kvscope
