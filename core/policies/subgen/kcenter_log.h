#pragma once

#include "core/base/index.h"
#include "core/policies/step_log.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// The greedy k-center run of SubGen's practical variant, per KV head.
struct KCenterLog final : StepLog {
    struct Head {
        std::int64_t recent = 0;            ///< tokens kept as recent
        std::vector<TokenIndex> order;      ///< centres in the order of their choice
        std::vector<double> radius;         ///< covering radius after each pick, non-increasing
        std::vector<std::int64_t> cellSize; ///< keys nearest to each centre (Voronoi counts), of those not recent
    };
    std::vector<Head> heads; ///< [Hkv]

    std::string json() const override;
};

} // namespace kvscope
