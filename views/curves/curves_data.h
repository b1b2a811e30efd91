#pragma once

#include "core/base/index.h"
#include "views/pane_name.h"
#include "views/view_data.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// The fractions kept along the axis unless an option lists them.
inline constexpr std::array kBudgetGrid = {0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 0.9};

/// One budget, or one value of a parameter, of one policy, over seeds.
struct CurvePoint {
    double asked = 0;     ///< requested retention, 0..1, or the value of the parameter
    std::string setting;  ///< the value as typed; empty: the budget varies
    double retention = 0; ///< realised: tokens kept of those before the cut
    double bytes = 0;     ///< stored by all KV heads of the layer
    double mean = 0, low = 0,
           high = 0; ///< of the measure; low and high: extremes over seeds, or the interval over captures
    int seeds = 1;
    bool balancedNothing = false; ///< a run of this point balanced nothing, see core/run/head_means.h
};

/// The curve of one of several captures.
struct CaptureCurve {
    std::string capture;            ///< the file's name
    std::vector<CurvePoint> points; ///< ascending in `asked`; means and extremes over seeds
};

struct Curve : PaneName {
    /// Ascending in the requested value; one point where the policy has nothing to vary. With several captures: means
    /// over captures with the 95 % interval of the mean (Summary::halfInterval).
    std::vector<CurvePoint> points = {};
    std::vector<CaptureCurve> captures = {}; ///< the curve of each capture, where there are several
    bool simulated = false;
    std::string error = {}; ///< why the curve ends, has gaps or is missing
};

/// A measure against the budget or against a parameter, for the policies of the panes.
struct CurvesData : ViewData {
    std::string measure = "output_error"; ///< id in the registry of measures
    std::string parameter;                ///< id of what varies at each pane's own budget; empty: the budget varies
    std::string title;                    ///< of that parameter: "Window W, tokens"
    std::optional<KvHeadIndex> head = {}; ///< head of the measure; none: mean of all heads of the layer
    std::string where;                    ///< "KV head 1", "all heads of the layer"
    std::string valueTitle = {};          ///< of values of the whole model, which no measure gives; else empty
    std::pair<double, std::string> present = {NAN,
                                              ""}; ///< of such values: the active pane's retention and words; NaN: none
    std::pair<double, std::string> level = {NAN, ""}; ///< a line across the plot and its name; NaN: none
    std::size_t captures = 1;                         ///< number that the means are over
    std::size_t models = 1;                           ///< number of models of these captures
    std::vector<Curve> curves;
};

/// Whether the budget varies along the axis, not a parameter.
inline bool variesBudget(const CurvesData& data) { return data.parameter.empty(); }

/// Whether the curve is a level: a policy without the parameter that varies has one value everywhere.
inline bool isLevel(const CurvesData& data, const Curve& curve) {
    return !variesBudget(data) && !curve.points.empty() && curve.points.front().setting.empty();
}

} // namespace kvscope
