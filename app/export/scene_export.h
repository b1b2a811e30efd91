#pragma once

#include "views/scene/scene.h"

#include <QImage>

#include <string>

namespace kvscope {

struct ExportOptions {
    double scale = 1;         ///< PNG: device pixels per logical pixel
    std::string command = {}; ///< the command line that makes the figure again; into the metadata
    std::string title = {};
    bool footer = false;                 ///< the command as 5 pt text below the figure too
    std::size_t rasteriseAbove = 20'000; ///< marks of a layer; vector formats only; 0: never
};

/// Throws Error for a PNG larger than QPainter can paint, naming the largest scale. For refusing before long work.
void checkImageSize(double width, double height, double scale);

QImage renderScene(const Scene& scene, double scale);

/// The scene as an <svg> element to stand inside an HTML page: text as text, `label` for screen readers.
std::string sceneAsInlineSvg(const Scene& scene, const std::string& label);

/// By extension: .png, .svg, .pdf (text stays text). Made in memory and written as writeFileAtomically does, so a
/// failed export leaves no partial file and a pipe gets the whole figure. The same figure is the same bytes at any
/// time. Throws Error with the path and the remedy. Needs a QGuiApplication, but no display and no GL.
void exportScene(const Scene& scene, const std::string& path, const ExportOptions& options);

} // namespace kvscope
