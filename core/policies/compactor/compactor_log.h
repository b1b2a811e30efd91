#pragma once

#include "core/base/host_tensor.h"
#include "core/policies/step_log.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// The scores of the last choice of Compactor or of leverage alone, with intermediate results, by row and not by token.
struct LeverageLog : StepLog {
    HostTensor spectrum;            ///< [Hkv, k] singular values; empty when leverage is computed in chunks
    std::vector<std::int64_t> rank; ///< [Hkv]
    HostTensor leverage;            ///< [Hkv, m] of the scored rows
    HostTensor attention;           ///< [Hkv, m] after value norm and pooling; empty without an attention score
    HostTensor zLeverage, zAttention;
    double lambda = 0;
    std::vector<std::vector<std::int64_t>> draws; ///< [Hkv] rows in the order drawn; empty: none was drawn
    std::vector<double> distortion;               ///< [Hkv] of the drawn, weighted rows (Theorem 1); empty: none
    std::vector<double> topDistortion;            ///< [Hkv] of the best rows at the same count

    std::string json() const override;
};

} // namespace kvscope
