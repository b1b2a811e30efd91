// Small helpers that put drawables into a scene, measure text and know the geometry of markers.
#include "views/scene/scene_builder.h"

#include <cmath>
#include <numbers>
#include <sstream>
#include <utility>

namespace kvscope {

void SceneBuilder::rectangle(Box box, Colour fill, Stroke stroke, double radius, PickId pick) {
    m_scene.items.push_back(RectangleItem{box, fill, std::move(stroke), radius, pick});
}

void SceneBuilder::line(Point from, Point to, Stroke stroke) {
    if (stroke.width <= 1 && from.x == to.x) from.x = to.x = std::floor(from.x) + 0.5;
    if (stroke.width <= 1 && from.y == to.y) from.y = to.y = std::floor(from.y) + 0.5;
    m_scene.items.push_back(PolylineItem{{from, to}, std::move(stroke), false, {}});
}

void SceneBuilder::polyline(std::vector<Point> points, Stroke stroke, bool closed) {
    m_scene.items.push_back(PolylineItem{std::move(points), std::move(stroke), closed, {}});
}

void SceneBuilder::polygon(std::vector<Point> points, Colour fill, Stroke stroke) {
    m_scene.items.push_back(PolygonItem{std::move(points), fill, std::move(stroke)});
}

void SceneBuilder::circle(Point centre, double radius, Colour fill, Stroke stroke, PickId pick) {
    m_scene.items.push_back(CircleItem{centre, radius, fill, std::move(stroke), pick});
}

void SceneBuilder::mark(Point at, Marker marker, double radius, Colour fill, const Stroke& stroke) {
    const auto arms = markerArms(marker, radius);
    for (const auto& [from, to] : arms)
        line({at.x + from.x, at.y + from.y}, {at.x + to.x, at.y + to.y}, armStroke(stroke, fill));
    std::vector<Point> outline = markerOutline(marker, radius);
    for (Point& p : outline) p = {p.x + at.x, p.y + at.y};
    if (!outline.empty())
        polygon(std::move(outline), fill, stroke);
    else if (arms.empty())
        circle(at, radius, fill, stroke);
}

void SceneBuilder::labelOnCanvas(Point position, const std::string& words, const TextStyle& style, Colour colour,
                                 const Theme& theme, HorizontalAlign horizontal) {
    const double wide = width(words, style), left = position.x - (horizontal == HorizontalAlign::Right ? wide : 0);
    rectangle({left - 4, position.y - 9, wide + 8, 18}, withAlpha(theme.canvas, 0.93));
    label(position, words, style, colour, horizontal);
}

void SceneBuilder::marks(std::string name, std::vector<Point> at, Marker marker, double radius, Colour fill,
                         Stroke stroke) {
    points({std::make_shared<const std::vector<Point>>(std::move(at)),
            {},
            PickId::Kind::None,
            marker,
            radius,
            fill,
            std::move(stroke),
            std::move(name)});
}

void SceneBuilder::image(Box box, std::int64_t width, std::int64_t height, const std::vector<Colour>& pixels,
                         PickId pick) {
    auto rgba = std::make_shared<std::vector<std::uint8_t>>();
    rgba->reserve(4 * pixels.size());
    for (const Colour& c : pixels) rgba->insert(rgba->end(), {c.r, c.g, c.b, c.a});
    m_scene.items.push_back(ImageItem{box, static_cast<int>(width), static_cast<int>(height), std::move(rgba), pick});
}

double SceneBuilder::text(Point position, std::string text, const TextStyle& style, Colour colour,
                          HorizontalAlign horizontal, VerticalAlign vertical, double angleDegrees) {
    const double w = width(text, style);
    m_scene.items.push_back(TextItem{position, std::move(text), style, colour, horizontal, vertical, angleDegrees});
    return w;
}

namespace {

/// Steps back to the start of a UTF-8 sequence.
std::size_t sequenceStart(const std::string& text, std::size_t at) {
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) --at;
    return at;
}

} // namespace

std::string SceneBuilder::elide(const std::string& text, const TextStyle& style, double available) const {
    if (width(text, style) <= available) return text;
    std::size_t fits = 0, tooLong = text.size();
    while (fits + 1 < tooLong) {
        const std::size_t middle = (fits + tooLong) / 2;
        const bool fit = width(text.substr(0, sequenceStart(text, middle)) + "…", style) <= available;
        (fit ? fits : tooLong) = middle;
    }
    const std::size_t end = sequenceStart(text, fits);
    return end == 0 ? std::string() : text.substr(0, end) + "…";
}

std::vector<std::string> SceneBuilder::wrap(const std::string& text, const TextStyle& style, double available) const {
    std::vector<std::string> lines;
    std::istringstream words(text);
    std::string line;
    for (std::string word; words >> word;) {
        const std::string longer = line.empty() ? word : line + " " + word;
        if (!line.empty() && width(longer, style) > available) {
            lines.push_back(std::exchange(line, word));
            continue;
        }
        line = longer;
    }
    if (!line.empty()) lines.push_back(line);
    return lines;
}

Point baselineOf(const TextItem& item, const TextExtent& extent) {
    Point begin;
    if (item.horizontal != HorizontalAlign::Left)
        begin.x = item.horizontal == HorizontalAlign::Centre ? -extent.width / 2 : -extent.width;
    switch (item.vertical) {
    case VerticalAlign::Top: begin.y = extent.ascent; break;
    case VerticalAlign::Middle: begin.y = (extent.ascent - extent.descent) / 2; break;
    case VerticalAlign::Bottom: begin.y = -extent.descent; break;
    case VerticalAlign::Baseline: break;
    }
    return begin;
}

std::vector<Point> markerOutline(Marker marker, double radius) {
    struct Form {
        int corners;
        double firstDegrees, size;
    };
    const auto formOf = [](Marker m) -> Form {
        switch (m) {
        case Marker::Square: return {4, 45, 1.22};
        case Marker::Diamond: return {4, 0, 1.25};
        case Marker::TriangleUp: return {3, -90, 1.2};
        case Marker::TriangleDown: return {3, 90, 1.2};
        case Marker::Hexagon: return {6, 0, 1};
        case Marker::Star: return {10, -90, 1};
        default: return {0, 0, 0};
        }
    };
    const Form form = formOf(marker);
    std::vector<Point> points;
    for (int i = 0; i < form.corners; ++i) {
        const double starred = marker == Marker::Star ? (i % 2 == 0 ? 1.25 : 0.52) : 1;
        const double angle = (form.firstDegrees + 360.0 * i / form.corners) * std::numbers::pi / 180;
        points.push_back(
            {radius * form.size * starred * std::cos(angle), radius * form.size * starred * std::sin(angle)});
    }
    return points;
}

std::vector<std::array<Point, 2>> markerArms(Marker marker, double radius) {
    if (marker == Marker::Plus) return {{{{-radius, 0}, {radius, 0}}}, {{{0, -radius}, {0, radius}}}};
    const double reach = radius / std::numbers::sqrt2;
    if (marker == Marker::Cross) return {{{{-reach, -reach}, {reach, reach}}}, {{{-reach, reach}, {reach, -reach}}}};
    return {};
}

Stroke armStroke(const Stroke& stroke, Colour fill) { return stroke.colour.a > 0 ? stroke : Stroke{fill, 1.6, {}}; }

} // namespace kvscope
