#pragma once

#include "views/scene/scene.h"
#include "views/view.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// Points counted in square cells of a range of the plane, to be shown as shades. Cells belong to the range, not to the
/// pixels: every pane and every size of a figure shows the same counts.
class DensityGrid {
public:
    static constexpr int kCells = 200; ///< along the longer side of the range

    /// `categories`: how many groups are counted apart; 0: none.
    DensityGrid(const Viewport::Range& range, std::size_t categories);

    /// One point in data coordinates; outside the range it counts nowhere. `shade` may be NaN, `category` < categories.
    void add(Point at, float shade, std::size_t category);

    struct Cell {
        std::int64_t count = 0;
        float shade = 0;          ///< mean over the points that have one; NaN: none has
        std::size_t category = 0; ///< the commonest, the first of equals
    };
    std::int64_t most() const { return m_most; } ///< points in the fullest cell

    /// The range as a picture in `box`. Opacity grows with the logarithm of the count, so that one point is still seen
    /// beside a hundred; `colourOf` gives each cell that has points its colour.
    template <class ColourOf> ImageItem image(const Box& box, const ColourOf& colourOf) const {
        std::vector<Colour> colours(m_counts.size(), kTransparent);
        for (std::size_t i = 0; i < colours.size(); ++i)
            if (m_counts[i] > 0) colours[i] = colourOf(cell(i));
        return painted(box, colours);
    }
    /// What the cells cover: the range, and beyond it what the last column and row need to be whole.
    Viewport::Range covered() const;

private:
    Cell cell(std::size_t index) const;
    ImageItem painted(const Box& box, const std::vector<Colour>& colours) const;

    Viewport::Range m_range;
    double m_side;
    std::size_t m_columns, m_rows, m_categories;
    std::vector<std::int64_t> m_counts, m_valued;
    std::vector<double> m_shades;
    std::vector<std::int64_t> m_byCategory; ///< [cells, categories]
    std::int64_t m_most = 0;
};

} // namespace kvscope
