#pragma once

#include "views/calibration/calibration_data.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <cstddef>
#include <vector>

namespace kvscope {

/// Draws the line of tau with its name, and for each of some series of the open context a ring where its curve meets
/// that line, with a line down to r*, dashed for a poor fit.
void drawTau(SceneBuilder& builder, const PlotFrame& frame, double tau, const Theme& theme);
/// Beside the line, where no point lies under the name.
void nameTau(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, double tau,
             const Theme& theme);
void drawNeeded(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data,
                const std::vector<std::size_t>& series, const ParameterValues& options, const Theme& theme);

} // namespace kvscope
