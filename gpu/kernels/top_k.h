#pragma once

#include "gpu/kernels/device_data.h"

// The best rows of every head by radix selection, in the order (score descending, row ascending). One launch; each head
// reads its scores six times, from the L2 cache.
namespace kvscope::gpu {

/// All pointers are device memory.
struct TopKCall {
    const float* scores = nullptr; ///< [H, m], m < 2^32 - 1
    std::int64_t heads = 0, rows = 0;
    const std::int64_t* counts = nullptr; ///< [H] rows to keep, 0..m
    /// Rows kept before any other, as far as the count allows: the first ones, then the last ones.
    std::int64_t protectFirst = 0, protectLast = 0;

    std::int32_t* kept = nullptr; ///< [H, keptStride] ascending rows, counts[h] of them
    std::int64_t keptStride = 0;  ///< at least the largest count
    float* margins = nullptr; ///< [H] smallest kept free score minus largest evicted one; +infinity without a choice
    std::int64_t* nanRows = nullptr; ///< [H] first row whose score is NaN, or -1; such a head has no other result
};

void topK(const TopKCall& call, Stream stream);

} // namespace kvscope::gpu
