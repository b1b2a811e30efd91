#pragma once

#include "core/engine/attention_map.h"

#include <algorithm>
#include <cstdint>

namespace kvscope {

/// Keys [begin, end) of an attention map; empty where end <= begin.
struct KeySpan {
    std::int64_t begin, end;
    std::int64_t count() const { return std::max<std::int64_t>(0, end - begin); }
    KeySpan and_(KeySpan other) const { return {std::max(begin, other.begin), std::min(end, other.end)}; }
};

/// The keys that the query at position `row` sees, by mask and sliding window.
inline KeySpan keysSeenBy(const AttentionMapInput& input, std::int64_t row) {
    const std::int64_t n = input.keys.size(1), window = input.rule.slidingWindow;
    const KeySpan near = window > 0 ? KeySpan{row - window + 1, row + window} : KeySpan{0, n};
    KeySpan seen{0, n};
    if (input.mask == MapMask::Causal)
        seen.end = row + 1;
    else if (input.mask == MapMask::Chunks)
        seen = {row / input.chunk * input.chunk, (row / input.chunk + 1) * input.chunk};
    return seen.and_(near).and_({0, n});
}

} // namespace kvscope
