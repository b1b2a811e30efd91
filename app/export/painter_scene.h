#pragma once

#include "views/scene/scene.h"

#include <QPainter>

namespace kvscope {

struct PaintOptions {
    /// Point clouds with more marks than this become one image of `rasterDpi` inside a vector file; 0: never.
    std::size_t rasteriseAbove = 0;
    double rasterDpi = 600;
};

/// The largest number of device pixels per logical pixel at which an image of this size can be painted: QPainter counts
/// to 32767 pixels a side, and an image takes no more than 1 GiB.
double largestImageScale(double width, double height);

/// Paints a scene with QPainter in logical pixels; text stays text in vector formats.
void paintScene(QPainter& painter, const Scene& scene, const PaintOptions& options = {});

} // namespace kvscope
