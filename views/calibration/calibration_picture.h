#pragma once

#include "views/calibration/calibration_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace kvscope {

/// k of the curve as drawn: the option's k where it is given by hand.
double curvatureOf(const CalibrationSeries& series, const ParameterValues& options);
/// r*(tau) with its bootstrap band (NaN without one), and the retention by the points (NaN where they do not keep tau).
struct NeededRetention {
    double retention = 1;
    CalibrationBand band;
    double ofPoints = NAN;
};
NeededRetention neededBy(const CalibrationSeries& series, const ParameterValues& options);
/// The budget that takes its retention from the series.
Budget budgetOf(const CalibrationSeries& series, const CalibrationViewData& data, const ParameterValues& options);
/// "measured", "measured live", "proxy" or "given".
std::string kindOf(const CalibrationSeries& series);
/// Misfit of a series' curve; for the open context without points, of the contexts from which its k is predicted.
struct SeriesMisfit {
    CalibrationMisfit misfit;
    std::size_t contexts = 0; ///< 0: misfit of its own points
};
SeriesMisfit misfitOf(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options);

/// For a poor fit the retention by the points, where there is one; else r*. Series are ranked by it.
double leadingRetention(const CalibrationViewData& data, const CalibrationSeries& series,
                        const ParameterValues& options);
bool isPoor(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options);
/// r* as text; for a poor fit with two digits ("0.86").
std::string neededNumber(const CalibrationViewData& data, const CalibrationSeries& series,
                         const ParameterValues& options);

/// How a series is drawn: the open context in its policy's colour, others in grey with a marker and a dash of their
/// own.
struct SeriesLook {
    Colour colour;
    Marker marker = Marker::Circle;
    std::vector<double> dash;
};
SeriesLook lookOf(const CalibrationViewData& data, std::size_t index, ThemeId theme);

/// Picks: a point of a series has kind Cell and index series * kPointsPerSeries + point, r* has kind Node and the
/// series. A click on either sets a budget.
inline constexpr std::int64_t kPointsPerSeries = 1 << 20;

void drawBand(SceneBuilder& builder, const PlotFrame& frame, const CalibrationSeries& series, Colour colour);
/// Solid from the smallest measured retention on, dashed below it, where nothing was measured.
void drawFittedCurve(SceneBuilder& builder, const PlotFrame& frame, const CalibrationSeries& series, double k,
                     const SeriesLook& look);
/// The marks of a series without their places: filled where a model measured them, hollow for a proxy.
PointCloudItem marksOf(const CalibrationSeries& series, const SeriesLook& look);
void drawTriples(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, std::size_t index,
                 const SeriesLook& look);

/// The name of tau beside its line, where no point lies under it.
void nameTau(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, double tau,
             const Theme& theme);
/// For each given series: rings the point where its curve meets the line of tau and draws a line down to r*. For a
/// poor fit this line is dashed, and the measured point that keeps tau is ringed, too, and has a solid line.
void drawNeeded(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data,
                const std::vector<std::size_t>& series, const ParameterValues& options, const Theme& theme);

/// Where the names and r* of the series stand: in a list beside the plot, or in the legend.
enum class SeriesNames { List, Legend };

/// " (context other-book.h5)" where the one context of the points is another than the open one; else empty.
std::string contextBehind(const CalibrationSeries& series);
/// "B SnapKV (proxy)", "B SnapKV (measured live)"; for another context its name instead of the policy's; with a dagger
/// where there are notes.
std::string nameOf(const CalibrationSeries& series);
/// "residual 0.012", "residual 0.297 over 3 contexts: poor fit" (root mean square, of quality); empty for a given k.
std::string fitWords(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options);

/// What the marks and lines mean; the series themselves only where the legend holds their names. In little room the
/// legend says less, so that its labels are not cut.
std::vector<LegendEntry> calibrationLegend(const CalibrationViewData& data, const ParameterValues& options,
                                           SeriesNames names, const Viewport& viewport);

/// A row for each series with its mark, name, retention by the points, r* and residual, under a row of headings;
/// proxies last, under a heading of their own.
class SeriesList {
public:
    SeriesList(const CalibrationViewData& data, const ParameterValues& options, const TextService& text);
    double width() const { return m_width; }
    double height() const;
    void draw(SceneBuilder& builder, Point topLeft, const Theme& theme) const;

private:
    enum Column { Points, Needed, Residual, Verdict, kColumns };
    struct Row {
        std::size_t series = 0; ///< kNoSeries: a heading
        std::string name, cells[kColumns];
    };

    const CalibrationViewData& m_data;
    std::vector<Row> m_rows;
    double m_names = 0, m_widths[kColumns] = {}, m_width = 0;
};

} // namespace kvscope
