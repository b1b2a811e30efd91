#pragma once

#include "core/base/host_tensor.h"
#include "core/base/index.h"
#include "core/engine/balancing_walk.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kvscope {

/// M of one walk, [m, m] row by row, as BalancingWalk defines it, by plain loops (the engine never stores it whole).
/// Keys [n, d] and values [n, dv] (or empty) of the walk's head; `centre` [d] is used when the walk has no mean of its
/// own, and may be empty.
std::vector<double> walkKernel(const BalancingWalk& walk, const HostTensor& keys, const HostTensor& values,
                               std::span<const float> centre);

/// Q_j = sum over i, i' <= j of M_ii' eta_i eta_i' under fair coins: the 10 % and 90 % quantiles of `runs` seeded runs.
struct CoinBand {
    std::vector<double> low, high; ///< per row of the walk
};
/// `silent` rows have sign 0. Each coin depends on (seed, run, row) alone, so the band does not depend on threads.
CoinBand coinBand(std::span<const double> kernel, std::span<const char> silent, std::uint64_t seed, int runs);

} // namespace kvscope
