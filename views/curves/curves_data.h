#pragma once

#include "views/view_data.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

/// One budget, or one value of a parameter, of one policy, over seeds.
struct CurvePoint {
    double asked = 0;     ///< retention asked for, 0..1, or the value of the parameter
    std::string setting;  ///< that value as it is typed; empty: the budget varies
    double retention = 0; ///< realised: tokens kept of those before the cut
    double bytes = 0;     ///< stored by all KV heads of the layer
    double mean = 0, low = 0, high = 0; ///< of the measure over seeds; low and high are its extremes
    int seeds = 1;
};

struct Curve {
    char letter = 'A';
    std::string policyId, policyName, variant;
    std::vector<CurvePoint> points; ///< ascending in what was asked for; one where the policy has nothing to vary
    bool simulated = false;
    std::string error;              ///< why the curve ends, has gaps or is missing
};

/// A measure against the budget or against a parameter, for the policies of the panes.
struct CurvesData : ViewData {
    std::string measure;   ///< id of the option
    std::string parameter; ///< id of what varies at each pane's own budget; empty: the budget varies
    std::string title;     ///< of that parameter: "Window W, tokens"
    std::string where;   ///< "KV head 1", "all heads of the layer"
    std::vector<Curve> curves;
};

} // namespace kvscope
