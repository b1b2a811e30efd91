// Plane geometry that ImGui's draw lists lack: filling a polygon that is not convex, joints of lines, and dashes.
#include "views/imgui/polygon_fill.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace kvscope {

namespace {

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

/// A corner with its neighbours among those that are left.
struct Corner {
    std::size_t before, at, behind;

    Corner(const std::vector<std::size_t>& left, std::size_t place)
        : before(left[(place + left.size() - 1) % left.size()]), at(left[place]),
          behind(left[(place + 1) % left.size()]) {}
    double area(const std::vector<Point>& points) const {
        return cross(points[before], points[at], points[behind]) / 2;
    }
};

/// Without an area, as where two sides of a band meet in one point: it can go without a triangle.
bool isFlat(const std::vector<Point>& points, const Corner& corner) { return std::abs(corner.area(points)) < 1e-9; }

/// `pinched`: other corners may lie upon its own, as where two sides touch.
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

/// A corner that can go; the number of those that are left: none can.
std::size_t earOf(const std::vector<Point>& points, const std::vector<std::size_t>& left, double orientation) {
    for (const bool pinched : {false, true})
        for (std::size_t place = 0; place < left.size(); ++place)
            if (isFlat(points, {left, place}) || isEar(points, left, {left, place}, orientation, pinched)) return place;
    return left.size();
}

} // namespace

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
        if (ear == left.size()) return triangles; // crosses itself
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
