#pragma once

#include "core/base/host_tensor.h"
#include "core/base/index.h"
#include "core/engine/balancing_walk.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kvscope {

/// M of one walk, [m, m] row by row, as BalancingWalk states it, by plain loops: the engine never stores it whole.
/// Keys [n, d] and values [n, dv] (or empty) of the walk's head; `centre` [d] is read when the walk has no mean of its
/// own, and may be empty.
std::vector<double> walkKernel(const BalancingWalk& walk, const HostTensor& keys, const HostTensor& values,
                               std::span<const float> centre);

/// Q_j = sum over i, i' <= j of M_ii' eta_i eta_i' when the signs are fair coins: 10 % and 90 % of `runs` seeded runs.
struct CoinBand {
    std::vector<double> low, high; ///< per row of the walk
};
/// `silent` rows have sign 0. Every number is drawn at (seed, run, row), so the band does not depend on threads.
CoinBand coinBand(std::span<const double> kernel, std::span<const char> silent, std::uint64_t seed, int runs);

} // namespace kvscope
