#pragma once

#include "views/common/chart.h"
#include "views/common/view_facts.h"
#include "views/leverage/leverage_data.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// The data with the tokens that the best `budget` scores would keep, by exact and by sketched leverage.
struct LeverageChoice {
    std::shared_ptr<const LeverageData> data;
    std::int64_t budget = 0;           ///< tokens that the active pane keeps in this head; 0: no pane has a result
    std::vector<char> exact, sketched; ///< [cut] 1: among the best `budget`
    std::int64_t common = 0;           ///< tokens in both
    std::int64_t withoutLeverage = 0;  ///< tokens with leverage 0, which logarithmic axes cannot show

    double overlap() const { return budget > 0 ? static_cast<double>(common) / static_cast<double>(budget) : 0; }
    /// Share of the sum of the exact leverage on its best `count` tokens.
    double shareOfBest(std::int64_t count) const;
};
LeverageChoice leverageChoice(const ViewInput& input);

/// Theorem 2 at an epsilon and delta = 0.01, for the rank and the singular values of the keys.
struct SketchTheorem {
    double epsilon = 0, factor = 1; ///< sketched / exact within 1 / factor and factor
    double demanded = 0;            ///< columns that the theorem asks for
    double measuredLow = 0, measuredHigh = 0;
};
SketchTheorem sketchTheorem(const LeverageData& data, double epsilon);

/// A logarithmic axis over the positive numbers of both, which spans at most six decades below its top.
AxisSpec positiveAxis(const std::vector<float>& exact, const std::vector<float>& sketched, std::string title);

/// With so many tokens in all, one in this number is drawn of those that neither choice keeps.
std::int64_t markStride(std::int64_t tokens);

/// Draws the plots of the view; each returns the frame that it used. Scatter and spectrum stand in
/// leverage_view.cpp.
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
