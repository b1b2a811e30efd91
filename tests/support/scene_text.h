#pragma once

#include "tests/support/scene_text.h"
#include "views/scene/scene_builder.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <string>

namespace kvscope {

/// The upright box that a text covers, rotation included.
inline Box textBounds(const TextItem& item, const TextService& service) {
    const TextExtent extent = service.measure(item.text, item.style);
    const double left = item.horizontal == HorizontalAlign::Left     ? 0
                        : item.horizontal == HorizontalAlign::Centre ? -extent.width / 2
                                                                     : -extent.width;
    const double height = extent.ascent + extent.descent;
    const double top = item.vertical == VerticalAlign::Baseline ? -extent.ascent
                       : item.vertical == VerticalAlign::Top    ? 0
                       : item.vertical == VerticalAlign::Middle ? -height / 2
                                                                : -height;
    const double angle = item.angleDegrees * std::numbers::pi / 180;
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    for (const Point corner : {Point{left, top}, Point{left + extent.width, top}, Point{left, top + height},
                               Point{left + extent.width, top + height}}) {
        const double x = corner.x * std::cos(angle) - corner.y * std::sin(angle);
        const double y = corner.x * std::sin(angle) + corner.y * std::cos(angle);
        x0 = std::min(x0, x), x1 = std::max(x1, x), y0 = std::min(y0, y), y1 = std::max(y1, y);
    }
    return {item.position.x + x0, item.position.y + y0, x1 - x0, y1 - y0};
}

namespace scene_text {

inline std::string colourText(Colour c) {
    return c.a == 255 ? fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b)
                      : fmt::format("#{:02x}{:02x}{:02x}{:02x}", c.r, c.g, c.b, c.a);
}

inline long whole(double value) { return std::lround(value); }
inline std::string pointText(Point p) { return fmt::format("{},{}", whole(p.x), whole(p.y)); }
inline std::string boxText(const Box& b) {
    return fmt::format("{},{} {}x{}", whole(b.x), whole(b.y), whole(b.width), whole(b.height));
}

inline std::string paintText(Colour fill, const Stroke& stroke) {
    std::string text;
    if (fill.a > 0) text += " fill " + colourText(fill);
    if (stroke.colour.a > 0)
        text += fmt::format(" stroke {} {:g}{}", colourText(stroke.colour), stroke.width,
                            stroke.dash.empty() ? "" : " dashed");
    return text;
}

inline std::string pickText(const PickId& pick) {
    static const char* const kKinds[] = {"", "token", "cell", "node", "handle", "legend"};
    return pick.kind == PickId::Kind::None ? ""
                                           : fmt::format(" [{} {}]", kKinds[static_cast<int>(pick.kind)], pick.index);
}

inline const char* markerText(Marker marker) {
    static const char* const kNames[] = {"circles",  "squares", "diamonds", "triangles", "triangles down",
                                         "hexagons", "stars",   "pluses",   "crosses"};
    return kNames[static_cast<int>(marker)];
}

inline std::string outlineText(const std::vector<Point>& points) {
    return points.empty() ? ""
                          : fmt::format("{} .. {} ({} points)", pointText(points.front()), pointText(points.back()),
                                        points.size());
}

struct Writer {
    std::string operator()(const RectangleItem& i) const {
        return "rectangle " + boxText(i.box) + paintText(i.fill, i.stroke) + pickText(i.pick);
    }
    std::string operator()(const PolylineItem& i) const {
        return "line " + outlineText(i.points) + paintText(kTransparent, i.stroke) + pickText(i.pick);
    }
    std::string operator()(const PolygonItem& i) const {
        return "polygon " + outlineText(i.points) + paintText(i.fill, i.stroke);
    }
    std::string operator()(const CircleItem& i) const {
        return fmt::format("circle {} r {:g}{}{}", pointText(i.centre), i.radius, paintText(i.fill, i.stroke),
                           pickText(i.pick));
    }
    std::string operator()(const TextItem& i) const {
        const std::string turned = i.angleDegrees != 0 ? fmt::format(" turned {:g}", i.angleDegrees) : "";
        return fmt::format("text {} \"{}\" {:g} px{} {}", pointText(i.position), i.text, i.style.size, turned,
                           colourText(i.colour));
    }
    std::string operator()(const ImageItem& i) const {
        return fmt::format("image {} of {}x{}", boxText(i.box), i.width, i.height);
    }
    std::string operator()(const PointCloudItem& i) const {
        return fmt::format("cloud \"{}\" {} {} r {:g}{}", i.name, i.points ? i.points->size() : 0, markerText(i.marker),
                           i.radius, paintText(i.fill, i.stroke));
    }
    std::string operator()(const PushClipItem& i) const { return "clip " + boxText(i.box); }
    std::string operator()(const PopClipItem&) const { return "end of clip"; }
};

} // namespace scene_text

/// A scene as readable text, one line per drawable, coordinates rounded to whole pixels. Point clouds are named and
/// counted, images give their size.
inline std::string paintSceneAsText(const Scene& scene) {
    std::string text = fmt::format("scene {}x{} on {}\n", scene_text::whole(scene.width),
                                   scene_text::whole(scene.height), scene_text::colourText(scene.background));
    for (const Drawable& item : scene.items) text += std::visit(scene_text::Writer{}, item) + "\n";
    return text;
}

} // namespace kvscope
