#pragma once

#include "core/engine/attention_map.h"
#include "views/view_data.h"

#include <cstdint>
#include <string>

namespace kvscope {

/// A part of the attention map of one head, at screen resolution.
struct AttentionMapData : ViewData {
    HostTensor cells;                     ///< [height, width]; NaN: masked
    HostTensor columnSums;                ///< [width]; empty where a sum means nothing (logits, cosines, differences)
    std::int64_t rowBegin = 0, rowEnd = 0; ///< query positions
    std::int64_t keyBegin = 0, keyEnd = 0;
    TokenIndex firstQuery = 0;            ///< rows before it were not captured
    bool sampled = false;                 ///< rows stand for others; the exact picture is on its way or too expensive
    std::int64_t rowsLookedAt = 0;
    bool isWeight = true;                 ///< 0..1; otherwise signed
    bool isDifference = false;            ///< of two maps of weights
    bool rowsAreKeys = false;             ///< cosine of keys
    std::string heads;                    ///< "query head 4", "mean of query heads 4-7"
};

} // namespace kvscope
