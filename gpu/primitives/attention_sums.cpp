// Column sums of attention: lists of heads and positions, then normalisers, then columns.
#include "gpu/kernels/attention_sums.h"

#include "gpu/primitives/attention_lists.h"
#include "gpu/primitives/long_work.h"
#include "gpu/primitives/primitives.h"

#include <cassert>

namespace kvscope::gpu {

namespace {

/// Tiles that one tile meets on average: all of the other side, or those of its own chunk.
std::int64_t metBy(const AttentionCall& a, std::int64_t others) {
    if (a.mask.kind != MaskKind::Chunks) return others;
    return std::min(others, a.mask.chunk * a.largestGroup / 64 + 2);
}

/// The query heads of every KV head, at most kMostMembers of each: those from place kMostMembers * `part` on.
HeadLists headsOf(const AttentionRule& rule, std::int64_t kvHeads, std::int32_t part) {
    HeadLists lists;
    for (std::int32_t kv = 0; kv < kvHeads; ++kv) {
        std::int32_t place = 0;
        for (std::size_t h = 0; h < rule.gqaGroupOf.size(); ++h)
            if (rule.gqaGroupOf[h] == kv && place++ / HeadLists::kMostMembers == part)
                lists.heads.push_back(static_cast<std::int32_t>(h));
        lists.endGroup();
    }
    return lists;
}

/// One call of both kernels, whose lists and sums are parts already.
void runPart(const DeviceMemory& memory, CallMemory& parts, AttentionSumsCall& call, float*& sums,
             const Checkpoint& checkpoint) {
    AttentionCall& a = call.attention;
    parts.scratch(call.normalisers, static_cast<std::size_t>(a.slotCount * a.queryCount));
    parts.scratch(call.scratch, static_cast<std::size_t>(softmaxScratch(a)));
    parts.place();
    const double perRowTile = operationsOfTiles(a, metBy(a, columnTiles(a))),
                 perKeyTile = operationsOfTiles(a, metBy(a, softmaxTiles(a)));
    LongWork work(memory, checkpoint,
                  perRowTile * static_cast<double>(softmaxTiles(a)) + perKeyTile * static_cast<double>(columnTiles(a)));
    work.each(softmaxTiles(a), perRowTile, [&](std::int64_t begin, std::int64_t end, const StopWord& stop) {
        a.stop = stop;
        softmaxNormalisers(call, memory.stream(), begin, end);
    });
    work.each(columnTiles(a), perKeyTile, [&](std::int64_t begin, std::int64_t end, const StopWord& stop) {
        a.stop = stop;
        attentionColumnSums(call, sums, memory.stream(), begin, end);
    });
    work.wait();
}

/// sums [Hq, m] of all heads, some of every KV head at a time; `prepare` completes a call and adds its lists.
template <class Prepare>
HostTensor sumsOf(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                  const AttentionRule& rule, Arithmetic arithmetic, const Checkpoint& checkpoint,
                  const Prepare& prepare) {
    assert(static_cast<std::int64_t>(rule.gqaGroupOf.size()) == queries.heads);
    HostTensor result{{queries.heads, keys.rows}, {}};
    const auto count = static_cast<std::size_t>(result.shape.count());
    for (std::int32_t part = 0;; ++part) {
        const HeadLists lists = headsOf(rule, keys.heads, part);
        if (lists.heads.empty()) return result;
        CallMemory parts(memory);
        AttentionSumsCall call;
        float* sums;
        parts.result(sums, count);
        describe(call.attention, parts, queries, keys, lists, rule, arithmetic);
        prepare(call, parts);
        runPart(memory, parts, call, sums, checkpoint);
        parts.fetch();
        HostTensor some = parts.read(sums, result.shape);
        if (std::ssize(lists.heads) == queries.heads) return some;
        result.data.resize(count);
        for (const std::int32_t head : lists.heads)
            std::copy_n(some.data.begin() + head * keys.rows, keys.rows, result.data.begin() + head * keys.rows);
    }
}

} // namespace

HostTensor attentionColumnSums(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                               const AttentionInput& input, Arithmetic arithmetic, const Checkpoint& checkpoint) {
    std::vector<std::int32_t> positions;
    for (const auto& list : input.keyPositions) positions.insert(positions.end(), list.begin(), list.end());
    return sumsOf(memory, queries, keys, input.rule, arithmetic, checkpoint,
                  [&](AttentionSumsCall& call, CallMemory& parts) {
                      call.attention.firstQuery = input.firstQuery;
                      parts.list(call.attention.keyPositions, positions);
                  });
}

HostTensor attentionChunkSums(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                              const AttentionChunksInput& input, Arithmetic arithmetic, const Checkpoint& checkpoint) {
    assert(queries.rows == keys.rows && input.chunk >= 1 && input.zeroKeys >= 0 && input.uniformRows >= 0);
    assert(input.positions.empty());
    return sumsOf(memory, queries, keys, input.rule, arithmetic, checkpoint, [&](AttentionSumsCall& call, CallMemory&) {
        call.attention.mask = {MaskKind::Chunks, input.rule.slidingWindow, input.chunk};
        call.zeroKeys = input.zeroKeys;
        call.uniformRows = input.uniformRows;
    });
}

} // namespace kvscope::gpu
