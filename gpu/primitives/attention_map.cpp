// The attention map: chooses the rows of each pixel, computes missing softmax normalisers, then the pixels.
#include "gpu/kernels/attention_tile.h"

#include "gpu/kernels/attention_sums.h"
#include "gpu/primitives/attention_lists.h"
#include "gpu/primitives/long_work.h"
#include "gpu/primitives/primitives.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace kvscope::gpu {

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The rows to compute, and the pixel row of each.
struct MapRows {
    std::vector<std::int32_t> rows, pixels;

    explicit MapRows(const AttentionMapInput& input) {
        for (const MapRow& row : mapRowsOf(input)) {
            rows.push_back(static_cast<std::int32_t>(row.position - input.firstQuery));
            pixels.push_back(static_cast<std::int32_t>(row.pixel));
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

using Normalisers = std::vector<SoftmaxNormaliser>;

/// Computes one map.
class MapRun {
public:
    MapRun(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
           const AttentionMapInput& input, Arithmetic arithmetic, AttentionMap& map)
        : m_memory(memory), m_queries(queries), m_keys(oneHead(keys, input)), m_input(input), m_arithmetic(arithmetic),
          m_map(map), m_rows(input) {
        map.rows = std::ssize(m_rows.rows);
    }

    void run(const Checkpoint& checkpoint) {
        Normalisers normalisers;
        if (m_input.value == MapValue::Weight) normalisers = allNormalisers(checkpoint.part(0, 0.5));
        CallMemory parts(m_memory);
        AttentionTileCall call;
        describeRows(call.attention, parts, m_rows.rows);
        const SoftmaxNormaliser* listed;
        parts.list(listed, normalisers);
        parts.list(call.pixelRows, m_rows.pixels);
        call.combine = ruleOf(m_input.combine);
        call.keyBegin = m_input.keyBegin;
        call.keyEnd = m_input.keyEnd;
        call.height = m_input.height;
        call.width = m_input.width;
        parts.result(call.cells, static_cast<std::size_t>(m_input.height * m_input.width));
        parts.result(call.columnSums, static_cast<std::size_t>(m_input.width));
        unsigned char* scratch;
        parts.scratch(scratch, attentionTileScratchBytes(call));
        parts.place();
        call.normalisers = listed;
        call.scratch = scratch;
        const double perTile = operationsOfTiles(call.attention, softmaxTiles(call.attention));
        LongWork work(m_memory, checkpoint.part(0.5, 1), perTile * static_cast<double>(mapTiles(call)));
        work.each(mapTiles(call), perTile, [&](std::int64_t begin, std::int64_t end, const StopWord& stop) {
            call.attention.stop = stop;
            attentionTile(call, m_memory.stream(), begin, end);
        });
        work.wait();
        parts.fetch();
        m_map.cells = parts.read(call.cells, {m_input.height, m_input.width});
        m_map.columnSums = parts.read(call.columnSums, Shape{m_input.width});
    }

private:
    static DeviceRows oneHead(const DeviceRows& keys, const AttentionMapInput& input) {
        const std::int64_t kv = input.rule.gqaGroupOf[static_cast<std::size_t>(input.queryHeads.front())];
        DeviceRows one = keys;
        one.data = static_cast<const char*>(keys.data) + kv * keys.headStride * bytesOf(keys.type);
        one.heads = 1;
        return one;
    }

    void describeRows(AttentionCall& call, CallMemory& parts, const std::vector<std::int32_t>& rows) const {
        HeadLists lists;
        lists.heads = m_input.queryHeads;
        lists.endGroup();
        describe(call, parts, m_queries, m_keys, lists, m_input.rule, m_arithmetic);
        call.firstQuery = m_input.firstQuery;
        call.mask = maskOf(m_input);
        parts.list(call.queryRows, rows);
        call.queryCount = std::ssize(rows);
    }

    float& logSumExp(std::size_t head, std::size_t row) {
        const auto w = static_cast<std::size_t>(m_input.queries.size(1));
        return m_map.rowLogSumExps.data[head * w + static_cast<std::size_t>(m_rows.rows[row])];
    }

    /// Normalisers [heads, R]: from the saved lse where it is known, otherwise computed from the keys that the row
    /// sees.
    Normalisers allNormalisers(const Checkpoint& checkpoint) {
        const std::size_t heads = m_input.queryHeads.size(), count = m_rows.rows.size();
        std::vector<std::size_t> unknown;
        for (std::size_t r = 0; r < count; ++r)
            for (std::size_t head = 0; head < heads; ++head)
                if (std::isnan(logSumExp(head, r))) {
                    unknown.push_back(r);
                    break;
                }
        const auto made = normalisersOf(unknown, checkpoint);
        for (std::size_t u = 0; u < unknown.size(); ++u)
            for (std::size_t head = 0; head < heads; ++head)
                if (const auto normaliser = made[head * unknown.size() + u]; normaliser.inverseSum > 0)
                    logSumExp(head, unknown[u]) =
                        static_cast<float>(normaliser.rowMax - std::log(normaliser.inverseSum));
        Normalisers normalisers(heads * count);
        for (std::size_t head = 0; head < heads; ++head) {
            for (std::size_t r = 0; r < count; ++r) normalisers[head * count + r] = {double{logSumExp(head, r)}, 1};
            for (std::size_t u = 0; u < unknown.size(); ++u) {
                const auto normaliser = made[head * unknown.size() + u];
                normalisers[head * count + unknown[u]] = {normaliser.rowMax, normaliser.inverseSum};
            }
        }
        return normalisers;
    }

    Normalisers normalisersOf(const std::vector<std::size_t>& rows, const Checkpoint& checkpoint) {
        if (rows.empty()) return {};
        std::vector<std::int32_t> queryRows;
        for (const std::size_t row : rows) queryRows.push_back(m_rows.rows[row]);
        CallMemory parts(m_memory);
        AttentionSumsCall call;
        describeRows(call.attention, parts, queryRows);
        const std::size_t count = rows.size() * m_input.queryHeads.size();
        parts.result(call.normalisers, count);
        parts.scratch(call.scratch, static_cast<std::size_t>(softmaxScratch(call.attention)));
        parts.place();
        const double perTile = operationsOfTiles(call.attention, columnTiles(call.attention));
        LongWork work(m_memory, checkpoint, perTile * static_cast<double>(softmaxTiles(call.attention)));
        work.each(softmaxTiles(call.attention), perTile,
                  [&](std::int64_t begin, std::int64_t end, const StopWord& stop) {
                      call.attention.stop = stop;
                      softmaxNormalisers(call, m_memory.stream(), begin, end);
                  });
        work.wait();
        parts.fetch();
        return parts.read(call.normalisers, count);
    }

    const DeviceMemory& m_memory;
    DeviceRows m_queries, m_keys;
    const AttentionMapInput& m_input;
    Arithmetic m_arithmetic;
    AttentionMap& m_map;
    MapRows m_rows;
};

} // namespace

AttentionMap attentionMap(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                          const AttentionMapInput& input, Arithmetic arithmetic, const Checkpoint& checkpoint) {
    assert(!input.queryHeads.empty() && std::cmp_less_equal(input.queryHeads.size(), kMostMapHeads));
    AttentionMap map;
    map.rowLogSumExps = input.rowLogSumExps;
    if (map.rowLogSumExps.empty())
        map.rowLogSumExps = HostTensor::filled({std::ssize(input.queryHeads), queries.rows}, kNaN);
    MapRun(memory, queries, keys, input, arithmetic, map).run(checkpoint);
    return map;
}

} // namespace kvscope::gpu
