#pragma once

#include "views/common/chart.h"
#include "views/common/colour_scale.h"
#include "views/phase_map/phase_map_data.h"
#include "views/scene/scene_builder.h"
#include "views/view.h"

#include <optional>

namespace kvscope {

/// Where the cells of a phase map lie; the first row is at the bottom.
struct PhaseLayout {
    Box grid, column; ///< column: of the colours; no width: none
    double cellWidth = 0, cellHeight = 0;
    std::size_t rows = 0;
    bool titles = true;

    Box cell(std::size_t x, std::size_t y) const {
        return {grid.x + cellWidth * static_cast<double>(x), grid.y + cellHeight * static_cast<double>(rows - 1 - y),
                cellWidth - 1, cellHeight - 1};
    }
    /// Centre of a place between cells, counted in cells from the first.
    Point centre(double x, double y) const {
        return {grid.x + cellWidth * (x + 0.5) - 0.5,
                grid.y + cellHeight * (static_cast<double>(rows) - 0.5 - y) - 0.5};
    }
};

PhaseLayout phaseLayoutOf(const PhaseMapData& data, const std::vector<LegendEntry>& legend, const Viewport& viewport);

/// Where the active pane stands on an axis, counted in cells; nothing off the axis.
std::optional<double> placeOnAxis(const PhaseAxis& axis, const std::string& text);
/// The text of an axis' parameter in the active pane.
std::string presentText(const ViewInput& input, const PhaseAxis& axis);

/// Where the active pane stands, counted in cells; nothing off the map.
std::optional<Point> phasePresentPlace(const PhaseMapData& data, const ViewInput& input);

/// Style of the axes' titles.
inline const TextStyle kPhaseTitle{FontFace::Interface, 11};

/// The scale of the measure in the computed cells; empty where winners are shown.
ValueScale phaseScale(const PhaseMapData& data, const ParameterValues& options);
void drawPhaseCells(SceneBuilder& builder, const ViewInput& input, const PhaseLayout& layout, const PhaseMapData& data,
                    const ValueScale& scale, const Viewport& viewport);
void drawPhaseAxes(SceneBuilder& builder, const PhaseLayout& layout, const PhaseMapData& data, const Theme& theme);
/// A ring where the active pane stands.
void drawPhasePresent(SceneBuilder& builder, const PhaseLayout& layout, const PhaseMapData& data,
                      const ViewInput& input, const Theme& theme);

} // namespace kvscope
