#pragma once

#include "app/study/live_rows.h"
#include "views/curves/curves_data.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvscope {

/// One policy at several budgets. Rows without a loss are ignored.
struct LossSeries : PaneName {
    std::vector<const LiveRow*> rows = {};
    std::string error = {}; ///< why rows are missing
};

/// The loss of the expected answer against the realised budget, one curve per series, and the full cache's as a level
/// line; the present budget is marked at `retention`. Null where no series has a point.
std::shared_ptr<const CurvesData> lossCurves(std::span<const LossSeries> series, const LiveRow* full, TokenIndex cut,
                                             std::optional<double> retention = {});

} // namespace kvscope
