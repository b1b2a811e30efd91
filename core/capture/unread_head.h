#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace kvscope {

/// The first KV head that no query head reads (no model has one), or -1 if all are read.
inline std::int32_t unreadHead(std::span<const std::int32_t> kvHeadOfQuery, std::int32_t kvHeads) {
    for (std::int32_t head = 0; head < kvHeads; ++head)
        if (std::ranges::find(kvHeadOfQuery, head) == kvHeadOfQuery.end()) return head;
    return -1;
}

} // namespace kvscope
