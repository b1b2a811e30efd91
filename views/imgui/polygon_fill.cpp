// Two pieces of plane geometry that ImGui's draw lists lack: filling a polygon that is not convex, and dashing a line.
#include "views/imgui/polygon_fill.h"

#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

double cross(Point a, Point b, Point c) {
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

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

bool isEar(const std::vector<Point>& points, const std::vector<std::size_t>& left, std::size_t at, double orientation) {
    const std::size_t n = left.size();
    const std::size_t i = left[(at + n - 1) % n], j = left[at], k = left[(at + 1) % n];
    if (cross(points[i], points[j], points[k]) * orientation <= 0)
        return false;
    for (const std::size_t other : left)
        if (other != i && other != j && other != k && inTriangle(points[other], points[i], points[j], points[k]))
            return false;
    return true;
}

} // namespace

std::vector<std::array<std::size_t, 3>> triangulate(const std::vector<Point>& points) {
    std::vector<std::array<std::size_t, 3>> triangles;
    if (points.size() < 3)
        return triangles;
    const double orientation = signedArea(points) >= 0 ? 1 : -1;
    std::vector<std::size_t> left(points.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    while (left.size() > 3) {
        std::size_t ear = 0;
        while (ear < left.size() && !isEar(points, left, ear, orientation))
            ++ear;
        if (ear == left.size())
            return triangles; // crosses itself, or nothing but a line is left
        const std::size_t n = left.size();
        triangles.push_back({left[(ear + n - 1) % n], left[ear], left[(ear + 1) % n]});
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(ear));
    }
    triangles.push_back({left[0], left[1], left[2]});
    return triangles;
}

std::vector<std::vector<Point>> dashes(const std::vector<Point>& line, const std::vector<double>& pattern, bool closed) {
    std::vector<std::vector<Point>> pieces;
    const double period = std::accumulate(pattern.begin(), pattern.end(), 0.0);
    if (line.size() < 2 || !(period > 0))
        return pieces;
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
    if (phase % 2 == 0 && piece.size() > 1)
        pieces.push_back(piece);
    return pieces;
}

} // namespace kvscope
