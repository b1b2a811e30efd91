// Figures as files. PNG and PDF are painted by the same calls. Qt's PDF writer does not report a full disk, so every
// figure is made in memory and written as one block.
#include "app/export/scene_export.h"

#include "app/export/painter_scene.h"
#include "app/export/svg_scene.h"
#include "app/text/qt_text_service.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "views/scene/scene_builder.h"

#include <QBuffer>
#include <QFileInfo>
#include <QImageWriter>
#include <QPainter>
#include <QPdfWriter>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr int kDotsPerInch = 96; // logical pixels
constexpr double kFooterPoints = 5, kNotePoints = 7;

[[noreturn]] void failDraw(const char* format) {
    throw Error({fmt::format("Qt could not make a figure of the format {}", format), "",
                 "Choose a smaller size or another format"});
}

/// Room below the figure for the notes, and for the command in wrapped 5 pt text.
struct Footer {
    Scene scene;

    Footer(const Scene& figure, const ExportOptions& options) : scene(figure) {
        for (const std::string& note : options.notes) add(note, {FontFace::Interface, kNotePoints * kDotsPerInch / 72});
        if (options.footer && !options.command.empty())
            add(options.command, {FontFace::Monospace, kFooterPoints * kDotsPerInch / 72});
    }

private:
    void add(const std::string& words, const TextStyle& style) {
        const QtTextService text;
        SceneBuilder builder(scene, text);
        double y = scene.height + style.size;
        for (const std::string& line : builder.wrap(words, style, scene.width - 12)) {
            builder.text({6, y}, line, style, themeOf(ThemeId::Paper).text3);
            y += 1.3 * style.size;
        }
        scene.height = y;
    }
};

QByteArray pngOf(const Scene& scene, const ExportOptions& options) {
    checkImageSize(scene.width, scene.height, options.scale);
    QImage image = renderScene(scene, options.scale);
    image.setText("Software", "KVScope");
    if (!options.title.empty()) image.setText("Title", QString::fromStdString(options.title));
    if (!options.command.empty()) image.setText("Comment", QString::fromStdString(options.command));
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    if (!QImageWriter(&buffer, "png").write(image)) failDraw("PNG");
    return buffer.data();
}

QByteArray svgOf(const Scene& scene, const ExportOptions& options) {
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" +
           QByteArray::fromStdString(sceneAsSvg(scene, {.title = options.title.empty() ? "KVScope" : options.title,
                                                        .description = options.command,
                                                        .label = {},
                                                        .name = {},
                                                        .rasteriseAbove = options.rasteriseAbove,
                                                        .outlines = options.outlines}));
}

QByteArray pdfOf(const Scene& scene, const ExportOptions& options) {
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setResolution(1200);
    const QSizeF points(scene.width * 72 / kDotsPerInch, scene.height * 72 / kDotsPerInch);
    writer.setPageSize(QPageSize(points, QPageSize::Point, {}, QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF(0, 0, 0, 0));
    writer.setCreator("KVScope");
    writer.setTitle(QString::fromStdString(options.title.empty() ? options.command : options.title));
    writer.setDocumentXmpMetadata(pdfMetadata(options));
    QPainter painter;
    if (!painter.begin(&writer)) failDraw("PDF");
    painter.scale(1200.0 / kDotsPerInch, 1200.0 / kDotsPerInch);
    paintScene(painter, scene, {.rasteriseAbove = options.rasteriseAbove, .outlines = options.outlines});
    if (!painter.end()) failDraw("PDF");
    return withoutDates(buffer.data());
}

} // namespace

QByteArray pdfMetadata(const ExportOptions& options) {
    const QString title = xmlText(options.title.empty() ? "KVScope figure" : options.title);
    const QString command = xmlText(options.command);
    return QString(R"(<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">%1</rdf:li></rdf:Alt></dc:title>
<dc:description><rdf:Alt><rdf:li xml:lang="x-default">%2</rdf:li></rdf:Alt></dc:description>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="w"?>)")
        .arg(title, command)
        .toUtf8();
}

QByteArray withoutDates(QByteArray pdf) {
    const auto blank = [&pdf](const char* key, char last) {
        const qsizetype begin = pdf.lastIndexOf(key), end = pdf.indexOf(last, begin);
        if (begin >= 0 && end >= 0) std::fill(pdf.begin() + begin, pdf.begin() + end + 1, ' ');
    };
    blank("/CreationDate (", ')');
    blank("/ModDate (", ')');
    blank("\n/ID [", ']');
    return pdf;
}

void checkImageSize(double width, double height, double scale) {
    const double largest = largestImageScale(width, height);
    if (scale > largest)
        throw Error(
            {fmt::format("a PNG of {:.0f}x{:.0f} logical pixels at scale {:g} is too large", width, height, scale),
             "size, scale",
             fmt::format("The largest scale of this size is {:.2f}; SVG and PDF need none",
                         std::floor(100 * largest) / 100)});
}

QImage renderScene(const Scene& scene, double scale) {
    QImage image(static_cast<int>(std::lround(scene.width * scale)),
                 static_cast<int>(std::lround(scene.height * scale)), QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    image.setDotsPerMeterX(static_cast<int>(std::lround(kDotsPerInch * scale / 0.0254)));
    image.setDotsPerMeterY(image.dotsPerMeterX());
    QPainter painter(&image);
    painter.scale(scale, scale);
    paintScene(painter, scene);
    return image;
}

std::string figureFile(const Scene& figure, const std::string& path, const ExportOptions& options) {
    const QString suffix = QFileInfo(QString::fromStdString(path)).suffix().toLower();
    if (suffix != "png" && suffix != "svg" && suffix != "pdf")
        throw Error({"figures are written as .png, .svg or .pdf", "", "Give the file one of these names", path});
    const Scene scene = Footer(figure, options).scene;
    return (suffix == "png" ? pngOf : suffix == "svg" ? svgOf : pdfOf)(scene, options).toStdString();
}

void exportScene(const Scene& scene, const std::string& path, const ExportOptions& options) {
    writeFileAtomically(path, figureFile(scene, path, options));
}

} // namespace kvscope
