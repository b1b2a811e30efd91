#pragma once

#include "core/metrics/fidelity.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kvscope {

class Engine;

/// The values of one measure in one layer.
struct MeasureValues {
    std::string id;
    HostTensor perQuery;         ///< [Hq, w] or [1, w]; empty for the shapes without queries. NaN where skipped
    std::vector<double> perHead; ///< [Hq], [Hkv] or [1]: the mean over the queries that count, or the number itself
    HostTensor perVector = {};   ///< [H, rows] for norms: one number per key, value or query; else empty

    double mean() const { return meanOfNumbers(perHead); }
};

/// Returns values that do not depend on the selection; makes them on the first call with their name.
using ValuesOfLayer = std::function<std::shared_ptr<const MeasureValues>(const std::string& name,
                                                                         const std::function<MeasureValues()>& make)>;

/// Everything that measures read. `fidelity` belongs to `kept`.
struct MeasureInput {
    const Engine& engine;
    FidelityInput attention;
    const WeightedAttention& exact;
    const Fidelity& fidelity;
    std::span<const WeightedSet> kept; ///< [Hkv], or [Hq] where query heads have sets of their own
    const HostTensor& scores;          ///< [Hkv, cut] or [Hq, cut]; NaN where unknown; empty: the policy does not score
    const HostTensor& outputProjection; ///< [hidden, Hq, dv] or empty
    Tensor preRopeKeys = {};            ///< [Hkv, n, d] or empty
    Tensor allQueries = {};             ///< [Hq, w', d] all that were captured, before and after the cut; or empty
    RecentSums* recent = nullptr;       ///< of the layer's evaluation queries; null: nothing to update, all is summed
    ValuesOfLayer ofLayer = {};         ///< shared by the layer's selections; null: made anew for each of them
    bool scoresOfQueryHeads = false;    ///< `scores` is [Hq, cut]; needed where Hq = Hkv
};

} // namespace kvscope
