// Chooses the rows of an attention map that are computed.
#include "gpu/torch/map_rows.h"

#include <algorithm>
#include <limits>

namespace kvscope::gpu {

std::vector<MapRow> mapRowsOf(const AttentionMapInput& input) {
    const std::int64_t rows = input.rowEnd - input.rowBegin;
    std::vector<MapRow> list;
    for (std::int64_t y = 0; y < input.height; ++y) {
        const std::int64_t begin = rows * y / input.height, count = rows * (y + 1) / input.height - begin;
        const std::int64_t taken = input.rowsPerPixel > 0 ? std::min(input.rowsPerPixel, count) : count;
        for (std::int64_t i = 0; i < taken; ++i) list.push_back({y, input.rowBegin + begin + count * i / taken});
    }
    return list;
}

AttentionMap emptyMapFor(const AttentionMapInput& input, std::int64_t rows) {
    AttentionMap map;
    map.rows = rows;
    map.rowLogSumExps = input.rowLogSumExps;
    if (map.rowLogSumExps.empty()) {
        const auto heads = static_cast<std::int64_t>(input.queryHeads.size());
        map.rowLogSumExps.shape = {heads, input.queries.size(1)};
        map.rowLogSumExps.data.assign(static_cast<std::size_t>(map.rowLogSumExps.shape.count()),
                                      std::numeric_limits<float>::quiet_NaN());
    }
    return map;
}

} // namespace kvscope::gpu
