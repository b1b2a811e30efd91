#pragma once

#include "views/scene/scene_builder.h"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// "1,024", "−0.545", "3.1e−6": thin group commas, typographic minus.
std::string formatCount(std::int64_t value);
std::string formatFixed(double value, int decimals);
/// With the given decimals, or with as many more, up to four, as tell a number from 0 and from `whole` where it is
/// neither: 99.98 of 100 is not all, 0.04 not nothing. Nearer than four decimals it is taken for a rounded sum.
std::string formatWithin(double value, double whole, int decimals);
std::string formatPercent(double share);                               ///< "25.0 %", "99.98 %", "0.04 %"
std::string formatCounted(std::int64_t count, std::string_view thing); ///< "1 token", "1,024 queries"
/// The one spelling of budgets and of what is kept: "249 tokens (25.0 %)".
std::string formatBudget(std::int64_t tokens, std::int64_t of);
std::string formatShort(double value); ///< up to three significant digits, exponents beyond 1e−4 and 1e6

struct Tick {
    double value = 0;
    std::string label;
};

/// 4 to 7 ticks of step 1, 2 or 5 times a power of ten, inside [low, high]; none in a range so narrow that doubles
/// hardly tell its ends apart.
std::vector<Tick> linearTicks(double low, double high, int most = 7);
/// Decades, then 1-3, then 1-2-5 as room allows; low > 0.
std::vector<Tick> logarithmicTicks(double low, double high, int most = 7);
/// Token positions: multiples of a power of two times 64 (512, 1,024 ...).
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

/// The plot of a scene and its ranges, for zooming; upside down where y runs the other way.
void setDataRange(Scene& scene, const PlotFrame& frame);

/// A line over the whole width of the plot, at a height of the data; one over its whole height.
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
    bool bar = false; ///< a short horizontal bar instead of a marker; with a stroke, a line of it under a filled marker
};

/// Entries of the usual shapes: a mark, a bar, a filled square, a ring, a piece of a line, words alone.
LegendEntry markEntry(std::string label, Marker marker, Colour fill, double radius = 3, Stroke stroke = {});
LegendEntry barEntry(std::string label, Colour fill);
LegendEntry areaEntry(std::string label, Colour fill);
LegendEntry ringEntry(std::string label, Stroke stroke);
LegendEntry lineEntry(std::string label, Stroke stroke);
LegendEntry wordsEntry(std::string label);

constexpr double kLegendPitch = 17; ///< from row to row

/// The fewest rows that show all labels whole; otherwise at least two rows in which every label keeps a word. At most
/// `most`.
int legendRows(const std::vector<LegendEntry>& entries, double width, int most, const TextService& text);
/// Whether no label is cut with so many rows.
bool isLegendWhole(const std::vector<LegendEntry>& entries, double width, int rows, const TextService& text);
/// Width of the widest row, up to `most`.
double legendWidth(const std::vector<LegendEntry>& entries, double most, int rows, const TextService& text);
/// Entries in rows from the left, `leftMiddle` being that of the first row. Where they do not fit, long labels are cut;
/// only where nothing would be left of the labels the last entries go. Returns the right end with a gap behind it.
double drawLegend(SceneBuilder& builder, Point leftMiddle, double width, const std::vector<LegendEntry>& entries,
                  const Theme& theme, int rows = 1);

} // namespace kvscope
