#pragma once

#include "app/window/canvas/lasso.h"
#include "views/scene/scene.h"
#include "views/view.h"

#include <vector>

namespace kvscope {

// Pan and zoom as arithmetic between the plot's pixels and its data ranges, without a widget.

/// The ranges of a scene's plot; not `valid` without a plot or ranges.
struct ShownPlot {
    Box plot;
    Viewport::Range range{0, 0, 0, 0};
    bool yDown = false;
    bool valid = false;
    static ShownPlot of(const Scene& scene);
};

enum class ZoomAxes { Both, X, Y };

/// Zooms around the data under `at`; factor > 1 shows less. An axis that would get too narrow for doubles, or too
/// wide, stays as it is.
Viewport::Range zoomAt(const ShownPlot& shown, Point at, double factor, ZoomAxes axes);
/// Pans the data by (dx, dy) pixels.
Viewport::Range panBy(const ShownPlot& shown, double dx, double dy);
/// The data range inside a pixel box, dragged in any direction; limited as `zoomAt` is.
Viewport::Range zoomToBox(const ShownPlot& shown, Point a, Point b);

/// Tokens whose marks (points, rectangles, circles) have their centre in the pixel box; ascending, each once.
std::vector<TokenIndex> tokensInBox(const Scene& scene, Point a, Point b);
/// Tokens whose marks lie inside a lasso.
std::vector<TokenIndex> tokensInLasso(const Scene& scene, const Lasso& lasso);
/// The range that shows the marks of these tokens with a margin. In a scene over positions (yDown) only the positions
/// change, the rows stay. Nothing for a scene without a plot, or for another scene without any of the tokens.
std::optional<Viewport::Range> rangeAround(const Scene& scene, const std::vector<TokenIndex>& tokens);
/// The token under a point of a text, or the nearest one in reading order; nothing where the scene shows none.
std::optional<TokenIndex> readTokenAt(const Scene& scene, Point at);
/// Where a token's mark is; nothing when the scene does not show it.
std::optional<Point> positionOfToken(const Scene& scene, TokenIndex token);

} // namespace kvscope
