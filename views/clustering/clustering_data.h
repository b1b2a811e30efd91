#pragma once

#include "core/base/host_tensor.h"
#include "core/policies/subgen/subgen_log.h"
#include "views/view_data.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// Clusters of one head's keys by the active pane's SubGen, and cluster counts at other radii.
struct ClusteringData : ViewData {
    /// What the pane's policy recorded: one of the two, or neither when the pane has another policy.
    std::optional<SubgenLog::Head> stream;
    std::optional<KCenterLog::Head> centres;
    HostTensor points;            ///< [cut, 2] keys on their first two principal axes
    double explained[2] = {0, 0}; ///< shares of the variance
    std::int64_t cut = 0;

    /// Clusters of a stream against its radius.
    struct RadiusCurve {
        std::string source;                 ///< "keys", "keys before RoPE", "values"
        double median = 0;                  ///< of the distances between `medianRows` of the vectors
        std::vector<double> radius;         ///< ascending, in units of the median
        std::vector<std::int64_t> clusters; ///< at each radius; 0: more than `most`
    };
    std::vector<RadiusCurve> curves; ///< for the picture "delta"
    std::int64_t medianRows = 0;     ///< sampled evenly spaced; equal to `cut`: all rows
    std::int64_t most = 0;           ///< clusters beyond which the count stops

    /// The farthest-first walk beyond the budget, for the picture "radius".
    std::vector<TokenIndex> coverOrder;
    std::vector<double> coverRadius;
};

/// The name of the unit of radii; says so where the unit is estimated from a sample.
inline std::string medianWords(const ClusteringData& data) {
    return data.medianRows < data.cut ? "sampled median distance" : "median distance";
}

} // namespace kvscope
