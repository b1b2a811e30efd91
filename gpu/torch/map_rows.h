#pragma once

#include "core/engine/attention_map.h"

#include <vector>

namespace kvscope::gpu {

/// One row of the map that is looked at.
struct MapRow {
    std::int64_t pixel, position;
};

/// Rows that stand for the pixel rows, in order: all of them or evenly spaced ones.
std::vector<MapRow> mapRowsOf(const AttentionMapInput& input);
/// The map before anything is drawn: how many rows are looked at, and the row sums that are known.
AttentionMap emptyMapFor(const AttentionMapInput& input, std::int64_t rows);

} // namespace kvscope::gpu
