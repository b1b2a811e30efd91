#pragma once

#include "core/policies/policy.h"

namespace kvscope {

class Engine;

/// Needle detection: a token is protected when its key points away from the mean of its block,
///   rho_i = <k_i, (1/B) sum of the block's keys> + 1e-8 <= threshold * mean ||k||^2,
/// or when the key of a token at most `dilation` positions away does. Raw keys, zero padding included.
struct NeedleMask {
    std::vector<std::vector<double>> rho;        ///< [Hkv][middle]
    std::vector<std::vector<char>> raw, dilated; ///< 1: protected
};

/// `keys` [Hkv, middle, d].
NeedleMask findNeedles(const Engine& engine, const Tensor& keys, std::int64_t block, double threshold,
                       std::int64_t dilation, const Checkpoint& checkpoint);

} // namespace kvscope
