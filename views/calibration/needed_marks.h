#pragma once

#include "views/calibration/calibration_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <cstddef>
#include <string>
#include <vector>

namespace kvscope {

/// What the picture says about the wanted quality: the line of tau with its name, and for each of some series of the
/// open context a ring where its curve meets that line, with a line from it down to r*, dashed where the fit is poor.
void drawTau(SceneBuilder& builder, const PlotFrame& frame, double tau, const Theme& theme);
/// Beside the line, where no point lies under the name.
void nameTau(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, double tau,
             const Theme& theme);
void drawNeeded(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data,
                const std::vector<std::size_t>& series, const ParameterValues& options, const Theme& theme);

/// r* of a series as a number in a box.
struct NeededBox {
    std::size_t series = 0;
    std::string text;
    Box box;
};
/// Beside the lines of r*, in the lowest rows above the axis, over no point and no other box; of few words where there
/// is little room. Empty where a plot has none: then a list or the legend has the numbers.
std::vector<NeededBox> placeNeededBoxes(const PlotFrame& frame, const CalibrationViewData& data,
                                        const std::vector<std::size_t>& series, const ParameterValues& options,
                                        const TextService& text);
void drawNeededBoxes(SceneBuilder& builder, const std::vector<NeededBox>& boxes, const CalibrationViewData& data,
                     const ParameterValues& options, const Theme& theme);

} // namespace kvscope
