#pragma once

#include "views/scene/scene.h"

#include <QFont>
#include <QPainter>
#include <QPainterPath>

namespace kvscope {

struct PaintCache;

struct PaintOptions {
    /// Point clouds with more marks than this become one image of `rasterDpi` inside a vector file; 0: never.
    std::size_t rasteriseAbove = 0;
    double rasterDpi = 600;
    bool outlines = false; ///< texts as shapes
    /// For the screen: texts, images and large numbers of marks are drawn from pictures that the cache keeps, and thin
    /// lines have square ends. Must be null for vector files.
    PaintCache* cache = nullptr;
};

/// The largest number of device pixels per logical pixel for an image of this size: QPainter allows 32767 pixels a
/// side, and an image may take 1 GiB.
double largestImageScale(double width, double height);

/// How a text is set: its font, and where its baseline begins, relative to the item's position before rotation.
struct SetText {
    QFont font;
    QPointF origin;
};
SetText setText(const TextItem& item);
/// The text's shapes, in the same coordinates; empty for glyphs without outlines (emoji).
QPainterPath outlinesOf(const TextItem& item);

/// False for marks that exist only for picking.
bool isPainted(const PointCloudItem& cloud);

/// The marks of a cloud as an image of the whole scene; `dpi` is the finest raster, large scenes get a coarser one.
QImage rasterised(const Scene& scene, const PointCloudItem& cloud, double dpi);

/// Paints a scene with QPainter in logical pixels; text stays text in vector formats.
void paintScene(QPainter& painter, const Scene& scene, const PaintOptions& options = {});

} // namespace kvscope
