// The neighbourhood of a locked cell: a pixel of a large map covers hundreds of cells, so three small exact maps are
// computed, of the pixel, of its surroundings and of the row.
#include "app/study/makers/map_neighbourhood.h"

#include "views/attention_map/map_cell.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::int64_t kMostAcross = 512; // cells of a rectangle computed one by one

using Draw = std::function<AttentionMap(const AttentionMapInput&)>;

/// A rectangle of the map, one pixel per cell where it is not wider than `most`.
AttentionMapInput part(const AttentionMapInput& map, std::int64_t rowBegin, std::int64_t rowEnd, std::int64_t keyBegin,
                       std::int64_t keyEnd, std::int64_t most) {
    AttentionMapInput input = map;
    input.rowBegin = rowBegin;
    input.rowEnd = rowEnd;
    input.keyBegin = keyBegin;
    input.keyEnd = keyEnd;
    input.height = std::min(most, rowEnd - rowBegin);
    input.width = std::min(most, keyEnd - keyBegin);
    input.rowsPerPixel = 0;
    return input;
}

/// Index of the largest cell; the first one where all are masked.
std::int64_t largest(const HostTensor& cells, bool isDifference) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < std::ssize(cells.data); ++i) {
        const float cell = cells.data[i], top = cells.data[best];
        if (std::isnan(top) ? !std::isnan(cell) : isDifference ? std::abs(cell) > std::abs(top) : cell > top) best = i;
    }
    return best;
}

void goToLargest(const AttentionMapInput& map, MapCell& cell, bool isDifference, const Draw& draw) {
    while (cell.firstQuery < cell.lastQuery || cell.firstKey < cell.lastKey) {
        const std::int64_t rows = cell.lastQuery - cell.firstQuery + 1, keys = cell.lastKey - cell.firstKey + 1;
        const AttentionMap drawn =
            draw(part(map, cell.firstQuery, cell.firstQuery + rows, cell.firstKey, cell.firstKey + keys, kMostAcross));
        const std::int64_t height = drawn.cells.shape[0], width = drawn.cells.shape[1];
        const std::int64_t at = largest(drawn.cells, isDifference), y = at / width, x = at % width;
        cell = {static_cast<TokenIndex>(cell.firstQuery + rows * y / height),
                static_cast<TokenIndex>(cell.firstQuery + rows * (y + 1) / height - 1),
                static_cast<TokenIndex>(cell.firstKey + keys * x / width),
                static_cast<TokenIndex>(cell.firstKey + keys * (x + 1) / width - 1)};
    }
}

void rankInRow(const AttentionMapInput& map, MapNeighbourhood& around, const Draw& draw) {
    const std::int64_t n = map.keys.size(1);
    const AttentionMap row = draw(part(map, around.query, around.query + 1, 0, n, n));
    const float own = row.cells.data[around.key];
    if (std::isnan(own)) return;
    for (std::int64_t key = 0; key < n; ++key) {
        const float cell = row.cells.data[key];
        around.seen += !std::isnan(cell);
        around.rank += cell > own || (cell == own && key <= around.key); // includes the cell itself: ranks count from 1
    }
}

} // namespace

std::shared_ptr<const MapNeighbourhood> neighbourhoodOf(const AttentionMapInput& map, const ParameterValues& options,
                                                        const Draw& draw) {
    std::optional<MapCell> cell = MapCell::parse(options.text("cell"));
    const std::int64_t n = map.keys.size(1), firstRow = map.firstQuery, endRow = firstRow + map.queries.size(1);
    if (!cell || cell->firstQuery < firstRow || cell->lastQuery >= endRow || cell->lastKey >= n) return nullptr;
    goToLargest(map, *cell, options.choice("minus") != "nothing", draw);
    auto around = std::make_shared<MapNeighbourhood>();
    around->query = cell->firstQuery;
    around->key = cell->firstKey;
    const std::int64_t side = options.integer("around"), rows = std::min(side, endRow - firstRow),
                       keys = std::min(side, n);
    around->rowBegin = std::clamp<std::int64_t>(around->query - side / 2, firstRow, endRow - rows);
    around->keyBegin = std::clamp<std::int64_t>(around->key - side / 2, 0, n - keys);
    around->cells =
        draw(part(map, around->rowBegin, around->rowBegin + rows, around->keyBegin, around->keyBegin + keys, side))
            .cells;
    rankInRow(map, *around, draw);
    return around;
}

} // namespace kvscope
