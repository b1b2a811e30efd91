#pragma once

#include "core/base/index.h"
#include "core/policies/step_log.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// The farthest-first walk of SubGen's k-center, per KV head.
struct KCenterLog final : StepLog {
    struct Head {
        std::int64_t recent = 0;            ///< tokens kept as recent
        std::vector<TokenIndex> order;      ///< centres in the order in which they were picked
        std::vector<double> radius;         ///< covering radius after each pick, never rising
        std::vector<std::int64_t> cellSize; ///< keys nearest to each centre (Voronoi counts), of those not recent
    };
    std::vector<Head> heads; ///< [Hkv]

    std::string json() const override;
};

} // namespace kvscope
