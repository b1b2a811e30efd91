#pragma once

#include "app/window/canvas/lasso.h"
#include "views/scene/scene.h"
#include "views/view.h"

#include <vector>

namespace kvscope {

// Pan and zoom as arithmetic between the plot's pixels and its data ranges, without a widget.

/// The ranges that a scene shows; empty plot or ranges: not `valid`.
struct ShownPlot {
    Box plot;
    Viewport::Range range{0, 0, 0, 0};
    bool yDown = false;
    bool valid = false;
    static ShownPlot of(const Scene& scene);
};

enum class ZoomAxes { Both, X, Y };

/// Zooms so that the data under `at` stays there; factor > 1 shows less.
Viewport::Range zoomAt(const ShownPlot& shown, Point at, double factor, ZoomAxes axes);
/// Moves the data with a pointer that moved by (dx, dy) pixels.
Viewport::Range panBy(const ShownPlot& shown, double dx, double dy);
/// The data inside a pixel box, which may have been dragged in any direction.
Viewport::Range zoomToBox(const ShownPlot& shown, Point a, Point b);

/// Tokens whose marks (points, rectangles, texts, circles) lie in the pixel box; ascending, each once.
std::vector<TokenIndex> tokensInBox(const Scene& scene, Point a, Point b);
/// Those whose marks lie inside a line drawn around them.
std::vector<TokenIndex> tokensInLasso(const Scene& scene, const Lasso& lasso);
/// The range that shows the marks of these tokens with a margin. In a scene that runs over positions (yDown) it is
/// those positions across, and the rows stay. Nothing for a scene without plot or without any of the tokens.
std::optional<Viewport::Range> rangeAround(const Scene& scene, const std::vector<TokenIndex>& tokens);
/// The token whose box lies under the point, whatever is drawn above it; of boxes that overlap the last.
std::optional<TokenIndex> tokenBoxAt(const Scene& scene, Point at);
/// Where a token's mark is; nothing when the scene does not show it.
std::optional<Point> positionOfToken(const Scene& scene, TokenIndex token);

} // namespace kvscope
