// Writes the SVG itself, because QSvgGenerator drops clips, aligns texts by the widths of its own fonts and names only
// one font.
#include "app/export/svg_scene.h"

#include "app/export/image_pictures.h"
#include "app/export/painter_scene.h"
#include "views/scene/scene_builder.h"

#include <QBuffer>
#include <QImage>

#include <fmt/format.h>

namespace kvscope {

namespace {

constexpr double kMillimetres = 25.4 / 96; // per logical pixel

std::string escaped(const std::string& text) { return xmlText(text).toStdString(); }

std::string colourAttribute(const char* name, Colour c) {
    std::string attribute = fmt::format(" {}=\"#{:02x}{:02x}{:02x}\"", name, c.r, c.g, c.b);
    if (c.a != 255) attribute += fmt::format(" {}-opacity=\"{:.4g}\"", name, c.a / 255.0);
    return attribute;
}

std::string paint(Colour fill, const Stroke& stroke) {
    std::string attributes = fill.a == 0 ? " fill=\"none\"" : colourAttribute("fill", fill);
    if (stroke.colour.a == 0 || stroke.width <= 0) return attributes;
    attributes += colourAttribute("stroke", stroke.colour) + fmt::format(" stroke-width=\"{:.6g}\"", stroke.width);
    if (stroke.dash.empty()) return attributes + " stroke-linecap=\"round\"";
    return attributes + fmt::format(" stroke-dasharray=\"{:.6g}{}\"", fmt::join(stroke.dash, " "),
                                    stroke.dash.size() % 2 == 0 ? "" : fmt::format(" {:.6g}", stroke.dash.back()));
}

std::string pointList(const std::vector<Point>& points, Point by = {}) {
    std::string list;
    for (const Point p : points)
        list += fmt::format("{}{:.6g},{:.6g}", list.empty() ? "" : " ", p.x + by.x, p.y + by.y);
    return list;
}

std::string circle(Point centre, double radius) {
    return fmt::format("<circle cx=\"{:.6g}\" cy=\"{:.6g}\" r=\"{:.6g}\"", centre.x, centre.y, radius);
}

std::string sides(const Box& box) {
    return fmt::format(" x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\"", box.x, box.y, box.width,
                       box.height);
}

std::string imageElement(const Box& box, const QImage& image) {
    // Cells that are larger than a pixel keep their edges.
    const bool enlarged =
        (image.width() > 1 && image.width() < box.width) || (image.height() > 1 && image.height() < box.height);
    QBuffer png;
    png.open(QIODevice::WriteOnly);
    image.save(&png, "PNG");
    return fmt::format("<image{} preserveAspectRatio=\"none\"{} xlink:href=\"data:image/png;base64,{}\"/>\n",
                       sides(box), enlarged ? " style=\"image-rendering:pixelated\"" : "",
                       png.data().toBase64().toStdString());
}

std::string pathData(const QPainterPath& path) {
    std::string data;
    for (int i = 0; i < path.elementCount(); ++i) {
        const QPainterPath::Element e = path.elementAt(i);
        const char* command = e.isMoveTo()                             ? "M"
                              : e.isLineTo()                           ? "L"
                              : e.type == QPainterPath::CurveToElement ? "C"
                                                                       : " ";
        data += fmt::format("{}{:.5g} {:.5g}", command, e.x, e.y);
    }
    return data;
}

class SvgWriter {
public:
    SvgWriter(const Scene& scene, const SvgOptions& options, EmbeddedFonts& fonts)
        : m_scene(scene), m_options(options), m_fonts(fonts) {}

    std::string body() {
        for (const Drawable& item : m_scene.items) std::visit(*this, item);
        return std::move(m_body);
    }

    void operator()(const RectangleItem& item) {
        const Box box = item.box.grown(item.stroke.colour.a != 0 ? -item.stroke.width / 2 : 0); // outlines lie inside
        m_body += "<rect" + sides(box) + (item.radius > 0 ? fmt::format(" rx=\"{:.6g}\"", item.radius) : "") +
                  paint(item.fill, item.stroke) + "/>\n";
    }
    void operator()(const PolylineItem& item) {
        m_body += fmt::format("<{} points=\"{}\"{}/>\n", item.closed ? "polygon" : "polyline", pointList(item.points),
                              paint(kTransparent, item.stroke));
    }
    void operator()(const PolygonItem& item) {
        m_body += fmt::format("<polygon points=\"{}\"{}/>\n", pointList(item.points), paint(item.fill, item.stroke));
    }
    void operator()(const CircleItem& item) {
        m_body += circle(item.centre, item.radius) + paint(item.fill, item.stroke) + "/>\n";
    }
    void operator()(const ImageItem& item) {
        if (item.rgba && item.width > 0 && item.height > 0) m_body += imageElement(item.box, imageOf(item));
    }
    void operator()(const TextItem& item);
    void operator()(const PointCloudItem& item);
    /// The rectangle has no fill, since readers of SVG Tiny (Qt) draw the content of a clipPath. The id contains the
    /// box: figures in one notebook may have equal ids, which then mean the same clip.
    void operator()(const PushClipItem& item) {
        const Box& box = item.box;
        const std::string id =
            m_options.name + fmt::format("clip-{:.6g}-{:.6g}-{:.6g}-{:.6g}", box.x, box.y, box.width, box.height);
        if (m_clips.insert(id).second)
            m_body += fmt::format("<clipPath id=\"{}\"><rect{} fill=\"none\"/></clipPath>\n", id, sides(box));
        m_body += fmt::format("<g clip-path=\"url(#{})\">\n", id);
    }
    void operator()(const PopClipItem&) { m_body += "</g>\n"; }

private:
    const Scene& m_scene;
    const SvgOptions& m_options;
    EmbeddedFonts& m_fonts;
    std::set<std::string> m_clips;
    std::string m_body;
};

void SvgWriter::operator()(const TextItem& item) {
    if (item.text.empty()) return;
    const auto [font, origin] = setText(item);
    const std::string at = item.angleDegrees == 0
                               ? fmt::format("translate({:.6g} {:.6g})", item.position.x, item.position.y)
                               : fmt::format("translate({:.6g} {:.6g}) rotate({:.6g})", item.position.x,
                                             item.position.y, item.angleDegrees);
    if (m_options.outlines || !m_fonts.add(item.style, item.text)) {
        if (const QPainterPath path = outlinesOf(item); !path.isEmpty()) {
            m_body += fmt::format("<path transform=\"{}\" aria-label=\"{}\" d=\"{}\"{}/>\n", at, escaped(item.text),
                                  pathData(path), paint(item.colour, {}));
            return;
        }
    }
    const char* anchor = item.horizontal == HorizontalAlign::Left     ? ""
                         : item.horizontal == HorizontalAlign::Centre ? " text-anchor=\"middle\""
                                                                      : " text-anchor=\"end\"";
    m_body += fmt::format("<text transform=\"{}\" y=\"{:.6g}\"{} font-family=\"{}\" font-size=\"{}\"", at, origin.y(),
                          anchor, cssFamilies(item.style.face), font.pixelSize());
    if (font.weight() != QFont::Normal) m_body += fmt::format(" font-weight=\"{}\"", static_cast<int>(font.weight()));
    if (item.style.italic) m_body += " font-style=\"italic\"";
    if (item.text.front() == ' ' || item.text.back() == ' ' || item.text.find("  ") != std::string::npos)
        m_body += " xml:space=\"preserve\""; // browsers do not inherit it
    m_body += paint(item.colour, {}) + ">" + escaped(item.text) + "</text>\n";
}

void SvgWriter::operator()(const PointCloudItem& item) {
    if (!isPainted(item)) return;
    if (m_options.rasteriseAbove > 0 && item.points->size() > m_options.rasteriseAbove) {
        const QImage layer = rasterised(m_scene, item, PaintOptions().rasterDpi);
        const QSizeF size = layer.deviceIndependentSize();
        m_body += imageElement({0, 0, size.width(), size.height()}, layer);
        return;
    }
    const auto arms = markerArms(item.marker, item.radius);
    const std::vector<Point> outline = markerOutline(item.marker, item.radius);
    m_body += "<g" + paint(item.fill, arms.empty() ? item.stroke : armStroke(item.stroke, item.fill)) + ">\n";
    for (const Point p : *item.points) {
        if (item.marker == Marker::Circle)
            m_body += circle(p, item.radius) + "/>\n";
        else if (arms.empty())
            m_body += fmt::format("<polygon points=\"{}\"/>\n", pointList(outline, p));
        for (const auto& arm : arms)
            m_body += fmt::format("<polyline points=\"{}\"/>\n", pointList({arm[0], arm[1]}, p));
    }
    m_body += "</g>\n";
}

} // namespace

QString xmlText(const std::string& text) {
    QString kept = QString::fromStdString(text).toHtmlEscaped();
    kept.removeIf([](QChar c) {
        return (c < QChar(0x20) && c != u'\n' && c != u'\t') || c == QChar(0xFFFE) || c == QChar(0xFFFF);
    });
    return kept;
}

std::string sceneAsSvg(const Scene& scene, const SvgOptions& options, EmbeddedFonts* fonts) {
    EmbeddedFonts own;
    const std::string body = SvgWriter(scene, options, fonts ? *fonts : own).body();
    std::string svg = fmt::format("<svg width=\"{:.6g}mm\" height=\"{:.6g}mm\" viewBox=\"0 0 {:.6g} {:.6g}\" "
                                  "xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"",
                                  scene.width * kMillimetres, scene.height * kMillimetres, scene.width, scene.height);
    if (!options.label.empty()) svg += " role=\"img\" aria-label=\"" + escaped(options.label) + "\"";
    svg += ">\n";
    if (!options.title.empty()) svg += "<title>" + escaped(options.title) + "</title>\n";
    if (!options.description.empty()) svg += "<desc>" + escaped(options.description) + "</desc>\n";
    if (const std::string css = own.css(); !css.empty()) svg += "<style>" + css + "</style>\n";
    return svg + "<g fill-rule=\"evenodd\" stroke-linejoin=\"round\" text-rendering=\"geometricPrecision\">\n<rect" +
           sides({0, 0, scene.width, scene.height}) + paint(scene.background, {}) + "/>\n" + body + "</g>\n</svg>\n";
}

} // namespace kvscope
