// Paints scenes with QPainter, for files and for canvases: each drawable becomes a QPainter call that looks as the
// ImGui painter draws it. Layout is not decided here.
#include "app/export/painter_scene.h"

#include "app/export/paint_cache.h"
#include "app/text/qt_text_service.h"
#include "views/scene/scene_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

namespace {

QColor colourOf(Colour c) { return QColor(c.r, c.g, c.b, c.a); }
QRectF rectOf(const Box& b) { return {b.x, b.y, b.width, b.height}; }

QPen penOf(const Stroke& stroke) {
    if (stroke.colour.a == 0 || stroke.width <= 0) return Qt::NoPen;
    QPen pen(colourOf(stroke.colour), stroke.width);
    pen.setJoinStyle(Qt::RoundJoin);
    pen.setCapStyle(stroke.dash.empty() ? Qt::RoundCap : Qt::FlatCap);
    if (!stroke.dash.empty()) {
        QList<qreal> pattern; // Qt counts dashes in pen widths
        for (const double length : stroke.dash) pattern << length / stroke.width;
        if (pattern.size() % 2 != 0) pattern << pattern.back();
        pen.setDashPattern(pattern);
    }
    return pen;
}

QBrush brushOf(Colour c) { return c.a == 0 ? QBrush(Qt::NoBrush) : QBrush(colourOf(c)); }

QPolygonF polygonOf(const std::vector<Point>& points) {
    QPolygonF polygon;
    polygon.reserve(static_cast<qsizetype>(points.size()));
    for (const Point p : points) polygon << QPointF(p.x, p.y);
    return polygon;
}

void drawMarks(QPainter& painter, const PointCloudItem& item) {
    const auto arms = markerArms(item.marker, item.radius);
    painter.setBrush(brushOf(item.fill));
    painter.setPen(penOf(arms.empty() ? item.stroke : armStroke(item.stroke, item.fill)));
    const QPolygonF outline = polygonOf(markerOutline(item.marker, item.radius));
    for (const Point p : *item.points) {
        if (item.marker == Marker::Circle)
            painter.drawEllipse(QPointF(p.x, p.y), item.radius, item.radius);
        else if (arms.empty())
            painter.drawPolygon(outline.translated(p.x, p.y));
        for (const auto& [from, to] : arms)
            painter.drawLine(QPointF(p.x + from.x, p.y + from.y), QPointF(p.x + to.x, p.y + to.y));
    }
}

class ItemPainter {
public:
    ItemPainter(QPainter& painter, const Scene& scene, const PaintOptions& options)
        : m_painter(painter), m_scene(scene), m_options(options) {}

    void operator()(const RectangleItem& item) {
        m_painter.setBrush(brushOf(item.fill));
        m_painter.setPen(penOf(item.stroke));
        // Outlines lie inside the box, on pixel centres.
        const double inset = item.stroke.colour.a != 0 ? item.stroke.width / 2 : 0;
        const QRectF rect = rectOf(item.box).adjusted(inset, inset, -inset, -inset);
        if (item.radius > 0)
            m_painter.drawRoundedRect(rect, item.radius, item.radius);
        else
            m_painter.drawRect(rect);
    }
    void operator()(const PolylineItem& item) {
        if (m_options.cache && isThinLine(item)) return drawThinLine(item);
        m_painter.setBrush(Qt::NoBrush);
        m_painter.setPen(penOf(item.stroke));
        if (item.closed)
            m_painter.drawPolygon(polygonOf(item.points));
        else
            m_painter.drawPolyline(polygonOf(item.points));
    }
    void operator()(const PolygonItem& item) {
        m_painter.setBrush(brushOf(item.fill));
        m_painter.setPen(penOf(item.stroke));
        m_painter.drawPolygon(polygonOf(item.points));
    }
    void operator()(const CircleItem& item) {
        m_painter.setBrush(brushOf(item.fill));
        m_painter.setPen(penOf(item.stroke));
        m_painter.drawEllipse(QPointF(item.centre.x, item.centre.y), item.radius, item.radius);
    }
    void operator()(const TextItem& item);
    void operator()(const ImageItem& item) {
        if (!item.rgba || item.width <= 0 || item.height <= 0) return;
        m_painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
        m_painter.drawImage(rectOf(item.box), m_options.cache ? m_options.cache->images.of(item) : imageOf(item));
    }
    void operator()(const PointCloudItem& item);
    void operator()(const PushClipItem& item) {
        m_painter.save();
        m_painter.setClipRect(rectOf(item.box), Qt::IntersectClip);
    }
    void operator()(const PopClipItem&) { m_painter.restore(); }

private:
    static bool isThinLine(const PolylineItem& item) {
        return item.points.size() == 2 && !item.closed && item.stroke.width <= 3;
    }
    void drawThinLine(const PolylineItem& item);
    void drawAsPicture(const TextItem& item);
    bool drawnAsOne(const PointCloudItem& item);

    QPainter& m_painter;
    const Scene& m_scene;
    const PaintOptions& m_options;
};

/// Square ends, because QPainter takes many times as long for a line with round ones.
void ItemPainter::drawThinLine(const PolylineItem& item) {
    QPen pen = penOf(item.stroke);
    if (pen.capStyle() == Qt::RoundCap) pen.setCapStyle(Qt::SquareCap);
    m_painter.setPen(pen);
    const auto [from, to] = std::pair(item.points.front(), item.points.back());
    m_painter.drawLine(QPointF(from.x, from.y), QPointF(to.x, to.y));
}

void ItemPainter::drawAsPicture(const TextItem& item) {
    const QTransform& toDevice = m_painter.deviceTransform();
    const TextPictures::Picture& picture = m_options.cache->texts.of(item, toDevice.m11());
    const Point begin = baselineOf(item, picture.extent);
    const QPointF corner = toDevice.map(QPointF(item.position.x + begin.x, item.position.y + begin.y));
    m_painter.setWorldMatrixEnabled(false);
    m_painter.drawImage(corner.toPoint() + picture.corner, picture.image);
    m_painter.setWorldMatrixEnabled(true);
}

void ItemPainter::operator()(const TextItem& item) {
    if (m_options.cache && item.angleDegrees == 0) return drawAsPicture(item);
    m_painter.save();
    m_painter.translate(item.position.x, item.position.y);
    if (item.angleDegrees != 0) m_painter.rotate(item.angleDegrees);
    if (const QPainterPath outlines = m_options.outlines ? outlinesOf(item) : QPainterPath(); !outlines.isEmpty())
        m_painter.fillPath(outlines, colourOf(item.colour));
    else {
        const auto [font, origin] = setText(item);
        m_painter.setFont(font);
        m_painter.setPen(colourOf(item.colour));
        m_painter.drawText(origin, QString::fromStdString(item.text));
    }
    m_painter.restore();
}

/// Paints the marks as one picture where that is faster, and returns whether it did. Only marks of a single colour may
/// be blended in any order.
bool ItemPainter::drawnAsOne(const PointCloudItem& item) {
    // Pixels of the clip that take as long as one mark: a picture takes time per pixel, separate marks per mark.
    constexpr double kPixelsForMark = 1024;
    if (!m_options.cache) return false;
    const bool arms = !markerArms(item.marker, item.radius).empty();
    const Stroke stroke = arms ? armStroke(item.stroke, item.fill) : item.stroke;
    const bool isFilled = item.fill.a > 0 && !arms, isOutlined = stroke.colour.a > 0 && stroke.width > 0;
    const QTransform& toDevice = m_painter.deviceTransform();
    QRectF clip(0, 0, m_scene.width, m_scene.height);
    if (m_painter.hasClipping()) clip &= m_painter.clipBoundingRect();
    const double pixels = clip.width() * toDevice.m11() * clip.height() * toDevice.m22();
    if (isFilled == isOutlined || pixels > kPixelsForMark * static_cast<double>(item.points->size())) return false;
    const MarkLayer::Mark mark{item.marker, item.radius, isFilled ? 0 : stroke.width,
                               isFilled ? item.fill : stroke.colour};
    const auto [image, corner] = m_options.cache->marks.paint(
        *item.points, mark, {clip.x(), clip.y(), clip.width(), clip.height()}, toDevice.m11(), toDevice.m22());
    m_painter.setWorldMatrixEnabled(false);
    m_painter.drawImage(corner, image);
    m_painter.setWorldMatrixEnabled(true);
    return true;
}

void ItemPainter::operator()(const PointCloudItem& item) {
    if (!isPainted(item) || drawnAsOne(item)) return;
    if (m_options.rasteriseAbove == 0 || item.points->size() <= m_options.rasteriseAbove) {
        drawMarks(m_painter, item);
        return;
    }
    const QImage layer = rasterised(m_scene, item, m_options.rasterDpi);
    m_painter.drawImage(QRectF(QPointF(), layer.deviceIndependentSize()), layer);
}

} // namespace

double largestImageScale(double width, double height) {
    constexpr double kLongestSide = 32'767, kMostPixels = 0x1p28; // of 4 bytes
    return std::min(kLongestSide / std::max(width, height), std::sqrt(kMostPixels / (width * height)));
}

SetText setText(const TextItem& item) {
    const Point begin = baselineOf(item, extentOf(item.text, item.style));
    return {fontOf(item.style), {begin.x, begin.y}};
}

QPainterPath outlinesOf(const TextItem& item) {
    constexpr int kFiner = 32; // outlines of small sizes are rounded to 1/64 pixel
    auto [font, origin] = setText(item);
    font.setPixelSize(font.pixelSize() * kFiner);
    QPainterPath path;
    path.addText(QPointF(), font, QString::fromStdString(item.text));
    return QTransform::fromTranslate(origin.x(), origin.y()).scale(1.0 / kFiner, 1.0 / kFiner).map(path);
}

bool isPainted(const PointCloudItem& cloud) {
    return (cloud.fill.a != 0 || (cloud.stroke.colour.a != 0 && cloud.stroke.width > 0)) && cloud.points &&
           !cloud.points->empty();
}

QImage rasterised(const Scene& scene, const PointCloudItem& cloud, double dpi) {
    const double scale = std::min(dpi / 96, largestImageScale(scene.width, scene.height)); // 96 logical pixels an inch
    QImage layer(static_cast<int>(std::ceil(scene.width * scale)), static_cast<int>(std::ceil(scene.height * scale)),
                 QImage::Format_ARGB32_Premultiplied);
    layer.fill(Qt::transparent);
    layer.setDevicePixelRatio(scale);
    QPainter painter(&layer);
    painter.setRenderHint(QPainter::Antialiasing);
    drawMarks(painter, cloud);
    return layer;
}

void paintScene(QPainter& painter, const Scene& scene, const PaintOptions& options) {
    painter.save();
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    painter.fillRect(QRectF(0, 0, scene.width, scene.height), colourOf(scene.background));
    ItemPainter paint(painter, scene, options);
    for (const Drawable& item : scene.items) std::visit(paint, item);
    painter.restore();
}

} // namespace kvscope
