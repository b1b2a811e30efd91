#pragma once

#include "core/base/memo.h"
#include "core/engine/attention_map.h"
#include "views/view_data.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace kvscope {

/// The cells around the locked cell. Each is of one query and one key, also where the map pools.
struct MapNeighbourhood {
    TokenIndex query = 0, key = 0; ///< the locked cell
    std::int64_t rowBegin = 0, keyBegin = 0;
    HostTensor cells; ///< [rows, keys]; NaN: masked
    std::int64_t rank = 0,
                 seen = 0; ///< rank of the cell, from 1 (largest), among the `seen` keys that its query sees; 0: masked

    float at(std::int64_t row, std::int64_t ofKey) const {
        return cells.data[(row - rowBegin) * cells.shape[1] + ofKey - keyBegin];
    }
    float value() const { return at(query, key); }
};

/// A part of the attention map of one head, at screen resolution.
struct AttentionMapData : ViewData {
    HostTensor cells; ///< [height, width]; NaN: masked
    HostTensor logs;  ///< [height, width] log10 of weights (-infinity for 0), made with the cells; empty: no weights
    std::pair<double, double> logEnds{-4, 0}; ///< levels at which the colours of the logs end, made with the logs
    HostTensor columnSums;                 ///< [width]; empty where a sum means nothing (logits, cosines, differences)
    std::int64_t rowBegin = 0, rowEnd = 0; ///< query positions
    std::int64_t keyBegin = 0, keyEnd = 0;
    std::int64_t numTokens = 0; ///< of the capture
    TokenIndex firstQuery = 0;  ///< rows before it were not captured
    bool sampled = false;       ///< some rows stand for others; the exact map is being computed or too expensive
    std::int64_t rowsLookedAt = 0;
    bool isWeight = true;                       ///< cells are in 0..1; otherwise they are signed
    bool isDifference = false;                  ///< of two maps of weights
    bool rowsAreKeys = false;                   ///< cosine of keys
    std::shared_ptr<const HostTensor> overview; ///< the whole map, one query per pixel row; null: all of it is shown
    std::string heads;                          ///< "query head 4", "mean of query heads 4-7"
    std::shared_ptr<const MapNeighbourhood> locked; ///< null: no cell is locked, or the locked cell is not in this map
    Memo memo; ///< caches pictures of the cells, which every step of panning needs again

    const char* valueName() const {
        return isWeight ? "weight" : isDifference ? "difference" : rowsAreKeys ? "cosine" : "logit";
    }
};

} // namespace kvscope
