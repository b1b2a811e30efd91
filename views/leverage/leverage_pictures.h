#pragma once

#include "views/common/chart.h"
#include "views/leverage/leverage_choice.h"

#include <limits>
#include <string>
#include <vector>

namespace kvscope {

/// The smallest and the largest positive number of some.
struct PositiveRange {
    double low = std::numeric_limits<double>::infinity(), high = 0;

    void include(const std::vector<float>& numbers);
    /// As a logarithmic axis that spans at most six decades below its top.
    AxisSpec axis(std::string title) const;
};

/// Draws the plots of the view; each returns the frame that it used. Scatter and spectrum stand in
/// leverage_scatter.cpp.
class LeveragePainter {
public:
    LeveragePainter(SceneBuilder& builder, const ViewInput& input, const ParameterValues& options,
                    const Viewport& viewport, const LeverageChoice& choice);

    PlotFrame sorted(const Box& area);
    PlotFrame cumulative(const Box& area);
    PlotFrame histogram(const Box& area);
    PlotFrame tokens(const Box& area);
    PlotFrame spectrum(const Box& area);
    PlotFrame scatter(const Box& area);
    std::vector<LegendEntry> legend() const;
    std::vector<LegendEntry> markLegend() const; ///< of the marks in `tokens` and `scatter`

private:
    void curve(const PlotFrame& frame, const std::vector<Point>& points, bool sketched);
    void budgetLine(const PlotFrame& frame, double x);
    enum class Corner {
        TopLeft,
        BottomLeft,
        BottomRight,
        AboveDiagonal
    }; ///< the last: top left, clear of the diagonal
    void label(const PlotFrame& frame, const std::vector<std::string>& lines, Corner corner);
    void clouds(const PlotFrame& frame, const std::vector<Point>& places);
    void band(const PlotFrame& frame, const SketchTheorem& theorem);
    std::vector<std::string> scatterNotes(const SketchTheorem& theorem) const;

    SceneBuilder& m_builder;
    const ViewInput& m_input;
    const ParameterValues& m_options;
    const Viewport& m_viewport;
    const LeverageChoice& m_choice;
    const LeverageData& m_data;
    const Theme& m_theme;
    Colour m_colour; ///< Compactor's
};

} // namespace kvscope
