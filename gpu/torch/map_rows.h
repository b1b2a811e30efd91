#pragma once

#include "core/engine/attention_map.h"

#include <vector>

namespace kvscope::gpu {

/// A computed row of the map.
struct MapRow {
    std::int64_t pixel, position;
};

/// The rows computed for the pixel rows, in order: all rows, or evenly spaced ones.
std::vector<MapRow> mapRowsOf(const AttentionMapInput& input);
/// The map before its cells are computed: number of computed rows, and the known row sums.
AttentionMap emptyMapFor(const AttentionMapInput& input, std::int64_t rows);

} // namespace kvscope::gpu
