#pragma once

#include "core/base/index.h"
#include "core/policies/step_log.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// The state of streaming SubGen at the end of the stream, per KV head.
struct SubgenLog final : StepLog {
    struct Head {
        double delta = 0, mu = 0;
        std::vector<TokenIndex> representatives;           ///< tokens that opened a cluster, ascending: gives m(time)
        std::vector<std::int64_t> counts;                  ///< n_c
        std::vector<double> radii;                         ///< actual: max ‖k − x_c‖ over the cluster
        std::vector<std::int32_t> cluster;                 ///< [n] of each token
        std::vector<double> distances;                     ///< [n] to its representative
        std::vector<std::vector<TokenIndex>> clusterSlots; ///< [m][t]
        std::vector<TokenIndex> valueSlots;                ///< [s]; -1: never filled (every value so far is zero)
        std::vector<double> valueProbability; ///< [n] ‖v‖²/mu: how likely a slot holds the token at the end
        /// Tokens that a slot accepted, ascending: at any time it holds the last one accepted so far.
        std::vector<std::vector<std::vector<TokenIndex>>> clusterHistory; ///< [m][t]
        std::vector<std::vector<TokenIndex>> valueHistory;                ///< [s]
    };
    std::vector<Head> heads; ///< [Hkv]

    std::string json() const override;
};

/// The greedy k-center run of SubGen's practical variant, per KV head.
struct KCenterLog final : StepLog {
    struct Head {
        std::int64_t recent = 0;            ///< tokens kept as recent
        std::vector<TokenIndex> order;      ///< centres in the order of their choice
        std::vector<double> radius;         ///< covering radius after each pick, non-increasing
        std::vector<std::int64_t> cellSize; ///< keys nearest to each centre (Voronoi counts), recent keys left out
    };
    std::vector<Head> heads; ///< [Hkv]

    std::string json() const override;
};

} // namespace kvscope
