#pragma once

#include "views/common/colour_scale.h"
#include "views/common/view_facts.h"
#include "views/common/voronoi_tint.h"
#include "views/key_projection/projection_data.h"
#include "views/scene/axes.h"
#include "views/scene/scene.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// Points counted in square cells of a range of the plane, to be shown as shades. Cells belong to the range, not to the
/// pixels: every pane and every size of a figure shows the same counts.
class DensityGrid {
public:
    static constexpr int kCells = 200; ///< along the longer side of the range

    /// `categories`: how many groups are counted apart; 0: none.
    DensityGrid(const Viewport::Range& range, std::size_t categories);

    /// The cell of a point in data coordinates; cells() outside the range.
    std::size_t cellOf(Point at) const {
        if (!(at.x >= m_range.xMin && at.x <= m_range.xMax && at.y >= m_range.yMin && at.y <= m_range.yMax))
            return cells();
        const auto column = std::min(m_columns - 1, static_cast<std::size_t>((at.x - m_range.xMin) / m_side));
        const auto row = std::min(m_rows - 1, static_cast<std::size_t>((m_range.yMax - at.y) / m_side));
        return row * m_columns + column;
    }
    std::size_t cells() const { return m_tallies.size(); }

    /// One point in a cell. `shade` may be NaN, `category` < categories.
    void add(std::size_t index, float shade, std::size_t category) {
        Tally& tally = m_tallies[index];
        m_most = std::max<std::int64_t>(m_most, ++tally.count);
        if (m_categories > 0) ++m_byCategory[index * m_categories + category];
        if (std::isnan(shade)) return;
        ++tally.valued;
        tally.shades += static_cast<double>(shade);
    }
    /// Fills an empty cell with `points` points, of which `shaded` have shade 1 and the others 0.
    void set(std::size_t index, std::int32_t points, std::int32_t shaded) {
        m_tallies[index] = {points, points, static_cast<double>(shaded)};
        m_most = std::max<std::int64_t>(m_most, points);
    }

    struct Cell {
        std::int64_t count = 0;
        float shade = 0;          ///< mean over the points that have one; NaN: none has
        std::size_t category = 0; ///< the commonest, the first of equals
    };
    std::int64_t most() const { return m_most; } ///< points in the fullest cell

    /// The range as a picture in `box`. Opacity grows with the logarithm of the count, so that one point is still seen
    /// beside a hundred; `colourOf` gives each cell that has points its colour.
    template <class ColourOf> ImageItem image(const Box& box, const ColourOf& colourOf) const {
        std::vector<Colour> colours(m_tallies.size(), kTransparent);
        for (std::size_t i = 0; i < colours.size(); ++i)
            if (m_tallies[i].count > 0) colours[i] = colourOf(cell(i));
        return painted(box, colours);
    }
    ImageItem image(const Box& box, Colour ofAll) const { return painted(box, std::vector<Colour>(cells(), ofAll)); }
    /// What the cells cover: the range, and beyond it what the last column and row need to be whole.
    Viewport::Range covered() const;

private:
    Cell cell(std::size_t index) const;
    ImageItem painted(const Box& box, const std::vector<Colour>& colours) const;

    Viewport::Range m_range;
    double m_side;
    std::size_t m_columns, m_rows, m_categories;
    struct Tally {
        std::int32_t count = 0, valued = 0; ///< points, and those with a shade
        double shades = 0;                  ///< sum of the shades
    };
    std::vector<Tally> m_tallies;           ///< of the cells, row by row
    std::vector<std::int64_t> m_byCategory; ///< [cells, categories]
    std::int64_t m_most = 0;
};

/// How the tokens of a range are drawn: as a density, or with marks, which every `stride`-th evicted token has.
struct Crowd {
    std::int64_t evicted = 0, kept = 0; ///< in the range; kept without protected ones, which always have marks
    std::int64_t beyond = 0;            ///< tokens before the cut that lie outside the range
    std::int64_t stride = 1;
    std::shared_ptr<const DensityGrid> density; ///< null: marks. When coloured by state, shades are kept shares
    bool keptToo = false;                       ///< the density counts kept tokens as well
};

/// What of the projection is drawn, in data coordinates.
struct ProjectionMarks {
    int xAxis = 0, yAxis = 1; ///< components, 0-based
    bool retainedOnly = false, showQueries = false, showAfterCut = false;
    bool tinted = false;            ///< the plane is tinted by its nearest centre
    std::vector<TokenState> states; ///< [n]
    std::string colourBy = "state";
    std::vector<float> shade; ///< [n] 0..1 on the colour map, NaN without a value; empty: coloured by state
    std::shared_ptr<const ValueScale> scale; ///< scale of the shades; null where they count panes
    std::vector<Tick> shadeTicks;            ///< of the shades, 0..1, where there is no `scale`
    std::vector<std::int32_t>
        category; ///< [n] place of the token's colour among categoryColour; empty: not coloured by cluster
    std::vector<std::int32_t> categoryOfCentre; ///< the same for each greedy centre
    Viewport::Range range;                      ///< that is shown
    Crowd crowd;                                ///< of the range
    std::int64_t evictedTotal = 0, keptTotal = 0, protectedTotal = 0;
};

constexpr std::int64_t kMostMarks = 20'000; ///< more marks are a crowd; fewer in a small picture

ProjectionMarks makeMarks(const ViewInput& input, const PaneData& pane, const ParameterValues& options);

/// Adds the shades for `colourBy`: position, score, norm or number of keeping panes; clusters are categories.
void addShades(const ViewInput& input, const PaneData& pane, const ValueRange& chosen, ProjectionMarks& marks);
/// The check of the view's range option.
void checkShadeRange(std::string_view text);
/// "position", "score −cos(μ, k)" ...: meaning of the shades.
std::string shadeTitle(const PaneData& pane, const ProjectionMarks& marks);

/// Range of all keys (and queries, where shown) with a margin: the same for every pane.
Viewport::Range fullRange(const ViewInput& input, const ProjectionMarks& marks);

/// The input's projection; the input must have one.
const ProjectionData& projectionOf(const ViewInput& input);

/// Data coordinates of a token's key.
inline Point keyPoint(const ProjectionData& projection, const ProjectionMarks& marks, TokenIndex token) {
    const float* row = projection.keys.data.data() + token * projection.keys.shape[1];
    return {row[marks.xAxis], row[marks.yAxis]};
}

/// The greedy centres on the axes, in their colours at full strength.
std::vector<TintSite> centreSites(const ProjectionData& projection, const ProjectionMarks& marks, ThemeId theme);

/// How far the tint can be trusted: the nearest centre in the plane is not always the nearest in the head.
std::string tintNote(const ProjectionData& projection, const ProjectionMarks& marks);

/// The anchor on the axes and whether it was scaled to the length of the mean key; nothing without one.
struct AnchorMark {
    Point at;
    bool scaled = false;
};
std::optional<AnchorMark> anchorMark(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks);

/// Draws all marks, evicted first and kept last, then selection, anchor and hover. Clipped to the plot.
void drawMarks(SceneBuilder& builder, const PlotFrame& frame, const ViewInput& input, const PaneData& pane,
               const ProjectionMarks& marks, const Theme& theme);

std::vector<LegendEntry> legendOf(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks,
                                  const Theme& theme);
/// The legend for all panes together, coloured by state: without counts, which differ, and with every mark that at
/// least one pane has.
std::vector<LegendEntry> sharedLegend(const ViewInput& input, const ProjectionMarks& marks, const Theme& theme);

/// How the tokens of the range are drawn in a picture of this size; `choice` is the view's option "crowd".
Crowd crowdIn(const ProjectionMarks& marks, const ProjectionData& projection, const Viewport& viewport,
              const std::string& choice);

/// Note about the density; empty where every token has a mark.
std::string crowdNote(const ProjectionMarks& marks);

} // namespace kvscope
