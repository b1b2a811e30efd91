#pragma once

#include "views/scene/scene.h"

#include <QByteArray>
#include <QImage>

#include <string>
#include <vector>

namespace kvscope {

struct ExportOptions {
    double scale = 1;         ///< PNG: device pixels per logical pixel
    std::string command = {}; ///< the command that regenerates the figure, for the metadata
    std::string title = {};
    std::vector<std::string> notes = {}; ///< sentences below the figure
    bool footer = false;                 ///< the command as 5 pt text below the figure too
    std::size_t rasteriseAbove = 20'000; ///< marks of a layer; vector formats only; 0: never
    bool outlines = false;               ///< SVG, PDF: texts as shapes, for programs that ignore embedded fonts
};

/// Throws Error for a PNG larger than QPainter can paint, naming the largest scale. Call before long work.
void checkImageSize(double width, double height, double scale);

QImage renderScene(const Scene& scene, double scale);

/// An XMP packet with the title, and the command as description. Without one, QPdfWriter writes its own, with dates and
/// a random identifier.
QByteArray pdfMetadata(const ExportOptions& options);
/// The PDF of a QPdfWriter, its dates and its random identifier (Qt 6.8), which PDF does not require, replaced by
/// spaces: equal documents have equal bytes. No byte moves, because the cross-reference table holds byte offsets.
QByteArray withoutDates(QByteArray pdf);

/// The content of a figure file, by the extension of its path: .png, .svg, .pdf (text stays text, the parts of the
/// fonts that it needs are inside). Equal figures have equal bytes. Throws Error with the path and the remedy. Needs a
/// QGuiApplication, but no display and no GL.
std::string figureFile(const Scene& scene, const std::string& path, const ExportOptions& options);
/// Written as writeFileAtomically does, so a failed export leaves no partial file and a pipe gets the whole figure.
void exportScene(const Scene& scene, const std::string& path, const ExportOptions& options);

} // namespace kvscope
