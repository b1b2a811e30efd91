// Paints one drawable after the other, in the order of the scene: a later one lies on top, on the screen as on paper.
#include "views/imgui/imgui_scene_painter.h"

#include "views/scene/scene_builder.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>

namespace kvscope {

namespace {

ImU32 packed(Colour colour) { return IM_COL32(colour.r, colour.g, colour.b, colour.a); }

ImVec2 at(Point point) { return {static_cast<float>(point.x), static_cast<float>(point.y)}; }

ImTextureID idOf(std::uint32_t texture) { return reinterpret_cast<ImTextureID>(static_cast<std::intptr_t>(texture)); }

std::vector<ImVec2> toImGui(const std::vector<Point>& points) {
    std::vector<ImVec2> converted;
    converted.reserve(points.size());
    for (const Point& point : points) converted.push_back(at(point));
    return converted;
}

void drawLine(ImDrawList& list, const std::vector<Point>& points, const Stroke& stroke, bool closed) {
    if (stroke.colour.a == 0 || stroke.width <= 0 || points.size() < 2) return;
    const auto draw = [&](const std::vector<Point>& piece, bool close) {
        const std::vector<ImVec2> corners = toImGui(piece);
        list.AddPolyline(corners.data(), static_cast<int>(corners.size()), packed(stroke.colour),
                         close ? ImDrawFlags_Closed : 0, static_cast<float>(stroke.width));
    };
    if (stroke.dash.empty()) {
        const auto pieces = jointPieces(points, stroke.width, closed);
        if (pieces.size() == 1 || stroke.colour.a < 255) // a translucent line would be darker where two pieces meet
            return draw(points, closed);
        for (const std::vector<Point>& piece : pieces) draw(piece, false);
        return;
    }
    for (const std::vector<Point>& piece : dashes(points, stroke.dash, closed)) draw(piece, false);
}

void fillPolygon(ImDrawList& list, const std::vector<Point>& points, Colour fill) {
    if (isConvex(points)) {
        const std::vector<ImVec2> corners = toImGui(points);
        return list.AddConvexPolyFilled(corners.data(), static_cast<int>(corners.size()), packed(fill));
    }
    // Smoothed edges of triangles that touch would show as seams.
    const ImDrawListFlags flags = list.Flags;
    list.Flags &= ~ImDrawListFlags_AntiAliasedFill;
    for (const auto& [i, j, k] : triangulate(points))
        list.AddTriangleFilled(at(points[i]), at(points[j]), at(points[k]), packed(fill));
    list.Flags = flags;
}

void drawPolygon(ImDrawList& list, const std::vector<Point>& points, Colour fill, const Stroke& stroke) {
    if (fill.a > 0) fillPolygon(list, points, fill);
    drawLine(list, points, stroke, true);
}

void drawRectangle(ImDrawList& list, const RectangleItem& item) {
    const Box& box = item.box;
    const ImVec2 from = at({box.x, box.y}), to = at({box.right(), box.bottom()});
    if (item.fill.a > 0) list.AddRectFilled(from, to, packed(item.fill), static_cast<float>(item.radius));
    if (item.stroke.colour.a == 0 || item.stroke.width <= 0) return;
    if (!item.stroke.dash.empty())
        return drawLine(list,
                        {{box.x, box.y}, {box.right(), box.y}, {box.right(), box.bottom()}, {box.x, box.bottom()}},
                        item.stroke, true);
    // AddRect insets by half a pixel for its own convention of pixel centres; a path has none.
    list.PathRect(from, to, static_cast<float>(item.radius));
    list.PathStroke(packed(item.stroke.colour), ImDrawFlags_Closed, static_cast<float>(item.stroke.width));
}

void drawCircle(ImDrawList& list, Point centre, double radius, Colour fill, const Stroke& stroke) {
    const int segments = radius < 4 ? 12 : radius < 12 ? 20 : 32;
    if (fill.a > 0) list.AddCircleFilled(at(centre), static_cast<float>(radius), packed(fill), segments);
    if (stroke.colour.a == 0 || stroke.width <= 0) return;
    if (stroke.dash.empty()) {
        list.PathArcTo(at(centre), static_cast<float>(radius), 0,
                       static_cast<float>(2 * std::numbers::pi * (segments - 1) / segments), segments - 1);
        list.PathStroke(packed(stroke.colour), ImDrawFlags_Closed, static_cast<float>(stroke.width));
        return;
    }
    std::vector<Point> ring;
    for (int i = 0; i < segments; ++i)
        ring.push_back({centre.x + radius * std::cos(2 * std::numbers::pi * i / segments),
                        centre.y + radius * std::sin(2 * std::numbers::pi * i / segments)});
    drawLine(list, ring, stroke, true);
}

/// A mark as a piece of a texture, in one colour.
struct Stamp {
    TexturePatch patch;
    ImU32 colour;
};

/// Draws stamps of one texture at all points that the clip shows: fill and outline of a mark before the next mark.
void stampAll(ImDrawList& list, const std::vector<Point>& points, std::span<const Stamp> stamps) {
    constexpr std::size_t kBatch = 2048; // indices of a draw command have 16 bits
    const ImVec2 low = list.GetClipRectMin(), high = list.GetClipRectMax();
    const double reach = stamps.back().patch.width / 2;
    list.PushTextureID(idOf(stamps.front().patch.texture));
    for (std::size_t begin = 0; begin < points.size(); begin += kBatch) {
        const std::span batch(points.data() + begin, std::min(kBatch, points.size() - begin));
        const int most = static_cast<int>(batch.size() * stamps.size());
        list.PrimReserve(6 * most, 4 * most);
        int drawn = 0;
        for (const Point& point : batch) {
            if (!(point.x + reach >= low.x && point.x - reach <= high.x && point.y + reach >= low.y &&
                  point.y - reach <= high.y))
                continue;
            for (const auto& [patch, colour] : stamps) {
                const Point from{point.x + patch.left, point.y + patch.top};
                list.PrimRectUV(at(from), at({from.x + patch.width, from.y + patch.height}), {patch.u0, patch.v0},
                                {patch.u1, patch.v1}, colour);
                ++drawn;
            }
        }
        list.PrimUnreserve(6 * (most - drawn), 4 * (most - drawn));
    }
    list.PopTextureID();
}

double cross(Point a, Point b, Point c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }

bool inTriangle(Point p, Point a, Point b, Point c) {
    const double u = cross(a, b, p), v = cross(b, c, p), w = cross(c, a, p);
    return (u >= 0 && v >= 0 && w >= 0) || (u <= 0 && v <= 0 && w <= 0);
}

double signedArea(const std::vector<Point>& points) {
    double sum = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Point &a = points[i], &b = points[(i + 1) % points.size()];
        sum += a.x * b.y - b.x * a.y;
    }
    return sum / 2;
}

bool same(Point a, Point b) { return a.x == b.x && a.y == b.y; }

/// A corner with its neighbours among the corners that are left.
struct Corner {
    std::size_t before, at, behind;

    Corner(const std::vector<std::size_t>& left, std::size_t place)
        : before(left[(place + left.size() - 1) % left.size()]), at(left[place]),
          behind(left[(place + 1) % left.size()]) {}
    double area(const std::vector<Point>& points) const {
        return cross(points[before], points[at], points[behind]) / 2;
    }
};

/// A corner without an area, as where two sides of a band meet in one point, is removed without a triangle.
bool isFlat(const std::vector<Point>& points, const Corner& corner) { return std::abs(corner.area(points)) < 1e-9; }

/// `pinched`: other corners may coincide with one of its three points, as where two sides touch.
bool isEar(const std::vector<Point>& points, const std::vector<std::size_t>& left, const Corner& corner,
           double orientation, bool pinched) {
    const Point &i = points[corner.before], &j = points[corner.at], &k = points[corner.behind];
    if (corner.area(points) * orientation <= 0) return false;
    return std::ranges::none_of(left, [&](std::size_t other) {
        const Point& p = points[other];
        const bool own = other == corner.before || other == corner.at || other == corner.behind;
        return !own && !(pinched && (same(p, i) || same(p, j) || same(p, k))) && inTriangle(p, i, j, k);
    });
}

/// How far the line turns at b, 0 (straight on) to pi (back).
double turnAt(Point a, Point b, Point c) {
    const double dot = (b.x - a.x) * (c.x - b.x) + (b.y - a.y) * (c.y - b.y);
    return std::abs(std::atan2(cross(a, b, c), dot));
}

bool jointHolds(Point a, Point b, Point c, double width) {
    constexpr double kSmoothing = 2.5; // pixels that ImGui adds to both edges of a line, together
    constexpr double kSharp = 160 * std::numbers::pi / 180, kBend = 30 * std::numbers::pi / 180;
    const double turn = turnAt(a, b, c);
    const double shorter = std::min(std::hypot(b.x - a.x, b.y - a.y), std::hypot(c.x - b.x, c.y - b.y));
    return turn < kBend || (turn < kSharp && shorter > width + kSmoothing);
}

/// Place in `left` of a corner that can be removed; the size of `left`: none can.
std::size_t earOf(const std::vector<Point>& points, const std::vector<std::size_t>& left, double orientation) {
    for (const bool pinched : {false, true})
        for (std::size_t place = 0; place < left.size(); ++place)
            if (isFlat(points, {left, place}) || isEar(points, left, {left, place}, orientation, pinched)) return place;
    return left.size();
}

} // namespace

void ImGuiScenePainter::paintText(const TextItem& item, ImDrawList& list, double deviceScale) {
    if (item.text.empty() || item.colour.a == 0) return;
    const TexturePatch patch = m_textures.text(item.text, item.style, deviceScale);
    if (patch.texture == 0) return;
    const Point baseline = baselineOf(item, m_text.measure(item.text, item.style));
    double x = baseline.x + patch.left;
    double y = baseline.y + patch.top;
    const ImU32 tint = patch.coloured ? IM_COL32(255, 255, 255, item.colour.a) : packed(item.colour);
    if (item.angleDegrees == 0) {
        const auto snapped = [&](double value) { return std::round(value * deviceScale) / deviceScale; };
        x = snapped(item.position.x + x);
        y = snapped(item.position.y + y);
        list.AddImage(idOf(patch.texture), at({x, y}), at({x + patch.width, y + patch.height}), {patch.u0, patch.v0},
                      {patch.u1, patch.v1}, tint);
        return;
    }
    const double angle = item.angleDegrees * std::numbers::pi / 180;
    const auto turned = [&](double dx, double dy) {
        return at({item.position.x + dx * std::cos(angle) - dy * std::sin(angle),
                   item.position.y + dx * std::sin(angle) + dy * std::cos(angle)});
    };
    list.AddImageQuad(idOf(patch.texture), turned(x, y), turned(x + patch.width, y),
                      turned(x + patch.width, y + patch.height), turned(x, y + patch.height), {patch.u0, patch.v0},
                      {patch.u1, patch.v0}, {patch.u1, patch.v1}, {patch.u0, patch.v1}, tint);
}

void ImGuiScenePainter::paintImage(const ImageItem& item, ImDrawList& list) {
    list.AddImage(idOf(m_textures.image(item)), at({item.box.x, item.box.y}),
                  at({item.box.right(), item.box.bottom()}));
}

void ImGuiScenePainter::paintCloud(const PointCloudItem& item, ImDrawList& list, double deviceScale) {
    const bool arms = !markerArms(item.marker, item.radius).empty();
    const Stroke stroke = arms ? armStroke(item.stroke, item.fill) : item.stroke;
    const bool isFilled = item.fill.a > 0 && !arms, isOutlined = stroke.colour.a > 0 && stroke.width > 0;
    if ((!isFilled && !isOutlined) || !item.points || item.points->empty()) return;
    std::vector<Stamp> stamps;
    if (isFilled) stamps.push_back({m_textures.mark(item.marker, item.radius, 0, deviceScale), packed(item.fill)});
    if (isOutlined)
        stamps.push_back({m_textures.mark(item.marker, item.radius, stroke.width, deviceScale), packed(stroke.colour)});
    for (auto first = stamps.begin();
         first != stamps.end();) { // twice only where a page ended between fill and outline
        const auto last = std::find_if(first, stamps.end(),
                                       [&](const Stamp& stamp) { return stamp.patch.texture != first->patch.texture; });
        stampAll(list, *item.points, {first, last});
        first = last;
    }
}

/// A small circle is a mark: as a polygon with smoothed edges it would cost a hundred triangles.
void ImGuiScenePainter::paintCircle(const CircleItem& item, ImDrawList& list, double deviceScale) {
    constexpr double kLargestMark = 8;
    if (item.radius > kLargestMark || !item.stroke.dash.empty())
        return drawCircle(list, item.centre, item.radius, item.fill, item.stroke);
    PointCloudItem mark;
    mark.points = std::make_shared<const std::vector<Point>>(1, item.centre);
    mark.radius = item.radius;
    mark.fill = item.fill;
    mark.stroke = item.stroke;
    paintCloud(mark, list, deviceScale);
}

void ImGuiScenePainter::paint(const Scene& scene, ImDrawList& list, double deviceScale) {
    m_textures.beginFrame();
    for (const Drawable& drawable : scene.items) {
        if (const auto* rectangle = std::get_if<RectangleItem>(&drawable))
            drawRectangle(list, *rectangle);
        else if (const auto* line = std::get_if<PolylineItem>(&drawable))
            drawLine(list, line->points, line->stroke, line->closed);
        else if (const auto* polygon = std::get_if<PolygonItem>(&drawable))
            drawPolygon(list, polygon->points, polygon->fill, polygon->stroke);
        else if (const auto* circle = std::get_if<CircleItem>(&drawable))
            paintCircle(*circle, list, deviceScale);
        else if (const auto* text = std::get_if<TextItem>(&drawable))
            paintText(*text, list, deviceScale);
        else if (const auto* image = std::get_if<ImageItem>(&drawable))
            paintImage(*image, list);
        else if (const auto* cloud = std::get_if<PointCloudItem>(&drawable))
            paintCloud(*cloud, list, deviceScale);
        else if (const auto* clip = std::get_if<PushClipItem>(&drawable))
            list.PushClipRect(at({clip->box.x, clip->box.y}), at({clip->box.right(), clip->box.bottom()}), true);
        else
            list.PopClipRect();
    }
}

bool isConvex(const std::vector<Point>& points) {
    const std::size_t n = points.size();
    double turned = 0;
    int sign = 0;
    for (std::size_t i = 0; n >= 3 && i < n; ++i) {
        const Point &a = points[i], &b = points[(i + 1) % n], &c = points[(i + 2) % n];
        const double side = cross(a, b, c);
        if (side != 0 && sign != 0 && (side > 0) != (sign > 0)) return false;
        sign = side > 0 ? 1 : side < 0 ? -1 : sign;
        turned += turnAt(a, b, c);
    }
    return sign != 0 && turned < 3 * std::numbers::pi; // a pentagram turns twice
}

std::vector<std::vector<Point>> jointPieces(const std::vector<Point>& line, double width, bool closed) {
    std::vector<Point> whole = line;
    if (closed) whole.push_back(line.front());
    std::vector<std::vector<Point>> pieces;
    std::vector<Point> piece;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        piece.push_back(whole[i]);
        const bool end = i + 1 == whole.size();
        if (!end && (i == 0 || jointHolds(whole[i - 1], whole[i], whole[i + 1], width))) continue;
        if (piece.size() > 1) pieces.push_back(piece);
        piece = {whole[i]};
    }
    return pieces;
}

std::vector<std::array<std::size_t, 3>> triangulate(const std::vector<Point>& points) {
    std::vector<std::array<std::size_t, 3>> triangles;
    if (points.size() < 3) return triangles;
    const double orientation = signedArea(points) >= 0 ? 1 : -1;
    std::vector<std::size_t> left(points.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    while (left.size() > 3) {
        const std::size_t ear = earOf(points, left, orientation);
        if (ear == left.size()) return triangles; // the polygon crosses itself
        if (const Corner corner(left, ear); !isFlat(points, corner))
            triangles.push_back({corner.before, corner.at, corner.behind});
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(ear));
    }
    triangles.push_back({left[0], left[1], left[2]});
    return triangles;
}

std::vector<std::vector<Point>> dashes(const std::vector<Point>& line, const std::vector<double>& pattern,
                                       bool closed) {
    std::vector<std::vector<Point>> pieces;
    const double period = std::accumulate(pattern.begin(), pattern.end(), 0.0);
    if (line.size() < 2 || !(period > 0)) return pieces;
    std::size_t phase = 0;
    double remaining = pattern[0];
    std::vector<Point> piece{line.front()};
    const std::size_t segments = closed ? line.size() : line.size() - 1;
    for (std::size_t s = 0; s < segments; ++s) {
        const Point a = line[s], b = line[(s + 1) % line.size()];
        const double length = std::hypot(b.x - a.x, b.y - a.y);
        double done = 0;
        while (length - done > remaining) {
            done += remaining;
            const Point at{a.x + (b.x - a.x) * done / length, a.y + (b.y - a.y) * done / length};
            if (phase % 2 == 0) {
                piece.push_back(at);
                pieces.push_back(piece);
            }
            piece = {at};
            phase = (phase + 1) % (pattern.size() % 2 == 0 ? pattern.size() : pattern.size() * 2);
            remaining = pattern[phase % pattern.size()];
        }
        remaining -= length - done;
        piece.push_back(b);
    }
    if (phase % 2 == 0 && piece.size() > 1) pieces.push_back(piece);
    return pieces;
}

} // namespace kvscope
