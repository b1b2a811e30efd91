// The third painter: a scene as lines of text, so that a test can say what must be visible and a failure reads like a
// diff.
#include "views/scene/text_painter.h"

#include <fmt/format.h>

#include <cmath>

namespace kvscope {

namespace {

long whole(double value) { return std::lround(value); }
std::string pointText(Point p) { return fmt::format("{},{}", whole(p.x), whole(p.y)); }
std::string boxText(const Box& b) {
    return fmt::format("{},{} {}x{}", whole(b.x), whole(b.y), whole(b.width), whole(b.height));
}

std::string paintText(Colour fill, const Stroke& stroke) {
    std::string text;
    if (fill.a > 0)
        text += " fill " + colourText(fill);
    if (stroke.colour.a > 0)
        text += fmt::format(" stroke {} {:g}{}", colourText(stroke.colour), stroke.width,
                            stroke.dash.empty() ? "" : " dashed");
    return text;
}

std::string pickText(const PickId& pick) {
    static const char* const kKinds[] = {"", "token", "cell", "node", "handle", "legend", "button"};
    return pick.kind == PickId::Kind::None ? ""
                                           : fmt::format(" [{} {}]", kKinds[static_cast<int>(pick.kind)], pick.index);
}

const char* markerText(Marker marker) {
    static const char* const kNames[] = {"circles",  "squares", "diamonds", "triangles", "triangles down",
                                         "hexagons", "stars",   "pluses",   "crosses"};
    return kNames[static_cast<int>(marker)];
}

std::string outlineText(const std::vector<Point>& points) {
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
        return "polygon " + outlineText(i.points) + paintText(i.fill, i.stroke) + pickText(i.pick);
    }
    std::string operator()(const CircleItem& i) const {
        return fmt::format("circle {} r {:g}{}{}", pointText(i.centre), i.radius, paintText(i.fill, i.stroke),
                           pickText(i.pick));
    }
    std::string operator()(const TextItem& i) const {
        const std::string turned = i.angleDegrees != 0 ? fmt::format(" turned {:g}", i.angleDegrees) : "";
        return fmt::format("text {} \"{}\" {:g} px{} {}{}", pointText(i.position), i.text, i.style.size, turned,
                           colourText(i.colour), pickText(i.pick));
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

} // namespace

std::string colourText(Colour c) {
    return c.a == 255 ? fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b)
                      : fmt::format("#{:02x}{:02x}{:02x}{:02x}", c.r, c.g, c.b, c.a);
}

std::string paintSceneAsText(const Scene& scene) {
    std::string text =
        fmt::format("scene {}x{} on {}\n", whole(scene.width), whole(scene.height), colourText(scene.background));
    for (const Drawable& item : scene.items)
        text += std::visit(Writer{}, item) + "\n";
    return text;
}

} // namespace kvscope
