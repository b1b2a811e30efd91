// The oracle of the attention map: the whole matrix of every head, then the pooling, as the definitions say.
#include "tests/support/naive/naive_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope::naive {

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

bool sees(const Map& map, std::int64_t query, std::int64_t key) {
    const AttentionMapInput& in = map.input;
    if (in.rule.slidingWindow > 0 && std::abs(query - key) >= in.rule.slidingWindow) return false;
    switch (in.mask) {
    case MapMask::All: return true;
    case MapMask::Chunks: return query / in.chunk == key / in.chunk;
    case MapMask::Causal: break;
    }
    return key <= query;
}

/// Logits of one row over all keys, kHidden where masked.
Numbers rowOf(const Map& map, std::int64_t head, std::int64_t position) {
    const AttentionMapInput& in = map.input;
    const std::int64_t kv = in.rule.gqaGroupOf[std::size_t(head)];
    Numbers logits;
    for (std::int64_t key = 0; key < map.keys.rows; ++key) {
        double product = 0;
        for (std::int64_t c = 0; c < map.keys.width; ++c)
            product += map.queries.at(head, position - in.firstQuery, c) * map.keys.at(kv, key, c);
        const double x = in.rule.scaling * product;
        const double logit = in.rule.softcap > 0 ? in.rule.softcap * std::tanh(x / in.rule.softcap) : x;
        logits.push_back(sees(map, position, key) ? logit : kHidden);
    }
    return logits;
}

/// Of a row of `head`, its attention sink included.
double logSumExp(Numbers logits, const AttentionRule& rule, std::int64_t head) {
    if (!rule.sinks.empty()) logits.push_back(double{rule.sinks[std::size_t(head)]});
    const double top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double x : logits) sum += std::exp(x - top);
    return top + std::log(sum);
}

/// Cells of a row combined over the heads; kHidden where masked.
Numbers cellsOf(const Map& map, std::int64_t position) {
    const AttentionMapInput& in = map.input;
    Numbers cells(std::size_t(map.keys.rows), in.combine == GroupRule::Max ? kHidden : 0.0);
    for (const std::int32_t head : in.queryHeads) {
        const Numbers logits = rowOf(map, head, position);
        const double sum = logSumExp(logits, in.rule, head);
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const double cell = in.value == MapValue::Logit ? logits[i] : std::exp(logits[i] - sum);
            cells[i] = in.combine == GroupRule::Max ? std::max(cells[i], cell) : cells[i] + cell;
        }
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (in.combine == GroupRule::Mean) cells[i] /= double(in.queryHeads.size());
        if (!sees(map, position, std::int64_t(i))) cells[i] = kHidden;
    }
    return cells;
}

/// Rows that stand for pixel row y: all of them, or some at even distances.
std::vector<std::int64_t> rowsOf(const AttentionMapInput& in, std::int64_t y) {
    const std::int64_t rows = in.rowEnd - in.rowBegin;
    const std::int64_t begin = in.rowBegin + rows * y / in.height, end = in.rowBegin + rows * (y + 1) / in.height;
    const std::int64_t count = end - begin, taken = in.rowsPerPixel == 0 ? count : std::min(count, in.rowsPerPixel);
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < taken; ++i) positions.push_back(begin + count * i / taken);
    return positions;
}

} // namespace

Numbers attentionMap(const Map& map) {
    const AttentionMapInput& in = map.input;
    const std::int64_t keys = in.keyEnd - in.keyBegin;
    Numbers cells(std::size_t(in.height * in.width), kHidden), columns(std::size_t(in.width), 0.0);
    Numbers sums(in.queryHeads.size() * std::size_t(map.queries.rows), 0.0);
    for (std::int64_t y = 0; y < in.height; ++y)
        for (const std::int64_t position : rowsOf(in, y)) {
            const Numbers row = cellsOf(map, position);
            for (std::int64_t x = 0; x < in.width; ++x)
                for (std::int64_t i = in.keyBegin + keys * x / in.width; i < in.keyBegin + keys * (x + 1) / in.width;
                     ++i) {
                    double& pixel = cells[std::size_t(y * in.width + x)];
                    pixel = std::max(pixel, row[std::size_t(i)]);
                    if (in.value == MapValue::Weight && row[std::size_t(i)] != kHidden)
                        columns[std::size_t(x)] += row[std::size_t(i)];
                }
            for (std::size_t h = 0; h < in.queryHeads.size() && in.value == MapValue::Weight; ++h)
                sums[h * std::size_t(map.queries.rows) + std::size_t(position - in.firstQuery)] =
                    logSumExp(rowOf(map, in.queryHeads[h], position), in.rule, in.queryHeads[h]);
        }
    for (double& cell : cells) cell = cell == kHidden ? -1 : cell;
    cells.insert(cells.end(), columns.begin(), columns.end());
    cells.insert(cells.end(), sums.begin(), sums.end());
    return cells;
}

} // namespace kvscope::naive
