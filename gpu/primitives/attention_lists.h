#pragma once

#include "core/engine/attention.h"
#include "gpu/kernels/attention_call.h"
#include "gpu/primitives/device_memory.h"

#include <algorithm>

namespace kvscope::gpu {

inline constexpr std::int32_t kMostMembers = 32;  ///< query heads of one KV head that a kernel takes at once
inline constexpr std::int32_t kMostMapHeads = 64; ///< likewise of the map, whose heads are combined inside one tile

/// Query heads listed by GQA group, at most 32 of each group: those from place 32 * `part` on.
struct HeadLists {
    std::vector<std::int32_t> heads, groups{0};
    std::int32_t largest = 0;

    HeadLists(const std::vector<std::int32_t>& gqaGroupOf, std::int64_t kvHeads, std::int32_t part) {
        for (std::int32_t kv = 0; kv < kvHeads; ++kv) {
            std::int32_t place = 0, taken = 0;
            for (std::size_t h = 0; h < gqaGroupOf.size(); ++h)
                if (gqaGroupOf[h] == kv && place++ / kMostMembers == part) {
                    heads.push_back(static_cast<std::int32_t>(h));
                    ++taken;
                }
            groups.push_back(static_cast<std::int32_t>(heads.size()));
            largest = std::max(largest, taken);
        }
    }
};

/// A kernel call together with the lists that it points to.
struct ListedCall {
    AttentionCall call;
    DeviceList<std::int32_t> heads, groups;

    ListedCall(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys, const HeadLists& lists,
               const AttentionRule& rule, KernelArithmetic arithmetic)
        : heads(memory, lists.heads), groups(memory, lists.groups) {
        call.queries = queries;
        call.keys = keys;
        call.heads = heads.data();
        call.groups = groups.data();
        call.slotCount = static_cast<std::int64_t>(lists.heads.size());
        call.largestGroup = lists.largest;
        call.queryCount = queries.rows;
        call.scaling = rule.scaling;
        call.softcap = rule.softcap;
        call.arithmetic = arithmetic;
    }
};

} // namespace kvscope::gpu
