#pragma once

#include "gpu/kernels/device_data.h"

#include <cstddef>

// Greedy k-center (farthest first): every pick compares all rows with the latest centre, one launch per pick over all
// heads. Distances have the CPU engine's bits, so the picks are equal.
namespace kvscope::gpu {

/// All pointers are device memory. The outputs are the run's state, so that it can be continued: with known > 0 every
/// output holds the result of a run of `known` centres.
struct CentersCall {
    DeviceRows keys;
    std::int32_t count = 0;              ///< centres wanted, 1..n
    std::int32_t stride = 0;             ///< places of a head in order, radius and closest; 0: count
    std::int32_t known = 0;              ///< centres of an earlier run to go on from; 0: none
    const std::int32_t* first = nullptr; ///< [H] first centre of each head

    std::int32_t* order = nullptr;  ///< [H, stride]
    double* radius = nullptr;       ///< [H, stride] after each pick: covering radius
    double* closest = nullptr;      ///< [H, stride] after each pick: lead of the next pick over the runner-up
    double* distances = nullptr;    ///< [H, n] squared distance to the nearest centre
    std::int32_t* centre = nullptr; ///< [H, n] place in `order` of that centre; ties to the earlier one
    std::int32_t* found = nullptr;  ///< [H] centres picked: fewer than count when every row coincides with one
    void* scratch = nullptr;        ///< centersScratchBytes
    StopWord stop = {};
};

std::size_t centersScratchBytes(const DeviceRows& keys);

/// A radius that is not finite means that a key holds NaN or infinity; the caller throws.
void greedyCenters(const CentersCall& call, Stream stream);

} // namespace kvscope::gpu
