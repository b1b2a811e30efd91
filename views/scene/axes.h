#pragma once

#include "views/scene/scene_builder.h"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// "1,024", "−0.545", "3.1e−6": commas between thousands, typographic minus.
std::string formatCount(std::int64_t value);
std::string formatFixed(double value, int decimals);
/// With the given decimals, or with more, up to four, where the text would else be that of 0 or of `whole`: 99.98 of
/// 100 is not all, 0.04 is not nothing. A number nearer than four decimals is taken for a rounded sum.
std::string formatWithin(double value, double whole, int decimals);
std::string formatPercent(double share);                               ///< "25.0 %", "99.98 %", "0.04 %"
std::string formatBytes(double bytes);                                 ///< "128.0 MiB"
std::string formatCounted(std::int64_t count, std::string_view thing); ///< "1 token", "1,024 queries"
/// The one spelling of budgets and of what is kept: "249 tokens (25.0 %)".
std::string formatBudget(std::int64_t tokens, std::int64_t of);
std::string formatShort(double value); ///< up to three significant digits, exponents below 1e−4 and from 1e6 on

struct Tick {
    double value = 0;
    std::string label;
};

/// Up to `most` ticks of step 1, 2 or 5 times a power of ten, inside [low, high]; none in a range so narrow that
/// doubles hardly tell its ends apart.
std::vector<Tick> linearTicks(double low, double high, int most = 7);
/// Decades, 1-3 or 1-2-5 of each decade, as room allows; linear ticks over a narrow range; low > 0.
std::vector<Tick> logarithmicTicks(double low, double high, int most = 7);
/// Token positions: multiples of a power of two (512, 1,024 ...).
std::vector<Tick> positionTicks(std::int64_t low, std::int64_t high, int most = 9);

enum class AxisScale { Linear, Logarithmic, Position };

struct AxisSpec {
    double low = 0, high = 1; ///< at the left or bottom, at the right or top; low > high runs the other way
    AxisScale scale = AxisScale::Linear;
    std::string title;

    /// Where the value lies from low (0) to high (1).
    double fractionOf(double value) const {
        if (scale == AxisScale::Logarithmic)
            return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
        return (value - low) / (high - low);
    }
};

/// Maps data to pixels inside a plot box.
struct PlotFrame {
    Box plot;
    AxisSpec x, y;

    Point toPixels(double xValue, double yValue) const {
        return {plot.x + x.fractionOf(xValue) * plot.width, plot.bottom() - y.fractionOf(yValue) * plot.height};
    }
    double xAt(double pixel) const;
    double yAt(double pixel) const;
};

/// Sets the plot of a scene and its ranges, for zooming; upside down where y runs the other way.
void setDataRange(Scene& scene, const PlotFrame& frame);

/// Draws a line over the whole width of the plot at y, or over its whole height at x, both in data coordinates.
void drawAcross(SceneBuilder& builder, const PlotFrame& frame, double y, Stroke stroke);
void drawUpright(SceneBuilder& builder, const PlotFrame& frame, double x, Stroke stroke);

struct AxesStyle {
    bool tickLabels = true; ///< dropped before the data in small docks
    bool titles = true;
    bool forPaper = false; ///< Inter for tick labels
};

/// The plot box that is left inside `area` when ticks and titles have their room.
Box plotBoxFor(const Box& area, const AxisSpec& y, const AxesStyle& style, const TextService& text);

/// Widens the shorter range so that x and y have the same scale.
void makeAspectEqual(AxisSpec& x, AxisSpec& y, const Box& plot);

/// The grid, drawn before the data; then the axis lines with ticks and titles, drawn after the data.
void drawGrid(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme);
void drawAxes(SceneBuilder& builder, const PlotFrame& frame, const AxesStyle& style, const Theme& theme);

struct LegendEntry {
    std::string label;
    Marker marker = Marker::Circle;
    Colour fill = kTransparent;
    Stroke stroke;
    double radius = 3;
    bool bar = false;    ///< a short horizontal bar instead of a marker; with a stroke, a line in it under the marker
    Stroke outline = {}; ///< of the marker on a line
};

/// Entries of the usual shapes: a mark, a bar, a filled square, a ring, a piece of a line, words alone.
LegendEntry markEntry(std::string label, Marker marker, Colour fill, double radius = 3, Stroke stroke = {});
LegendEntry barEntry(std::string label, Colour fill);
LegendEntry areaEntry(std::string label, Colour fill);
LegendEntry ringEntry(std::string label, Stroke stroke);
LegendEntry lineEntry(std::string label, Stroke stroke);
LegendEntry wordsEntry(std::string label);
/// Sets the marker on the line of an entry.
void setMark(LegendEntry& entry, Marker marker, double radius, Colour fill, Stroke outline = {});

constexpr double kLegendPitch = 17; ///< from row to row

/// The fewest rows that show all labels whole or, from two rows on, leave at least a word of every label. At most
/// `most`.
int legendRows(const std::vector<LegendEntry>& entries, double width, int most, const TextService& text);
/// Whether no label is cut with so many rows.
bool isLegendWhole(const std::vector<LegendEntry>& entries, double width, int rows, const TextService& text);
/// Width of the widest row, up to `most`.
double legendWidth(const std::vector<LegendEntry>& entries, double most, int rows, const TextService& text);
/// Draws entries in rows; `leftMiddle` is the left end of the first row at half its height. Where they do not fit, long
/// labels are cut; the last entries go only where too little would be left of labels. Returns the right end plus a gap.
double drawLegend(SceneBuilder& builder, Point leftMiddle, double width, const std::vector<LegendEntry>& entries,
                  const Theme& theme, int rows = 1);

} // namespace kvscope
