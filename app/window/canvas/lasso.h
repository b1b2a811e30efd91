#pragma once

#include "views/scene/scene.h"

#include <vector>

namespace kvscope {

/// The area inside a free-hand line, closed by a straight line. Where the line crosses itself the even-odd rule holds.
class Lasso {
public:
    /// Adds a point of the pointer's path; points nearer than two pixels to the last one are skipped.
    void add(Point at);
    void clear() { m_path.clear(); }
    const std::vector<Point>& path() const { return m_path; }

    /// Tests many points: each test looks only at the edges that cross its pixel row.
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
