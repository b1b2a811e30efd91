#pragma once

#include "core/engine/clusters.h"
#include "core/policies/policy.h"

namespace kvscope {

class Engine;

/// SubGen's clusters of every KV head with their radii.
struct SubgenClusters {
    std::vector<double> radii;         ///< [Hkv]
    std::vector<StreamClusters> heads; ///< [Hkv]
};

constexpr std::int64_t kSampledRows = 512;

/// Clusters by the rule `delta_rule`. Under "budget" each head gets the smallest radius found by bisection whose
/// storage, m (t + 1) keys and s pairs, fits into that of `count` tokens. Throws Error when not even one cluster fits.
SubgenClusters clusterKeys(const PolicyInput& input, const ParameterValues& values, std::int64_t count);

/// The quantile of the Euclidean distances between the rows [H, n, d] of every head, out of up to kSampledRows evenly
/// spaced ones: the smallest distance that a share of at least `quantile` of the pairs does not exceed; 0 for a single
/// row.
std::vector<double> distanceQuantiles(const Engine& engine, const Tensor& rows, double quantile);

} // namespace kvscope
