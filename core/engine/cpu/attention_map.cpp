// The attention map at screen resolution: logits of a few rows at a time over all the keys that they see, softmax, and
// the largest cell of every pixel. Nothing of size n x n ever exists.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/fast_logit_block.h"
#include "core/engine/map_keys.h"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace kvscope::cpu {

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The larger of two cells, either of which may be masked.
float larger(float a, float b) {
    return std::isnan(a) || b > a ? b : a;
}

/// Begin of piece `index` when `length` rows or keys are cut into `pieces` nearly equal ones.
std::int64_t cutAt(std::int64_t length, std::int64_t pieces, std::int64_t index) {
    return length * index / pieces;
}

/// One row of the map that is looked at.
struct MapRow {
    std::int64_t pixel, position;
};

/// Rows and columns of a map, and what each row sees.
class MapGeometry {
public:
    explicit MapGeometry(const AttentionMapInput& input) : m_input(input) {}

    /// The rows that stand for each pixel row, in order of time.
    std::vector<MapRow> rows() const {
        const std::int64_t all = m_input.rowEnd - m_input.rowBegin;
        std::vector<MapRow> rows;
        for (std::int64_t y = 0; y < m_input.height; ++y) {
            const std::int64_t begin = cutAt(all, m_input.height, y), count = cutAt(all, m_input.height, y + 1) - begin;
            const std::int64_t taken = m_input.rowsPerPixel > 0 ? std::min(m_input.rowsPerPixel, count) : count;
            for (std::int64_t i = 0; i < taken; ++i)
                rows.push_back({y, m_input.rowBegin + begin + cutAt(count, taken, i)});
        }
        return rows;
    }

    std::int64_t pixelOfKey(std::int64_t key) const {
        // The inverse of cutAt: the last x with cutAt(keys, width, x) <= offset.
        const std::int64_t keys = m_input.keyEnd - m_input.keyBegin, offset = key - m_input.keyBegin;
        return ((offset + 1) * m_input.width - 1) / keys;
    }

    std::int64_t endOfPixel(std::int64_t x) const {
        return m_input.keyBegin + cutAt(m_input.keyEnd - m_input.keyBegin, m_input.width, x + 1);
    }

    KeySpan seenBy(std::int64_t row) const { return keysSeenBy(m_input, row); }

    KeySpan window() const { return {m_input.keyBegin, m_input.keyEnd}; }

private:
    const AttentionMapInput& m_input;
};

using MapRows = std::span<const MapRow>;

/// Neighbouring rows, the work of one thread, and what they give. Two bands may share a pixel row.
struct Band {
    MapRows rows;
    std::vector<float> cells;       ///< [pixel rows, width] from that of the first row on
    std::vector<double> columnSums; ///< [width]
};

/// Bands of several full blocks of lanes each, and enough of them for many threads.
std::vector<Band> bandsOf(const AttentionMapInput& input, MapRows rows) {
    constexpr std::size_t kMostBlocks = 8, kBands = 64;
    const std::size_t perBlock = std::max<std::size_t>(1, kMaxLanes / input.queryHeads.size());
    const std::size_t perBand = perBlock * std::clamp<std::size_t>(rows.size() / (perBlock * kBands), 1, kMostBlocks);
    std::vector<Band> bands;
    for (std::size_t begin = 0; begin < rows.size(); begin += perBand)
        bands.push_back({rows.subspan(begin, std::min(perBand, rows.size() - begin)), {}, {}});
    return bands;
}

class MapBands {
public:
    MapBands(const Kernels& kernels, const AttentionMapInput& input, bool fast, AttentionMap& map, Progress& progress)
        : m_kernels(kernels), m_input(input), m_fast(fast), m_geometry(input), m_map(map), m_progress(progress) {
        if (input.mask == MapMask::Causal)
            return;
        m_reach = m_rule.slidingWindow; // before and after the query
        m_rule.slidingWindow = 0;
    }

    void compute(Band& band, LogitScratch& scratch) const {
        const MapRows rows = band.rows;
        const std::int64_t pixelRows = rows.back().pixel - rows.front().pixel + 1;
        band.cells.assign(static_cast<std::size_t>(pixelRows * m_input.width), kNaN);
        band.columnSums.assign(static_cast<std::size_t>(m_input.width), 0.0);
        const auto most = std::max<std::size_t>(1, kMaxLanes / m_input.queryHeads.size());
        for (std::size_t begin = 0; begin < rows.size();) {
            std::size_t end = begin + 1;
            while (end < rows.size() && end - begin < most && sameKeys(rows[begin], rows[end]))
                ++end;
            block(rows.subspan(begin, end - begin), scratch, band);
            begin = end;
        }
    }

private:
    /// Rows of different chunks see different keys and cannot share a block.
    bool sameKeys(const MapRow& a, const MapRow& b) const {
        return m_input.mask != MapMask::Chunks || a.position / m_input.chunk == b.position / m_input.chunk;
    }

    float& logSum(std::size_t head, std::int64_t position) const {
        const std::int64_t w = m_input.queries.size(1);
        return m_map.rowLogSums
            .data[head * static_cast<std::size_t>(w) + static_cast<std::size_t>(position - m_input.firstQuery)];
    }

    bool allKnown(MapRows rows) const {
        if (m_input.value == MapValue::Logit)
            return true; // no sum is needed
        for (const MapRow& row : rows)
            for (std::size_t head = 0; head < m_input.queryHeads.size(); ++head)
                if (std::isnan(logSum(head, row.position)))
                    return false;
        return true;
    }

    void block(MapRows rows, LogitScratch& scratch, Band& band) const {
        const std::int64_t d = m_input.queries.size(2), n = m_input.keys.size(1);
        std::vector<QueryLane> lanes; // row after row, the heads of a row side by side
        for (const MapRow& row : rows)
            for (const std::int32_t head : m_input.queryHeads)
                lanes.push_back({viewOf(m_input.queries).head(head) + (row.position - m_input.firstQuery) * d,
                                 m_input.mask == MapMask::Causal || m_reach > 0 ? row.position : n});
        KeySpan keys{m_geometry.seenBy(rows.front().position).begin, m_geometry.seenBy(rows.back().position).end};
        const bool known = allKnown(rows);
        if (known)
            keys = keys.and_(m_geometry.window());
        if (keys.count() == 0)
            return;
        if (FastLogitBlock::pays(m_fast, lanes.size()))
            draw(FastLogitBlock(m_kernels, m_rule, lanes, d, scratch, keys.count()), rows, keys, known, band);
        else
            draw(LogitBlock(m_kernels, m_rule, lanes, d, scratch, keys.count()), rows, keys, known, band);
    }

    template <class Block>
    void draw(Block&& logits, MapRows rows, KeySpan keys, bool known, Band& band) const {
        const std::int32_t kvHead = m_input.rule.kvOfQ[static_cast<std::size_t>(m_input.queryHeads.front())];
        logits.append({.rows = viewOf(m_input.keys).head(kvHead),
                       .first = keys.begin,
                       .count = keys.count(),
                       .reach = m_reach,
                       .padding = m_input.keys.size(1)},
                      m_progress);
        const std::vector<double> factors = m_input.value == MapValue::Weight
                                                ? shares(logits, rows, known)
                                                : std::vector<double>(rows.size() * m_input.queryHeads.size(), 1);
        const KeySpan shown = keys.and_(m_geometry.window());
        for (std::int64_t key = shown.begin; key < shown.end;) {
            const std::int64_t x = m_geometry.pixelOfKey(key), end = std::min(shown.end, m_geometry.endOfPixel(x));
            pool(logits, rows, factors, {key, end}, keys.begin, x, band);
            band.columnSums[static_cast<std::size_t>(x)] += sumOf(logits, rows, factors, {key, end}, keys.begin);
            key = end;
        }
    }

    /// Makes exponentials of the logits; what each lane's must be multiplied with to be softmax weights.
    template <class Block> std::vector<double> shares(Block& logits, MapRows rows, bool known) const {
        const std::size_t heads = m_input.queryHeads.size();
        const auto& totals = logits.exponentiate();
        std::vector<double> factors;
        for (std::size_t r = 0; r < rows.size(); ++r)
            for (std::size_t head = 0; head < heads; ++head) {
                const std::size_t lane = r * heads + head;
                float& sum = logSum(head, rows[r].position);
                if (!known && totals[lane] > 0)
                    sum = static_cast<float>(std::log(totals[lane]) + logits.top(lane));
                const bool nothing = totals[lane] <= 0;
                factors.push_back(nothing ? 0 : known ? std::exp(logits.top(lane) - double{sum}) : 1 / totals[lane]);
            }
        return factors;
    }

    /// The largest cell of every row among some keys of pixel column x.
    template <class Block>
    void pool(const Block& logits, MapRows rows, const std::vector<double>& factors, KeySpan keys,
              std::int64_t firstKey, std::int64_t x, Band& band) const {
        std::array<double, kMaxLanes> best;
        best.fill(-std::numeric_limits<double>::infinity());
        const std::size_t heads = m_input.queryHeads.size();
        const auto* terms = logits.values() + (keys.begin - firstKey) * logits.lanes();
        if (heads == 1) // a factor is positive: it may wait until the largest is found
            logits.raise(keys.begin - firstKey, keys.count(), best.data());
        for (std::int64_t key = 0; key < keys.count() && heads > 1; ++key)
            for (std::size_t r = 0; r < rows.size(); ++r)
                best[r] = std::max(best[r], combined(terms + key * logits.lanes(), factors, r * heads));
        for (std::size_t r = 0; r < rows.size(); ++r) {
            if (m_geometry.seenBy(rows[r].position).and_(keys).count() == 0)
                continue; // masked, which is not the same as a weight of 0
            const auto cell = static_cast<float>(heads == 1 ? best[r] * factors[r] : best[r]);
            const std::int64_t y = rows[r].pixel - band.rows.front().pixel;
            float& pixel = band.cells[static_cast<std::size_t>(y * m_input.width + x)];
            pixel = larger(pixel, cell);
        }
    }

    /// The cell of one key and one row: its heads lie side by side from `lane` on.
    template <class Real> double combined(const Real* term, const std::vector<double>& factors, std::size_t lane) const {
        double cell = term[lane] * factors[lane];
        for (std::size_t head = 1; head < m_input.queryHeads.size(); ++head) {
            const double other = term[lane + head] * factors[lane + head];
            cell = m_input.combine == GroupRule::Max ? std::max(cell, other) : cell + other;
        }
        return m_input.combine == GroupRule::Mean ? cell / static_cast<double>(m_input.queryHeads.size()) : cell;
    }

    /// Sum of the weights of all rows among some keys; masked ones are 0. Logits have no such sum.
    template <class Block>
    double sumOf(const Block& logits, MapRows rows, const std::vector<double>& factors, KeySpan keys,
                 std::int64_t firstKey) const {
        if (m_input.value == MapValue::Logit)
            return 0;
        const auto* terms = logits.values() + (keys.begin - firstKey) * logits.lanes();
        const std::size_t heads = m_input.queryHeads.size();
        double sum = 0;
        if (heads == 1) {
            std::vector<double> sums(static_cast<std::size_t>(keys.count()));
            logits.addAcrossLanes(keys.begin - firstKey, keys.count(), factors.data(), 0,
                                  static_cast<std::int64_t>(rows.size()), sums.data());
            return std::accumulate(sums.begin(), sums.end(), sum);
        }
        for (std::int64_t key = 0; key < keys.count(); ++key)
            for (std::size_t r = 0; r < rows.size(); ++r)
                sum += combined(terms + key * logits.lanes(), factors, r * heads);
        return sum;
    }

    const Kernels& m_kernels;
    const AttentionMapInput& m_input;
    bool m_fast;
    AttentionRule m_rule = m_input.rule;
    std::int64_t m_reach = 0; ///< window of a mask that is not causal; 0: none
    MapGeometry m_geometry;
    AttentionMap& m_map;
    Progress& m_progress;
};

/// In the order of the bands, whoever computed them.
void collect(const std::vector<Band>& bands, AttentionMap& map) {
    std::vector<double> sums(static_cast<std::size_t>(map.cells.shape[1]));
    for (const Band& band : bands) {
        float* cells = map.cells.data.data() + band.rows.front().pixel * map.cells.shape[1];
        std::transform(band.cells.begin(), band.cells.end(), cells, cells, larger);
        std::transform(sums.begin(), sums.end(), band.columnSums.begin(), sums.begin(), std::plus{});
    }
    map.columnSums = {{map.cells.shape[1]}, {sums.begin(), sums.end()}};
}

void check(const AttentionMapInput& input) {
    assert(!input.queryHeads.empty() && std::cmp_less_equal(input.queryHeads.size(), kMaxLanes));
    assert(input.rowBegin >= input.firstQuery && input.rowBegin < input.rowEnd &&
           input.rowEnd <= input.firstQuery + input.queries.size(1));
    assert(input.keyBegin >= 0 && input.keyBegin < input.keyEnd && input.keyEnd <= input.keys.size(1));
    assert(input.height >= 1 && input.height <= input.rowEnd - input.rowBegin);
    assert(input.width >= 1 && input.width <= input.keyEnd - input.keyBegin && input.chunk >= 1);
    (void)input;
}

} // namespace

AttentionMap CpuEngine::attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const {
    check(input);
    const auto heads = static_cast<std::int64_t>(input.queryHeads.size());
    AttentionMap map;
    map.cells = {{input.height, input.width}, {}};
    map.cells.data.assign(static_cast<std::size_t>(map.cells.shape.count()), kNaN);
    map.rowLogSums = input.rowLogSums;
    if (map.rowLogSums.empty())
        map.rowLogSums = {{heads, input.queries.size(1)},
                          std::vector<float>(static_cast<std::size_t>(heads * input.queries.size(1)), kNaN)};
    const MapGeometry geometry(input);
    const std::vector<MapRow> rows = geometry.rows();
    map.rows = static_cast<std::int64_t>(rows.size());
    double logits = 0;
    for (const MapRow& row : rows)
        logits += static_cast<double>(heads * geometry.seenBy(row.position).count());
    Progress progress(checkpoint, logits);
    const MapBands work(m_kernels, input, m_arithmetic == Arithmetic::Fast, map, progress);
    std::vector<Band> bands = bandsOf(input, rows);
    tbb::enumerable_thread_specific<LogitScratch> scratch;
    m_workers.each(static_cast<std::int64_t>(bands.size()),
                   [&](std::int64_t piece) { work.compute(bands[static_cast<std::size_t>(piece)], scratch.local()); });
    collect(bands, map);
    return map;
}

} // namespace kvscope::cpu
