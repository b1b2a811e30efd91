#pragma once

#include "core/engine/arithmetic.h"
#include "core/engine/requests.h"
#include "gpu/kernels/attention_call.h"
#include "gpu/primitives/device_memory.h"

#include <algorithm>

namespace kvscope::gpu {

/// Query heads listed by group: those that a block of threads computes together because they read the same keys.
struct HeadLists {
    static constexpr std::int32_t kMostMembers = 16; ///< of a group that a kernel takes at once

    std::vector<std::int32_t> heads, groups{0};
    std::int32_t largest = 1;

    void endGroup() {
        groups.push_back(static_cast<std::int32_t>(heads.size()));
        largest = std::max(largest, groups.back() - groups[groups.size() - 2]);
    }
};

inline KernelArithmetic kernelArithmetic(Arithmetic arithmetic) {
    return arithmetic == Arithmetic::Fast ? KernelArithmetic::Fast : KernelArithmetic::Exact;
}

/// Multiplications and additions of the logits of one tile's rows or keys against `tiles` others, for all KV heads.
/// Fast ones take an eighth of the time of exact ones, or less, and count as that many.
inline double operationsOfTiles(const AttentionCall& a, std::int64_t tiles) {
    constexpr double kTileSide = 64, kFastShare = 0.125;
    return 2 * kTileSide * kTileSide * static_cast<double>(a.queries.width * a.keys.heads * tiles) *
           (a.arithmetic == KernelArithmetic::Fast ? kFastShare : 1);
}

/// The part of a call that all attention kernels share; `lists` become parts of `memory`.
inline void describe(AttentionCall& call, CallMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                     const HeadLists& lists, const AttentionRule& rule, Arithmetic arithmetic) {
    call.queries = queries;
    call.keys = keys;
    memory.list(call.heads, lists.heads);
    memory.list(call.groups, lists.groups);
    call.slotCount = static_cast<std::int64_t>(lists.heads.size());
    call.largestGroup = lists.largest;
    call.queryCount = queries.rows;
    call.scaling = rule.scaling;
    call.softcap = rule.softcap;
    call.mask.slidingWindow = rule.slidingWindow;
    call.arithmetic = kernelArithmetic(arithmetic);
}

} // namespace kvscope::gpu
