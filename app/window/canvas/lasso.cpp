// Point in polygon by counting the edges to the right of a point. Every pointer move may test a hundred thousand
// points, so edges are grouped by pixel row.
#include "app/window/canvas/lasso.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

void Lasso::add(Point at) {
    constexpr double kNearest = 2;
    if (m_path.empty() || std::hypot(at.x - m_path.back().x, at.y - m_path.back().y) >= kNearest) m_path.push_back(at);
}

Lasso::Inside::Inside(const std::vector<Point>& path) {
    if (path.size() < 3) return;
    const auto [low, high] = std::ranges::minmax_element(path, {}, &Point::y);
    m_top = std::floor(low->y);
    m_rows.resize(static_cast<std::size_t>(std::floor(high->y) - m_top) + 1);
    for (std::size_t i = 0; i < path.size(); ++i) {
        const Edge edge{path[i], path[(i + 1) % path.size()]};
        const auto first = static_cast<std::size_t>(std::floor(std::min(edge.from.y, edge.to.y)) - m_top);
        const auto last = static_cast<std::size_t>(std::floor(std::max(edge.from.y, edge.to.y)) - m_top);
        for (std::size_t row = first; row <= last; ++row) m_rows[static_cast<std::size_t>(row)].push_back(edge);
    }
}

bool Lasso::Inside::contains(Point at) const {
    const double row = std::floor(at.y) - m_top;
    if (!(row >= 0 && row < static_cast<double>(m_rows.size()))) return false;
    bool inside = false;
    for (const Edge& edge : m_rows[static_cast<std::size_t>(row)]) {
        if ((edge.from.y > at.y) == (edge.to.y > at.y)) // half-open test, so that a corner counts once
            continue;
        const double crossing =
            edge.from.x + (at.y - edge.from.y) / (edge.to.y - edge.from.y) * (edge.to.x - edge.from.x);
        inside ^= at.x < crossing;
    }
    return inside;
}

} // namespace kvscope
