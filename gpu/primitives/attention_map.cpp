// The attention map: chooses the rows of each pixel, computes missing softmax normalisers, then the pixels.
#include "gpu/kernels/attention_tile.h"

#include "gpu/kernels/attention_sums.h"
#include "gpu/primitives/attention_lists.h"
#include "gpu/primitives/primitives.h"
#include "gpu/primitives/slices.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace kvscope::gpu {

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kTileSide = 64;

/// Operations for one tile of `a` against all tiles of the other side.
double operationsOf(const AttentionCall& a, std::int64_t otherTiles) {
    return 2 * kTileSide * kTileSide * static_cast<double>(a.keys.width) * static_cast<double>(otherTiles + 1);
}

/// The rows to compute, and the pixel row of each.
struct MapRows {
    std::vector<std::int32_t> rows, pixels;

    explicit MapRows(const AttentionMapInput& input) {
        const std::int64_t length = input.rowEnd - input.rowBegin;
        for (std::int64_t y = 0; y < input.height; ++y) {
            const std::int64_t begin = length * y / input.height, count = length * (y + 1) / input.height - begin;
            const std::int64_t taken = input.rowsPerPixel > 0 ? std::min(input.rowsPerPixel, count) : count;
            for (std::int64_t i = 0; i < taken; ++i) {
                const std::int64_t position = input.rowBegin + begin + count * i / taken;
                rows.push_back(static_cast<std::int32_t>(position - input.firstQuery));
                pixels.push_back(static_cast<std::int32_t>(y));
            }
        }
    }
};

AttentionMask maskOf(const AttentionMapInput& input) {
    switch (input.mask) {
    case MapMask::All: // with a sliding window: one chunk of all positions
        return input.rule.slidingWindow > 0
                   ? AttentionMask{MaskKind::Chunks, input.rule.slidingWindow, input.keys.size(1)}
                   : AttentionMask{MaskKind::All, 0, 1};
    case MapMask::Chunks: return {MaskKind::Chunks, input.rule.slidingWindow, input.chunk};
    case MapMask::Causal: break;
    }
    return {MaskKind::Causal, input.rule.slidingWindow, 1};
}

HeadRule ruleOf(GroupRule rule) {
    return rule == GroupRule::Mean ? HeadRule::Mean : rule == GroupRule::Sum ? HeadRule::Sum : HeadRule::Max;
}

class MapRun {
public:
    MapRun(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
           const AttentionMapInput& input, KernelArithmetic arithmetic, AttentionMap& map)
        : m_memory(memory), m_input(input), m_map(map), m_rows(input), m_queryRows(memory, m_rows.rows),
          m_listed(memory, queries, oneHead(keys, input), listOf(input), input.rule, arithmetic) {
        AttentionCall& call = m_listed.call;
        call.firstQuery = input.firstQuery;
        call.mask = maskOf(input);
        call.queryRows = m_queryRows.data();
        call.queryCount = static_cast<std::int64_t>(m_rows.rows.size());
        map.rows = call.queryCount;
    }

    void run(const Checkpoint& checkpoint) {
        std::vector<SoftmaxNormaliser> normalisers;
        if (m_input.value == MapValue::Weight) normalisers = allNormalisers(checkpoint.part(0, 0.5));
        const DeviceList<SoftmaxNormaliser> normaliserList(m_memory, normalisers);
        const DeviceList<std::int32_t> pixelRows(m_memory, m_rows.pixels);
        const auto width = static_cast<std::size_t>(m_input.width);
        const DeviceList<float> cells(m_memory, static_cast<std::size_t>(m_input.height) * width),
            columns(m_memory, width);
        AttentionTileCall call;
        call.attention = m_listed.call;
        call.normalisers = normaliserList.data();
        call.combine = ruleOf(m_input.combine);
        call.pixelRows = pixelRows.data();
        call.keyBegin = m_input.keyBegin;
        call.keyEnd = m_input.keyEnd;
        call.height = m_input.height;
        call.width = m_input.width;
        call.cells = cells.data();
        call.columnSums = columns.data();
        const auto scratch = m_memory.allocate(attentionTileScratchBytes(call));
        call.scratch = scratch.get();
        Slices slices(m_memory, checkpoint.part(0.5, 1), static_cast<double>(mapTiles(call)));
        slices.each(mapTiles(call), 1, Slices::firstOf(operationsOf(call.attention, softmaxTiles(call.attention))),
                    [&](std::int64_t begin, std::int64_t end) { attentionTile(call, m_memory.stream(), begin, end); });
        m_map.cells = {{m_input.height, m_input.width}, cells.read(m_memory)};
        m_map.columnSums = {{m_input.width}, columns.read(m_memory)};
    }

private:
    static DeviceRows oneHead(const DeviceRows& keys, const AttentionMapInput& input) {
        const std::int64_t kv = input.rule.gqaGroupOf[static_cast<std::size_t>(input.queryHeads.front())];
        DeviceRows one = keys;
        one.data = static_cast<const char*>(keys.data) + kv * keys.headStride * bytesOf(keys.type);
        one.heads = 1;
        return one;
    }

    static HeadLists listOf(const AttentionMapInput& input) {
        assert(!input.queryHeads.empty() && std::cmp_less_equal(input.queryHeads.size(), kMostMapHeads));
        HeadLists lists({}, 0, 0);
        lists.heads = input.queryHeads;
        lists.largest = static_cast<std::int32_t>(lists.heads.size());
        lists.groups = {0, lists.largest};
        return lists;
    }

    float& logSumExp(std::size_t head, std::size_t row) {
        const auto w = static_cast<std::size_t>(m_input.queries.size(1));
        return m_map.rowLogSumExps.data[head * w + static_cast<std::size_t>(m_rows.rows[row])];
    }

    /// Normalisers [heads, R]: from the saved lse where it is known, otherwise computed from the keys that the row
    /// sees.
    std::vector<SoftmaxNormaliser> allNormalisers(const Checkpoint& checkpoint) {
        const std::size_t heads = m_input.queryHeads.size(), count = m_rows.rows.size();
        std::vector<std::size_t> unknown;
        for (std::size_t r = 0; r < count; ++r)
            for (std::size_t head = 0; head < heads; ++head)
                if (std::isnan(logSumExp(head, r))) {
                    unknown.push_back(r);
                    break;
                }
        const std::vector<SoftmaxNormaliser> made = normalisersOf(unknown, checkpoint);
        for (std::size_t u = 0; u < unknown.size(); ++u)
            for (std::size_t head = 0; head < heads; ++head)
                if (const SoftmaxNormaliser normaliser = made[head * unknown.size() + u]; normaliser.inverseSum > 0)
                    logSumExp(head, unknown[u]) =
                        static_cast<float>(normaliser.rowMax - std::log(normaliser.inverseSum));
        std::vector<SoftmaxNormaliser> normalisers(heads * count);
        for (std::size_t head = 0; head < heads; ++head) {
            for (std::size_t r = 0; r < count; ++r) normalisers[head * count + r] = {double{logSumExp(head, r)}, 1};
            for (std::size_t u = 0; u < unknown.size(); ++u)
                normalisers[head * count + unknown[u]] = made[head * unknown.size() + u];
        }
        return normalisers;
    }

    std::vector<SoftmaxNormaliser> normalisersOf(const std::vector<std::size_t>& rows, const Checkpoint& checkpoint) {
        if (rows.empty()) return {};
        std::vector<std::int32_t> queryRows;
        for (const std::size_t row : rows) queryRows.push_back(m_rows.rows[row]);
        const DeviceList<std::int32_t> list(m_memory, queryRows);
        AttentionSumsCall call{.attention = m_listed.call};
        call.attention.queryRows = list.data();
        call.attention.queryCount = static_cast<std::int64_t>(rows.size());
        const DeviceList<SoftmaxNormaliser> normalisers(m_memory, rows.size() * m_input.queryHeads.size());
        const auto scratch = m_memory.allocate(softmaxScratchBytes(call.attention) + 1);
        call.normalisers = normalisers.data();
        call.scratch = scratch.get();
        Slices slices(m_memory, checkpoint, static_cast<double>(softmaxTiles(call.attention)));
        const std::int64_t first = Slices::firstOf(operationsOf(call.attention, columnTiles(call.attention)));
        slices.each(softmaxTiles(call.attention), 1, first, [&](std::int64_t begin, std::int64_t end) {
            softmaxNormalisers(call, m_memory.stream(), {begin, end});
        });
        return normalisers.read(m_memory);
    }

    const DeviceMemory& m_memory;
    const AttentionMapInput& m_input;
    AttentionMap& m_map;
    MapRows m_rows;
    DeviceList<std::int32_t> m_queryRows;
    ListedCall m_listed;
};

} // namespace

AttentionMap attentionMap(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                          const AttentionMapInput& input, Arithmetic arithmetic, const Checkpoint& checkpoint) {
    AttentionMap map;
    map.rowLogSumExps = input.rowLogSumExps;
    if (map.rowLogSumExps.empty()) {
        const Shape shape{static_cast<std::int64_t>(input.queryHeads.size()), queries.rows};
        map.rowLogSumExps = {shape, std::vector<float>(static_cast<std::size_t>(shape.count()), kNaN)};
    }
    const bool isFast = arithmetic == Arithmetic::Fast;
    MapRun(memory, queries, keys, input, isFast ? KernelArithmetic::Fast : KernelArithmetic::Exact, map)
        .run(checkpoint);
    return map;
}

} // namespace kvscope::gpu
