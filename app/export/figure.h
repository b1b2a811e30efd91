#pragma once

#include "views/view.h"

#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// A figure of a view for export: a per-pane view gets one panel per pane, side by side or in rows, with letter,
/// policy, error, mass and kept count above; another view fills the figure. `panes`: indices into input.panes for
/// per-pane views; throws Error where there are none.
Scene buildFigure(const View& view, ViewInput input, const ParameterValues& options,
                  const std::vector<std::size_t>& panes, const Viewport& viewport);

/// Panels of one size under titles of their own, in rows: as many columns as give the largest panels.
struct PanelGrid {
    PanelGrid(std::size_t panels, double width, double height);

    std::size_t columns;
    double width, height; ///< of a panel, without its title
};
Scene placePanels(const PanelGrid& grid, const std::vector<std::pair<std::string, Scene>>& panels,
                  const Viewport& viewport);

} // namespace kvscope
