// The attention map at screen resolution: logits of a few rows at a time over the keys they see, softmax, and the
// maximum of every pixel. Nothing of size n x n is stored.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/fast_logit_block.h"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>

namespace kvscope::cpu {

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The larger of two cells, either of which may be masked.
float larger(float a, float b) { return std::isnan(a) || b > a ? b : a; }

/// Keys [begin, end) of an attention map; empty where end <= begin.
struct KeySpan {
    std::int64_t begin, end;
    std::int64_t count() const { return std::max<std::int64_t>(0, end - begin); }
    KeySpan and_(KeySpan other) const { return {std::max(begin, other.begin), std::min(end, other.end)}; }
};

/// The keys that the query at position `row` sees, by mask and sliding window.
KeySpan keysSeenBy(const AttentionMapInput& input, std::int64_t row) {
    const std::int64_t n = input.keys.size(1), window = input.rule.slidingWindow;
    const KeySpan near = window > 0 ? KeySpan{row - window + 1, row + window} : KeySpan{0, n};
    KeySpan seen{0, n};
    if (input.mask == MapMask::Causal)
        seen.end = row + 1;
    else if (input.mask == MapMask::Chunks)
        seen = {row / input.chunk * input.chunk, (row / input.chunk + 1) * input.chunk};
    return seen.and_(near).and_({0, n});
}

/// Columns of a map, and the keys that each row sees.
class MapGeometry {
public:
    explicit MapGeometry(const AttentionMapInput& input) : m_input(input) {}

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

/// Neighbouring rows computed by one thread, with their results. Two bands may share a pixel row.
struct Band {
    MapRows rows;
    std::vector<float> cells;       ///< [pixel rows, width] from the first row's pixel row on
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

/// Rows computed together, the keys to compute, and the keys that are shown.
struct Look {
    MapRows rows;
    KeySpan keys, shown;
    bool known; ///< the lse of all rows is known
};

/// Some of the input's query heads.
struct Heads {
    std::size_t first, count;
};

class MapBands {
public:
    /// `most`: how many blocks of rows of one head share widened keys.
    MapBands(const Kernels& kernels, const AttentionMapInput& input, bool fast, std::size_t most, AttentionMap& map,
             Progress& progress)
        : m_kernels(kernels), m_input(input), m_fast(fast), m_most(fast || heads() > 1 ? 1 : most), m_geometry(input),
          m_map(map), m_progress(progress) {
        if (input.mask == MapMask::Causal) return;
        m_reach = m_rule.slidingWindow; // before and after the query
        m_rule.slidingWindow = 0;
    }

    void compute(Band& band, BlockScratch& scratch) const {
        const MapRows rows = band.rows;
        const std::int64_t pixelRows = rows.back().pixel - rows.front().pixel + 1;
        band.cells.assign(static_cast<std::size_t>(pixelRows * m_input.width), kNaN);
        band.columnSums.assign(static_cast<std::size_t>(m_input.width), 0.0);
        const auto most = std::max<std::size_t>(1, kMaxLanes / m_input.queryHeads.size());
        std::vector<Look> looks; // at keys that begin at the same token
        for (std::size_t begin = 0; begin < rows.size();) {
            std::size_t end = begin + 1;
            while (end < rows.size() && end - begin < most && sameKeys(rows[begin], rows[end])) ++end;
            const Look look = lookAt(rows.subspan(begin, end - begin));
            begin = end;
            if (look.keys.count() == 0) continue;
            if (looks.size() == m_most || (!looks.empty() && looks.front().keys.begin != look.keys.begin)) {
                draw(looks, scratch, band);
                looks.clear();
            }
            looks.push_back(look);
        }
        if (!looks.empty()) draw(looks, scratch, band);
    }

private:
    /// Rows of different chunks see different keys and cannot share a block.
    bool sameKeys(const MapRow& a, const MapRow& b) const {
        return m_input.mask != MapMask::Chunks || a.position / m_input.chunk == b.position / m_input.chunk;
    }

    float& logSumExp(std::size_t head, std::int64_t position) const {
        const std::int64_t w = m_input.queries.size(1);
        return m_map.rowLogSumExps
            .data[head * static_cast<std::size_t>(w) + static_cast<std::size_t>(position - m_input.firstQuery)];
    }

    bool allKnown(MapRows rows) const {
        if (m_input.value == MapValue::Logit) return true; // no sum is needed
        for (const MapRow& row : rows)
            for (std::size_t head = 0; head < heads(); ++head)
                if (std::isnan(logSumExp(head, row.position))) return false;
        return true;
    }

    Look lookAt(MapRows rows) const {
        KeySpan keys{m_geometry.seenBy(rows.front().position).begin, m_geometry.seenBy(rows.back().position).end};
        const bool known = allKnown(rows);
        if (known) keys = keys.and_(m_geometry.window());
        return {rows, keys, keys.and_(m_geometry.window()), known};
    }

    /// Several looks only where there is one head.
    void draw(std::span<const Look> looks, BlockScratch& scratch, Band& band) const {
        if (heads() > 1) return drawHeads(looks.front(), scratch, band);
        withLogits(looks, {0, 1}, scratch, [&](const Look& look, const auto& logits, const auto& factors) {
            drawHead(logits, factors, look, band);
        });
    }

    /// Calls work(look, logits or exponentials, factors) for each look: lanes row by row, with the heads of a row side
    /// by side. The looks share keys that are widened once.
    template <class Work>
    void withLogits(std::span<const Look> looks, Heads part, BlockScratch& scratch, const Work& work) const {
        const std::int64_t d = m_input.queries.size(2);
        const auto finish = [&](const Look& look, auto& logits) {
            work(look, logits,
                 m_input.value == MapValue::Weight ? softmaxFactors(logits, look, part)
                                                   : std::vector<double>(look.rows.size() * part.count, 1));
        };
        std::vector<LogitBlock> blocks;
        KeySpan keys = looks.front().keys;
        for (const Look& look : looks) keys.end = std::max(keys.end, look.keys.end);
        for (std::size_t i = 0; i < looks.size(); ++i) {
            std::vector<HeadRows> queries;
            const std::vector<QueryLane> lanes = lanesOf(looks[i], part, queries);
            if (FastLogitBlock::pays(m_fast, lanes.size())) {
                assert(looks.size() == 1);
                FastLogitBlock logits(m_kernels, m_rule, lanes, d, scratch[i], keys.count());
                logits.append(termsOf(keys), m_progress);
                return finish(looks[i], logits);
            }
            blocks.emplace_back(m_kernels, m_rule, lanes, d, scratch[i], keys.count());
        }
        LogitBlock::append(blocks, termsOf(keys), m_progress);
        for (std::size_t i = 0; i < looks.size(); ++i) finish(looks[i], blocks[i]);
    }

    KeyTerms termsOf(KeySpan keys) const {
        return {.rows = m_keys.data(),
                .first = keys.begin,
                .count = keys.count(),
                .reach = m_reach,
                .padding = m_input.keys.size(1)};
    }

    std::vector<QueryLane> lanesOf(const Look& look, Heads part, std::vector<HeadRows>& queries) const {
        std::vector<QueryLane> lanes;
        for (const MapRow& row : look.rows)
            for (std::size_t head = part.first; head < part.first + part.count; ++head) {
                const std::int64_t query = row.position - m_input.firstQuery;
                queries.emplace_back(m_input.queries, m_input.queryHeads[head], query, query + 1);
                lanes.push_back({queries.back().data(),
                                 m_input.mask == MapMask::Causal || m_reach > 0 ? row.position : m_input.keys.size(1),
                                 m_rule.sinkOf(m_input.queryHeads[head])});
            }
        return lanes;
    }

    /// Turns logits into exponentials; returns each lane's factor to softmax weights.
    template <class Block> std::vector<double> softmaxFactors(Block& logits, const Look& look, Heads part) const {
        const auto& rowSums = logits.exponentiate();
        std::vector<double> factors;
        for (const MapRow& row : look.rows)
            for (std::size_t head = part.first; head < part.first + part.count; ++head) {
                const std::size_t lane = factors.size();
                float& sum = logSumExp(head, row.position);
                if (!look.known && rowSums[lane] > 0)
                    sum = static_cast<float>(std::log(rowSums[lane]) + logits.rowMax(lane));
                const bool nothing = rowSums[lane] <= 0;
                factors.push_back(nothing      ? 0
                                  : look.known ? std::exp(logits.rowMax(lane) - double{sum})
                                               : 1 / rowSums[lane]);
            }
        return factors;
    }

    /// Calls work(x, keys) for the shown keys of each pixel column.
    template <class Work> void eachPixel(const Look& look, const Work& work) const {
        for (std::int64_t key = look.shown.begin; key < look.shown.end;) {
            const std::int64_t x = m_geometry.pixelOfKey(key), end = std::min(look.shown.end, m_geometry.endOfPixel(x));
            work(x, KeySpan{key, end});
            key = end;
        }
    }

    /// One head: factors are positive, so they are applied after the maximum of a pixel.
    template <class Block>
    void drawHead(const Block& logits, const std::vector<double>& factors, const Look& look, Band& band) const {
        std::vector<double> sums;
        eachPixel(look, [&](std::int64_t x, KeySpan keys) {
            std::array<double, kMaxLanes> best;
            best.fill(-std::numeric_limits<double>::infinity());
            const std::int64_t first = keys.begin - look.keys.begin;
            logits.updateMax(first, keys.count(), best.data());
            for (std::size_t r = 0; r < look.rows.size(); ++r) raise(look.rows[r], keys, x, best[r] * factors[r], band);
            sums.assign(static_cast<std::size_t>(keys.count()), 0.0);
            logits.addAcrossLanes(first, keys.count(), factors.data(), 0, std::ssize(look.rows), sums.data());
            add(std::accumulate(sums.begin(), sums.end(), 0.0), x, band);
        });
    }

    /// Several heads, a block of lanes at a time: combined cells, then the maximum of each pixel.
    void drawHeads(const Look& look, BlockScratch& scratch, Band& band) const {
        const double start = m_input.combine == GroupRule::Max ? -std::numeric_limits<double>::infinity() : 0;
        std::vector<double> cells(look.rows.size() * static_cast<std::size_t>(look.shown.count()), start);
        for (std::size_t first = 0; first < heads(); first += kMaxLanes) {
            const Heads part{first, std::min<std::size_t>(kMaxLanes, heads() - first)};
            withLogits({&look, 1}, part, scratch, [&](const Look&, const auto& logits, const auto& factors) {
                combine(logits, factors, look, part, cells);
            });
        }
        const double scale = m_input.combine == GroupRule::Mean ? 1 / static_cast<double>(heads()) : 1;
        eachPixel(look, [&](std::int64_t x, KeySpan keys) {
            double sum = 0;
            for (std::size_t r = 0; r < look.rows.size(); ++r) {
                const double* of = cells.data() + r * static_cast<std::size_t>(look.shown.count());
                const double *begin = of + (keys.begin - look.shown.begin), *end = begin + keys.count();
                raise(look.rows[r], keys, x, *std::max_element(begin, end) * scale, band);
                sum = std::accumulate(begin, end, sum);
            }
            add(sum * scale, x, band);
        });
    }

    /// Adds some heads to cells [rows, shown keys].
    template <class Block>
    void combine(const Block& logits, const std::vector<double>& factors, const Look& look, Heads part,
                 std::vector<double>& cells) const {
        auto cell = cells.begin();
        for (std::size_t lane = 0; lane < factors.size(); lane += part.count)
            for (std::int64_t key = look.shown.begin; key < look.shown.end; ++key, ++cell) {
                const auto* term = logits.values() + (key - look.keys.begin) * logits.lanes();
                for (std::size_t head = lane; head < lane + part.count; ++head) {
                    const double one = term[head] * factors[head];
                    *cell = m_input.combine == GroupRule::Max ? std::max(*cell, one) : *cell + one;
                }
            }
    }

    /// Updates the pixel of a row in column x by the maximum of its cells; stays masked where the row sees none of the
    /// keys, which differs from a weight of 0.
    void raise(const MapRow& row, KeySpan keys, std::int64_t x, double cell, Band& band) const {
        if (m_geometry.seenBy(row.position).and_(keys).count() == 0) return;
        const std::int64_t y = row.pixel - band.rows.front().pixel;
        float& pixel = band.cells[y * m_input.width + x];
        pixel = larger(pixel, static_cast<float>(cell));
    }

    /// Adds to the sum of a pixel column; logits have none.
    void add(double sum, std::int64_t x, Band& band) const {
        if (m_input.value == MapValue::Weight) band.columnSums[x] += sum;
    }

    std::size_t heads() const { return m_input.queryHeads.size(); }

    const Kernels& m_kernels;
    const AttentionMapInput& m_input;
    bool m_fast;
    std::size_t m_most;
    AttentionRule m_rule = m_input.rule;
    HeadRows m_keys{m_input.keys, m_rule.gqaGroupOf[m_input.queryHeads.front()]};
    std::int64_t m_reach = 0; ///< window of a non-causal mask; 0: none
    MapGeometry m_geometry;
    AttentionMap& m_map;
    Progress& m_progress;
};

/// Collects the bands in order, so that the result does not depend on threads.
void collect(const std::vector<Band>& bands, AttentionMap& map) {
    std::vector<double> sums(static_cast<std::size_t>(map.cells.shape[1]));
    for (const Band& band : bands) {
        float* cells = map.cells.data.data() + band.rows.front().pixel * map.cells.shape[1];
        std::transform(band.cells.begin(), band.cells.end(), cells, cells, larger);
        std::ranges::transform(sums, band.columnSums, sums.begin(), std::plus{});
    }
    map.columnSums = {{map.cells.shape[1]}, {sums.begin(), sums.end()}};
}

void check(const AttentionMapInput& input) {
    assert(!input.queryHeads.empty());
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
    map.cells = HostTensor::filled({input.height, input.width}, kNaN);
    map.rowLogSumExps = input.rowLogSumExps;
    if (map.rowLogSumExps.empty()) map.rowLogSumExps = HostTensor::filled({heads, input.queries.size(1)}, kNaN);
    const MapGeometry geometry(input);
    const std::vector<MapRow> rows = mapRowsOf(input);
    map.rows = static_cast<std::int64_t>(rows.size());
    double logits = 0;
    for (const MapRow& row : rows) logits += static_cast<double>(heads * geometry.seenBy(row.position).count());
    Progress progress(checkpoint, logits);
    const std::size_t most = blocksAtOnce(map.rows / kMaxLanes, input.keys.size(1), m_workers.threads());
    const MapBands work(m_kernels, input, m_arithmetic == Arithmetic::Fast, most, map, progress);
    std::vector<Band> bands = bandsOf(input, rows);
    tbb::enumerable_thread_specific<BlockScratch> scratch;
    m_workers.each(static_cast<std::int64_t>(bands.size()),
                   [&](std::int64_t piece) { work.compute(bands[piece], scratch.local()); });
    collect(bands, map);
    return map;
}

} // namespace kvscope::cpu
