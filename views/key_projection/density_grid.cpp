// Counting in cells, and counts as opacity. Row 0 is the top one, as in pictures.
#include "views/key_projection/density_grid.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

DensityGrid::DensityGrid(const Viewport::Range& range, std::size_t categories)
    : m_range(range), m_side(std::max(range.xMax - range.xMin, range.yMax - range.yMin) / kCells),
      m_columns(static_cast<std::size_t>(std::max(1.0, std::ceil((range.xMax - range.xMin) / m_side)))),
      m_rows(static_cast<std::size_t>(std::max(1.0, std::ceil((range.yMax - range.yMin) / m_side)))),
      m_categories(categories), m_counts(m_columns * m_rows, 0), m_valued(m_counts), m_shades(m_counts.size(), 0),
      m_byCategory(m_counts.size() * categories, 0) {}

Viewport::Range DensityGrid::covered() const {
    return {m_range.xMin, m_range.xMin + m_side * static_cast<double>(m_columns),
            m_range.yMax - m_side * static_cast<double>(m_rows), m_range.yMax};
}

void DensityGrid::add(Point at, float shade, std::size_t category) {
    if (!(at.x >= m_range.xMin && at.x <= m_range.xMax && at.y >= m_range.yMin && at.y <= m_range.yMax)) return;
    const auto column = std::min(m_columns - 1, static_cast<std::size_t>((at.x - m_range.xMin) / m_side));
    const auto row = std::min(m_rows - 1, static_cast<std::size_t>((m_range.yMax - at.y) / m_side));
    const std::size_t index = row * m_columns + column;
    m_most = std::max(m_most, ++m_counts[index]);
    if (m_categories > 0) ++m_byCategory[index * m_categories + category];
    if (std::isnan(shade)) return;
    ++m_valued[index];
    m_shades[index] += static_cast<double>(shade);
}

DensityGrid::Cell DensityGrid::cell(std::size_t index) const {
    Cell cell;
    cell.count = m_counts[index];
    cell.shade = m_valued[index] > 0 ? static_cast<float>(m_shades[index] / static_cast<double>(m_valued[index])) : NAN;
    const auto first = m_byCategory.begin() + static_cast<std::ptrdiff_t>(index * m_categories);
    cell.category =
        static_cast<std::size_t>(std::max_element(first, first + static_cast<std::ptrdiff_t>(m_categories)) - first);
    return cell;
}

ImageItem DensityGrid::painted(const Box& box, const std::vector<Colour>& colours) const {
    const double fullest = std::log1p(static_cast<double>(m_most));
    auto rgba = std::make_shared<std::vector<std::uint8_t>>();
    rgba->reserve(colours.size() * 4);
    for (std::size_t i = 0; i < colours.size(); ++i) {
        const double strength =
            m_counts[i] > 0 ? 0.2 + 0.75 * std::log1p(static_cast<double>(m_counts[i])) / fullest : 0;
        const Colour colour = withAlpha(colours[i], strength);
        rgba->insert(rgba->end(), {colour.r, colour.g, colour.b, colour.a});
    }
    ImageItem image;
    image.box = box;
    image.width = static_cast<int>(m_columns);
    image.height = static_cast<int>(m_rows);
    image.rgba = std::move(rgba);
    return image;
}

} // namespace kvscope
