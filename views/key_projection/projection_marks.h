#pragma once

#include "views/common/colour_scale.h"
#include "views/common/view_facts.h"
#include "views/common/voronoi_tint.h"
#include "views/key_projection/density_grid.h"
#include "views/key_projection/projection_data.h"
#include "views/scene/axes.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// How the tokens of a range are drawn: as a density, or with marks, of the evicted ones every `stride`-th.
struct Crowd {
    std::int64_t evicted = 0, kept = 0; ///< in the range; kept without protected ones, which always have marks
    std::int64_t stride = 1;
    std::shared_ptr<const DensityGrid> density; ///< null: marks. Coloured by state its shades are the shares kept
    bool keptToo = false;                       ///< the density counts kept tokens as well
};

/// What of the projection is drawn, in data coordinates.
struct ProjectionMarks {
    int xAxis = 0, yAxis = 1; ///< components, 0-based
    bool retainedOnly = false, showQueries = false, showAfterCut = false;
    bool tinted = false;            ///< the plane by its nearest centre
    std::vector<TokenState> states; ///< [n]
    std::string colourBy = "state";
    std::vector<float> shade; ///< [n] 0..1 on the colour map, NaN without a value; empty: coloured by state
    std::shared_ptr<const ValueScale> scale; ///< behind the shades; null where they count panes
    std::vector<Tick> shadeTicks;            ///< of the scale, value 0..1, where there is no other
    std::vector<std::int32_t>
        category; ///< [n] place of the token's colour among categoryColour; empty: not coloured by cluster
    std::vector<std::int32_t> categoryOfCentre; ///< the same for each greedy centre
    Crowd crowd;                                ///< of the range shown
    std::int64_t evictedTotal = 0, keptTotal = 0, protectedTotal = 0;
};

constexpr std::int64_t kMostMarks = 20'000; ///< more of them are a crowd, in a small picture fewer

ProjectionMarks makeMarks(const ViewInput& input, const PaneData& pane, const ParameterValues& options);

/// Adds the shades for `colourBy`: position, score, norm or number of keeping panes; clusters are categories.
void addShades(const ViewInput& input, const PaneData& pane, const ValueRange& chosen, ProjectionMarks& marks);
/// The check of the view's range option.
void checkShadeRange(std::string_view text);
/// "position", "score −cos(μ, k)" ...: meaning of the shades.
std::string shadeTitle(const PaneData& pane, const ProjectionMarks& marks);

/// Range of all keys (and queries, where shown) with a margin: the same for every pane.
Viewport::Range fullRange(const ViewInput& input, const ProjectionMarks& marks);

/// The input's projection, which is there.
const ProjectionData& projectionOf(const ViewInput& input);

/// Data coordinates of a token's key.
Point keyPoint(const ProjectionData& projection, const ProjectionMarks& marks, TokenIndex token);

/// The greedy centres on the axes, in their colours at full strength.
std::vector<TintSite> centreSites(const ProjectionData& projection, const ProjectionMarks& marks, ThemeId theme);

/// How far the tint may be believed: the plane's nearest centre is not always the head's.
std::string tintNote(const ProjectionData& projection, const ProjectionMarks& marks);

/// The anchor on the axes and whether it was scaled to the length of the mean key; nothing without one.
struct AnchorMark {
    Point at;
    bool scaled = false;
};
std::optional<AnchorMark> anchorMark(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks);

/// All marks, evicted first and kept last, then selection, anchor and hover. Clipped to the plot.
void drawMarks(SceneBuilder& builder, const PlotFrame& frame, const ViewInput& input, const PaneData& pane,
               const ProjectionMarks& marks, const Theme& theme);

std::vector<LegendEntry> legendOf(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks,
                                  const Theme& theme);
/// For all panes together, coloured by state: without the counts, in which they differ, and with every mark that one of
/// them has.
std::vector<LegendEntry> sharedLegend(const ViewInput& input, const ProjectionMarks& marks, const Theme& theme);

/// How the tokens of this range are drawn in a picture of this size; `choice` is the view's option "crowd".
Crowd crowdIn(const ProjectionMarks& marks, const ProjectionData& projection, const Viewport& viewport,
              const Viewport::Range& range, const std::string& choice);

/// Note about the density; empty where every token has a mark.
std::string crowdNote(const ProjectionMarks& marks);

} // namespace kvscope
