#pragma once

#include "gpu/kernels/device_data.h"

#include <cstdint>

namespace kvscope::gpu {

/// Which keys a query sees, apart from the sliding window. Chunks: those of its own chunk of C rows.
enum class MaskKind : std::int32_t { Causal, All, Chunks };

struct AttentionMask {
    MaskKind kind = MaskKind::Causal;
    /// Causal: query j sees i > j - slidingWindow. Chunks: |i - j| < slidingWindow. 0: all
    std::int64_t slidingWindow = 0;
    std::int64_t chunk = 256; ///< Chunks: C
};

/// Queries, the keys of the KV heads that they read, and how logits are computed. All pointers are device memory. Query
/// heads are listed by GQA group, so that a block of threads computes a whole group with the keys that it has loaded;
/// an index into that list is called a slot.
struct AttentionCall {
    DeviceRows queries;                   ///< [Hq, w, d]
    DeviceRows keys;                      ///< [Hkv, m, d], same type
    const std::int32_t* heads = nullptr;  ///< [slots] query heads in the order of their KV heads
    const std::int32_t* groups = nullptr; ///< [Hkv + 1] KV head k has the slots groups[k] .. groups[k + 1] - 1
    std::int64_t slotCount = 0;           ///< length of `heads`
    std::int32_t largestGroup = 1;        ///< slots of a KV head: at most 32, for column sums 16

    /// Ascending rows of the queries to compute; null: all w.
    const std::int32_t* queryRows = nullptr;
    std::int64_t queryCount = 0;                ///< R: number of rows to compute
    std::int64_t firstQuery = 0;                ///< time position of query row 0
    const std::int32_t* keyPositions = nullptr; ///< [Hkv, m] ascending time positions; null: row r is token r

    double scaling = 1;
    double softcap = 0; ///< logit -> softcap tanh(logit / softcap); 0: none
    AttentionMask mask;
    KernelArithmetic arithmetic = KernelArithmetic::Exact;
    StopWord stop = {};
};

} // namespace kvscope::gpu
