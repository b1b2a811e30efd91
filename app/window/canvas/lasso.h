#pragma once

#include "views/scene/scene.h"

#include <vector>

namespace kvscope {

/// The area inside a line drawn by hand, closed by its shortest way. Where the line crosses itself a point is inside
/// when an odd number of its turns surrounds it.
class Lasso {
public:
    /// The next point of the pointer's way; one nearer than two pixels to the last is left out.
    void add(Point at);
    void clear() { m_path.clear(); }
    const std::vector<Point>& path() const { return m_path; }

    /// Whether points are inside, asked for many at once: each looks only at the edges that cross its row of pixels.
    class Inside {
    public:
        explicit Inside(const std::vector<Point>& path);
        bool contains(Point at) const;

    private:
        struct Edge {
            Point from, to;
        };
        double m_top = 0;
        std::vector<std::vector<Edge>> m_rows; ///< by pixel row, from m_top on
    };

private:
    std::vector<Point> m_path;
};

} // namespace kvscope
