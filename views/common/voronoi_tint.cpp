// Voronoi cells in small squares. Sites are sorted along x and searched outwards from the square until their distance
// in x alone exceeds the best found: the search reads a few dozen of a thousand sites.
#include "views/common/voronoi_tint.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kvscope {

namespace {

constexpr double kSquare = 2;

class SortedSites {
public:
    explicit SortedSites(const std::vector<TintSite>& sites) : m_sites(sites), m_order(sites.size()) {
        std::iota(m_order.begin(), m_order.end(), std::size_t{0});
        std::ranges::sort(m_order, [&](std::size_t a, std::size_t b) { return sites[a].at.x < sites[b].at.x; });
    }

    std::size_t nearest(Point p) const {
        const auto middle =
            std::ranges::lower_bound(m_order, p.x, [&](std::size_t site, double x) { return m_sites[site].at.x < x; });
        Best best;
        for (auto right = middle; right != m_order.end() && look(*right, p, best); ++right) {
        }
        for (auto left = middle; left != m_order.begin() && look(*std::prev(left), p, best); --left) {
        }
        return best.site;
    }

private:
    struct Best {
        std::size_t site = 0;
        double squared = std::numeric_limits<double>::infinity();
    };

    /// False: this site and all beyond it in its direction are farther than the best.
    bool look(std::size_t site, Point p, Best& best) const {
        const double dx = m_sites[site].at.x - p.x, dy = m_sites[site].at.y - p.y;
        if (dx * dx > best.squared) return false;
        const double squared = dx * dx + dy * dy;
        if (squared < best.squared || (squared == best.squared && site < best.site)) best = {site, squared};
        return true;
    }

    const std::vector<TintSite>& m_sites;
    std::vector<std::size_t> m_order;
};

} // namespace

std::vector<std::size_t> nearestSites(const std::vector<TintSite>& sites, const std::vector<Point>& points) {
    const SortedSites sorted(sites);
    std::vector<std::size_t> nearest(points.size());
    std::ranges::transform(points, nearest.begin(), [&](Point point) { return sorted.nearest(point); });
    return nearest;
}

ImageItem voronoiTint(const PlotFrame& frame, const std::vector<TintSite>& sites) {
    ImageItem image;
    const Box& plot = frame.plot;
    if (sites.empty() || plot.width <= 0 || plot.height <= 0) return image;
    image.width = static_cast<int>(std::ceil(plot.width / kSquare));
    image.height = static_cast<int>(std::ceil(plot.height / kSquare));
    image.box = {plot.x, plot.y, kSquare * image.width, kSquare * image.height};
    const SortedSites sorted(sites);
    const double xUnit = (frame.x.high - frame.x.low) / plot.width, yUnit = (frame.y.high - frame.y.low) / plot.height;
    auto rgba = std::make_shared<std::vector<std::uint8_t>>();
    rgba->reserve(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 4);
    for (int row = 0; row < image.height; ++row)
        for (int column = 0; column < image.width; ++column) {
            const Point at{frame.x.low + kSquare * (column + 0.5) * xUnit,
                           frame.y.high - kSquare * (row + 0.5) * yUnit};
            const Colour colour = sites[sorted.nearest(at)].colour;
            rgba->insert(rgba->end(), {colour.r, colour.g, colour.b, colour.a});
        }
    image.rgba = std::move(rgba);
    return image;
}

} // namespace kvscope
