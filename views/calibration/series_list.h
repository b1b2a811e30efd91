#pragma once

#include "views/calibration/calibration_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <string>
#include <vector>

namespace kvscope {

/// Where the series get their names and r*: in a list beside the plot, or in the legend.
enum class SeriesNames { List, Legend };

/// "B SnapKV (proxy)", of another context its name.
std::string nameOf(const CalibrationSeries& series);
/// "residual 0.012", "residual 0.297 over 3 contexts: poor fit" (root mean square, of quality); empty for a given k.
std::string fitWords(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options);

/// The mark of every series as it is drawn, with what it is; the series too where the legend names them. With little
/// room it says less, so that its labels stand whole.
std::vector<LegendEntry> calibrationLegend(const CalibrationViewData& data, const ParameterValues& options,
                                           SeriesNames names, const Viewport& viewport);

/// A line for each series with its mark, name, r* and residual, under a line that names these.
class SeriesList {
public:
    SeriesList(const CalibrationViewData& data, const ParameterValues& options, const TextService& text);
    double width() const { return m_width; }
    double height() const;
    void draw(SceneBuilder& builder, Point topLeft, const Theme& theme) const;

private:
    enum Column { Needed, Residual, Verdict, kColumns };
    struct Row {
        std::size_t series = 0;
        std::string name, cells[kColumns];
    };

    const CalibrationViewData& m_data;
    std::vector<Row> m_rows;
    double m_names = 0, m_widths[kColumns] = {}, m_width = 0;
};

} // namespace kvscope
