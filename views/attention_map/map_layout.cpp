// Where about as many keys as queries are shown, the map and its cells are square, so that the diagonal runs to the
// corner. Otherwise, and in low docks, the map takes the room there is, up to a few times wider than high. Parts are
// dropped in this order: axis titles, the caption's own row, the curve of column sums, half of the rails, the colour
// column.
#include "views/attention_map/map_layout.h"

#include "views/scene/colour_column.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

namespace {

constexpr double kSideWidth = kRailHeight + 6, kColumnWidth = kLabelledColumnWidth + 6;
constexpr double kLeastWidthWithColumn = 120, kLeastColumn = 30; // of the plot; a column with two labels
constexpr double kLeastHeightWithMarginal = 70, kLeastMarginal = 16, kMarginal = 26, kMostMarginal = 110;
constexpr double kLeastHeightWithLetters = 140; // of the whole picture: lower ones have thin rails
constexpr double kSquareUpTo = 4.0 / 3;         // largest ratio of the sides that an export makes square
constexpr double kLeastSquare = 160;            // smaller ones would waste a low dock
constexpr double kRoomForInset = 210;           // stays free at the right of a map that moves to the middle
constexpr double kAsMany = 2;                   // a part is square if keys and queries differ by less than this factor

/// In a dock that is wide and low a caption costs less at the right than above.
double captionWidthBeside(const Viewport& viewport) {
    return viewport.height < 170 && viewport.width >= 520 ? std::clamp(0.2 * viewport.width, 130.0, 190.0) : 0;
}

void setAxes(MapLayout& layout, const ViewInput& input, const AttentionMapData& data, const Viewport& viewport) {
    const auto n = static_cast<double>(input.capture->info().numTokens);
    const Viewport::Range range =
        viewport.range.value_or(Viewport::Range{0, n, static_cast<double>(data.firstQuery), n});
    layout.frame.x = {range.xMin, range.xMax, AxisScale::Position, "Key position (0-based)"};
    layout.frame.y = {range.yMax, range.yMin, AxisScale::Position,
                      data.rowsAreKeys ? "Key position (0-based)" : "Query position (0-based)"};
    layout.axes.titles = viewport.height >= 240 && viewport.width >= 260;
    layout.axes.forPaper = viewport.theme == ThemeId::Paper;
}

/// A plot box that ends at device pixels, so that a pixel of the image is one of the screen.
Box plotIn(const Box& room, const Viewport& viewport, bool asManyQueries) {
    const double scale = viewport.pixelScale;
    Box plot{std::ceil(room.x * scale) / scale, std::ceil(room.y * scale) / scale, 0, 0};
    const auto whole = [&](double length) { return std::max(1.0, std::floor(length * scale) / scale); };
    plot.width = whole(room.right() - plot.x);
    plot.height = whole(room.bottom() - plot.y);
    if (const double side = std::min(plot.width, plot.height); asManyQueries && side >= kLeastSquare) {
        plot.width = plot.height = side;
        return plot;
    }
    plot.width = std::min(plot.width, whole(kWidestMap * plot.height));
    // The height does not depend on the plot's own width, which the column's labels change: otherwise the plot would
    // move while a handle is dragged.
    plot.height = std::min(plot.height, whole(std::max(60.0, kHighestMap * (viewport.width - kBesidePlot))));
    if (viewport.forExport && std::max(plot.width, plot.height) <= kSquareUpTo * std::min(plot.width, plot.height))
        plot.width = plot.height = std::min(plot.width, plot.height);
    return plot;
}

/// How far a map that leaves room at its right moves towards the middle. It stays where it is when a cell is locked or
/// a part is shown: the room for the magnified cells and the small map is always kept.
double shiftToMiddle(double leftOver, const Viewport& viewport) {
    const double shift = std::clamp(leftOver - kRoomForInset, 0.0, std::max(0.0, leftOver / 2));
    return std::floor(shift * viewport.pixelScale) / viewport.pixelScale;
}

} // namespace

MapLayout layoutOfMap(const ViewInput& input, const AttentionMapData& data, const Viewport& viewport,
                      const MapMargins& margins) {
    MapLayout layout;
    setAxes(layout, input, data, viewport);
    const double beside = captionWidthBeside(viewport);
    layout.captionBeside = beside > 0;
    if (viewport.height < kLeastHeightWithLetters)
        layout.railHeight = 4, layout.railGap = 1, layout.railLetters = false;
    const double captionRow = layout.captionBeside ? 0 : 22 + kCaptionPitch * (margins.captionRows - 1);
    const double rails = static_cast<double>(input.panes.size()) * (layout.railHeight + layout.railGap);
    const double right = kSideWidth + margins.right + (layout.captionBeside ? beside + 8 : 0);
    const auto roomWith = [&](double marginal, double column) {
        const double top = captionRow + marginal + rails + 4;
        // The last tick label of the keys hangs over the rail at the side.
        const Box area{8, top, viewport.width - 2 - right - column,
                       viewport.height - top - (viewport.forExport ? 22 : 2)};
        return plotBoxFor(area, layout.frame.y, layout.axes, *viewport.text);
    };
    double marginal = 0;
    if (!data.columnSums.empty())
        marginal = layout.axes.titles                                               ? kMarginal
                   : roomWith(kLeastMarginal, 0).height >= kLeastHeightWithMarginal ? kLeastMarginal
                                                                                    : 0;
    const Box whole = roomWith(marginal, 0);
    const bool column = whole.width - kColumnWidth >= kLeastWidthWithColumn && whole.height >= kLeastColumn;
    const double keys = layout.frame.x.high - layout.frame.x.low, queries = layout.frame.y.low - layout.frame.y.high;
    const bool asManyQueries = data.firstQuery == 0 && std::max(keys, queries) < kAsMany * std::min(keys, queries);
    const auto plotWith = [&](double curve) {
        const Box room = roomWith(curve, column ? kColumnWidth : 0), fitted = plotIn(room, viewport, asManyQueries);
        return std::pair(fitted, room.height - fitted.height);
    };
    // A narrow dock leaves room below the map, of which the curve takes half.
    if (marginal > 0) marginal += std::clamp(plotWith(marginal).second / 2, 0.0, kMostMarginal - marginal);
    Box plot = plotWith(marginal).first;
    const double besidePlot = kSideWidth + (column ? kColumnWidth : 0);
    if (!layout.captionBeside)
        plot.x += shiftToMiddle(viewport.width - 8 - margins.right - plot.right() - besidePlot, viewport);
    layout.frame.plot = plot;
    layout.rails = {plot.x, plot.y - rails - 5, plot.width, rails};
    layout.marginal = {plot.x, layout.rails.y - marginal, plot.width, std::max(0.0, marginal - 4)};
    layout.sideRail = {plot.right() + 4, plot.y, kRailHeight, plot.height};
    if (column) layout.column = {layout.sideRail.right() + 6, plot.y, kLabelledColumnWidth, plot.height};
    const double behind = std::max(layout.column.right(), layout.sideRail.right()) + 8;
    layout.caption = layout.captionBeside ? Box{behind, 4, beside, viewport.height - 8}
                                          : Box{8, 4, viewport.width - 16, kCaptionPitch * margins.captionRows};
    return layout;
}

MapImage mapImageOf(const MapLayout& layout, const AttentionMapData& data, double pixelScale) {
    const Point from = layout.frame.toPixels(data.keyBegin, data.rowBegin);
    const Point to = layout.frame.toPixels(data.keyEnd, data.rowEnd);
    MapImage image{{from.x, from.y, to.x - from.x, to.y - from.y}};
    // Image pixels that equal screen pixels must be aligned with them, or some would not be visible.
    const auto fit = [&](double& begin, double& length, std::int64_t cells) {
        const std::int64_t pixels = std::max<std::int64_t>(1, std::llround(length * pixelScale));
        if (pixels > cells) return cells;
        begin = std::round(begin * pixelScale) / pixelScale;
        length = static_cast<double>(pixels) / pixelScale;
        return pixels;
    };
    image.rows = fit(image.box.y, image.box.height, data.cells.shape[0]);
    image.columns = fit(image.box.x, image.box.width, data.cells.shape[1]);
    return image;
}

} // namespace kvscope
