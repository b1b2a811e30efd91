#pragma once

#include "core/parameters/parameters.h"
#include "views/common/chart.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

/// BalanceKV's set of a level: "C²".
std::string setName(std::int64_t level);

/// The values of one bucket: "2^−1 < ‖v‖ ≤ 2^0".
std::string octaveText(int bucket);

/// The view options that choose a tree of the streaming form, and its octave. `help`: of the tree option.
ParameterSpec balanceTreeOption(std::string help);
ParameterSpec octaveOption();

/// The legend above a picture; over it, where an example is shown, a line that says so and how to see the user's own
/// data, in the longest wording that fits. `lacks`: "No pane runs BalanceKV", for an example.
void drawBalanceLegend(SceneBuilder& builder, const Viewport& viewport, const std::vector<LegendEntry>& legend,
                       const ExplainedData& data, const std::string& lacks);
inline constexpr double kStandInRow = 18; ///< height of that line

} // namespace kvscope
