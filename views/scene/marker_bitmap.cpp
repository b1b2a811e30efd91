// The coverage of a pixel is computed from its distance to the mark's outline: exact for circles, close at corners.
#include "views/scene/marker_bitmap.h"

#include "views/scene/scene_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

/// A mark as its distance function; negative inside.
class Shape {
public:
    Shape(Marker marker, double radius)
        : m_radius(radius), m_outline(markerOutline(marker, radius)), m_arms(markerArms(marker, radius)) {}

    double distance(Point p) const {
        if (!m_arms.empty()) return toArms(p);
        return m_outline.empty() ? std::hypot(p.x, p.y) - m_radius : toOutline(p);
    }
    /// The largest distance of a part of the mark from the middle.
    double reach() const {
        double most = m_radius;
        for (const Point& corner : m_outline) most = std::max(most, std::hypot(corner.x, corner.y));
        return most;
    }

private:
    double toArms(Point p) const {
        double least = std::numeric_limits<double>::infinity();
        for (const auto& [from, to] : m_arms) least = std::min(least, distanceToSegment(p, from, to));
        return least;
    }
    double toOutline(Point p) const {
        double least = std::numeric_limits<double>::infinity();
        bool inside = false;
        for (std::size_t i = 0; i < m_outline.size(); ++i) {
            const Point a = m_outline[i], b = m_outline[(i + 1) % m_outline.size()];
            least = std::min(least, distanceToSegment(p, a, b));
            if ((a.y > p.y) != (b.y > p.y) && p.x < a.x + (p.y - a.y) / (b.y - a.y) * (b.x - a.x)) inside = !inside;
        }
        return inside ? -least : least;
    }

    double m_radius;
    std::vector<Point> m_outline;
    std::vector<std::array<Point, 2>> m_arms;
};

} // namespace

MarkerBitmap rasteriseMarker(Marker marker, double radius, double strokeWidth) {
    const Shape shape(marker, radius);
    MarkerBitmap bitmap;
    bitmap.size = 2 * static_cast<int>(std::ceil(shape.reach() + strokeWidth / 2 + 1.5));
    bitmap.coverage.reserve(static_cast<std::size_t>(bitmap.size) * static_cast<std::size_t>(bitmap.size));
    for (int row = 0; row < bitmap.size; ++row)
        for (int column = 0; column < bitmap.size; ++column) {
            const double distance = shape.distance({column + 0.5 - bitmap.size / 2.0, row + 0.5 - bitmap.size / 2.0});
            const double depth = strokeWidth > 0 ? strokeWidth / 2 - std::abs(distance) : -distance;
            // A line thinner than a pixel nowhere covers a whole pixel.
            const double most = strokeWidth > 0 ? std::min(1.0, strokeWidth) : 1.0;
            bitmap.coverage.push_back(static_cast<std::uint8_t>(std::lround(255 * std::clamp(depth + 0.5, 0.0, most))));
        }
    return bitmap;
}

} // namespace kvscope
