#pragma once

#include "core/base/index.h"
#include "core/engine/attention.h"
#include "core/engine/tensor.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kvscope {

/// Keys that a query sees; Chunks: its own chunk of C tokens (Compactor 3.3). A window W also needs |i - j| < W (0.10).
enum class MapMask { Causal, All, Chunks };

/// The value of a cell.
enum class MapValue {
    Weight, ///< softmax over the keys that the query sees
    Logit   ///< after scaling and softcap
};

/// A rectangle of the attention map of one KV head at screen resolution, never n x n in memory. Cell (j, i) is the
/// value of the query at position j for key i, combined over the given query heads; a pixel shows the largest of its
/// cells, so that no single bright cell is lost (pooled by maximum).
struct AttentionMapInput {
    Tensor queries; ///< [Hq, w, d], query r at position firstQuery + r
    Tensor keys;    ///< [Hkv, n, d], key i at position i
    TokenIndex firstQuery = 0;
    AttentionRule rule;
    std::vector<std::int32_t> queryHeads; ///< at least one; all read one KV head
    GroupRule combine = GroupRule::Mean;
    MapMask mask = MapMask::Causal;
    std::int64_t chunk = 256; ///< C of MapMask::Chunks
    MapValue value = MapValue::Weight;
    /// Positions of queries in [firstQuery, firstQuery + w) and of keys in [0, n): the rectangle.
    std::int64_t rowBegin = 0, rowEnd = 0, keyBegin = 0, keyEnd = 0;
    std::int64_t height = 1, width = 1; ///< pixels; at most one per row and one per key
    std::int64_t rowsPerPixel = 0;      ///< most rows computed per pixel, evenly spaced; 0: all of them (exact)
    /// Log-sum-exp of each row [queryHeads, w], NaN where unknown; empty: none known. A row with known lse reads only
    /// the keys of the rectangle.
    HostTensor rowLogSumExps;
};

/// Begin of piece `index` when `length` rows or keys are cut into `pieces` nearly equal ones.
inline std::int64_t cutAt(std::int64_t length, std::int64_t pieces, std::int64_t index) {
    return length * index / pieces;
}

/// A computed row of a map, and its row of pixels.
struct MapRow {
    std::int64_t pixel, position;
};

/// The computed rows of every row of pixels, in time order.
inline std::vector<MapRow> mapRowsOf(const AttentionMapInput& input) {
    const std::int64_t all = input.rowEnd - input.rowBegin;
    std::vector<MapRow> rows;
    for (std::int64_t y = 0; y < input.height; ++y) {
        const std::int64_t begin = cutAt(all, input.height, y), count = cutAt(all, input.height, y + 1) - begin;
        const std::int64_t taken = input.rowsPerPixel > 0 ? std::min(input.rowsPerPixel, count) : count;
        for (std::int64_t i = 0; i < taken; ++i) rows.push_back({y, input.rowBegin + begin + cutAt(count, taken, i)});
    }
    return rows;
}

struct AttentionMap {
    HostTensor cells;         ///< [height, width]; NaN where no computed query of the pixel sees one of its keys
    HostTensor columnSums;    ///< [width]: sum of the weights of the computed rows, not pooled; 0 for logits
    HostTensor rowLogSumExps; ///< as in the input, completed
    std::int64_t rows = 0;    ///< computed rows
};

} // namespace kvscope
