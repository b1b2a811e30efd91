#pragma once

#include "core/base/memo.h"
#include "core/engine/attention_map.h"
#include "views/view_data.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace kvscope {

/// The cells around the locked one, each of one query and one key, whatever the map pools.
struct MapNeighbourhood {
    TokenIndex query = 0, key = 0; ///< the locked cell
    std::int64_t rowBegin = 0, keyBegin = 0;
    HostTensor cells; ///< [rows, keys]; NaN: masked
    std::int64_t rank = 0,
                 seen = 0; ///< of the cell among the keys that its query sees, largest first, from 1; 0: masked

    float at(std::int64_t row, std::int64_t ofKey) const {
        return cells.data[(row - rowBegin) * cells.shape[1] + ofKey - keyBegin];
    }
    float value() const { return at(query, key); }
};

/// A part of the attention map of one head, at screen resolution.
struct AttentionMapData : ViewData {
    HostTensor cells; ///< [height, width]; NaN: masked
    HostTensor logs;  ///< [height, width] log10 of weights (-infinity of 0), made with them; empty: no weights
    std::pair<double, double> logEnds{-4, 0}; ///< of the colours of the logs, made with them
    HostTensor columnSums;                 ///< [width]; empty where a sum means nothing (logits, cosines, differences)
    std::int64_t rowBegin = 0, rowEnd = 0; ///< query positions
    std::int64_t keyBegin = 0, keyEnd = 0;
    std::int64_t numTokens = 0; ///< of the capture
    TokenIndex firstQuery = 0;  ///< rows before it were not captured
    bool sampled = false;       ///< rows stand for others; the exact picture is on its way or too expensive
    std::int64_t rowsLookedAt = 0;
    bool isWeight = true;                       ///< 0..1; otherwise signed
    bool isDifference = false;                  ///< of two maps of weights
    bool rowsAreKeys = false;                   ///< cosine of keys
    std::shared_ptr<const HostTensor> overview; ///< the whole map, coarse, a row per pixel; null: all of it is shown
    std::string heads;                          ///< "query head 4", "mean of query heads 4-7"
    std::shared_ptr<const MapNeighbourhood> locked; ///< null: no cell is locked, or it is none of this map's
    Memo memo; ///< caches pictures of the cells, which every step of panning needs again

    const char* valueName() const {
        return isWeight ? "weight" : isDifference ? "difference" : rowsAreKeys ? "cosine" : "logit";
    }
};

} // namespace kvscope
