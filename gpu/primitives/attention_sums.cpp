// Column sums of attention: lists of heads and positions, then normalisers and columns in slices of tiles.
#include "gpu/kernels/attention_sums.h"

#include "gpu/primitives/attention_lists.h"
#include "gpu/primitives/primitives.h"
#include "gpu/primitives/slices.h"

#include <cassert>

namespace kvscope::gpu {

namespace {

constexpr std::size_t kMostKeptBytes = 256U << 20; // stored logits of a short window
constexpr double kTileSide = 64;

KernelArithmetic arithmeticOf(Arithmetic arithmetic) {
    return arithmetic == Arithmetic::Fast ? KernelArithmetic::Fast : KernelArithmetic::Exact;
}

/// On tensor cores the second product costs less than writing and reading the first one's logits.
bool byTensorCores(const AttentionCall& a) {
    return a.arithmetic == KernelArithmetic::Fast && a.keys.type != ElementType::Float32;
}

void runSums(const DeviceMemory& memory, AttentionSumsCall call, float* sums, Slices& slices) {
    const AttentionCall& a = call.attention;
    const DeviceList<SoftmaxNormaliser> normalisers(memory, static_cast<std::size_t>(a.slotCount * a.queryCount));
    const auto scratch = memory.allocate(softmaxScratchBytes(a) + 1);
    const std::size_t keptBytes = keptLogitsBytes(a);
    const auto kept = keptBytes <= kMostKeptBytes && !byTensorCores(a) ? memory.allocate(keptBytes + 1) : nullptr;
    call.normalisers = normalisers.data();
    call.scratch = scratch.get();
    call.logits = kept.get();
    const double perTile = kTileSide * 2 * static_cast<double>(a.queries.width * a.keys.heads);
    // For a very long layer even one tile against all others is too long, so each head gets its own launch.
    const auto slice = [&](std::int64_t tiles, std::int64_t others, const auto& work) {
        const double operations = perTile * kTileSide * static_cast<double>(others + 1);
        const std::int64_t heads = Slices::isLong(operations) ? 1 : a.keys.heads;
        slices.each(tiles, static_cast<double>(others), Slices::firstOf(operations),
                    [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t head = 0; head < a.keys.heads; head += heads) {
                            if (head > 0)
                                slices.stopPoint(static_cast<double>((end - begin) * others * head) /
                                                 static_cast<double>(a.keys.heads));
                            work(TileSlice{begin, end, head, head + heads});
                        }
                    });
    };
    slice(softmaxTiles(a), columnTiles(a),
          [&](const TileSlice& part) { softmaxNormalisers(call, memory.stream(), part); });
    slice(columnTiles(a), softmaxTiles(a),
          [&](const TileSlice& part) { attentionColumnSums(call, sums, memory.stream(), part); });
}

/// Calls work(HeadLists) for at most 32 members of every GQA group at a time.
template <class Work>
void eachPart(const std::vector<std::int32_t>& gqaGroupOf, std::int64_t kvHeads, const Work& work) {
    for (std::int32_t part = 0;; ++part) {
        const HeadLists lists(gqaGroupOf, kvHeads, part);
        if (lists.largest == 0) return;
        work(lists);
    }
}

double tilePairs(const AttentionCall& a) {
    return 2 * static_cast<double>(softmaxTiles(a)) * static_cast<double>(columnTiles(a));
}

} // namespace

void attentionColumnSums(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                         const AttentionInput& input, Arithmetic arithmetic, float* sums,
                         const Checkpoint& checkpoint) {
    assert(static_cast<std::int64_t>(input.rule.gqaGroupOf.size()) == queries.heads);
    std::vector<std::int32_t> positions;
    for (const auto& list : input.keyPositions) positions.insert(positions.end(), list.begin(), list.end());
    const DeviceList<std::int32_t> keyPositions(memory, positions);
    eachPart(input.rule.gqaGroupOf, keys.heads, [&](const HeadLists& lists) {
        ListedCall listed(memory, queries, keys, lists, input.rule, arithmeticOf(arithmetic));
        listed.call.firstQuery = input.firstQuery;
        listed.call.keyPositions = keyPositions.data();
        listed.call.mask.slidingWindow = input.rule.slidingWindow;
        Slices slices(memory, checkpoint, tilePairs(listed.call));
        runSums(memory, {.attention = listed.call}, sums, slices);
    });
}

void attentionChunkSums(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                        const AttentionChunksInput& input, Arithmetic arithmetic, float* sums,
                        const Checkpoint& checkpoint) {
    assert(queries.rows == keys.rows && input.chunk >= 1 && input.zeroKeys >= 0 && input.uniformRows >= 0);
    eachPart(input.rule.gqaGroupOf, keys.heads, [&](const HeadLists& lists) {
        ListedCall listed(memory, queries, keys, lists, input.rule, arithmeticOf(arithmetic));
        listed.call.mask = {MaskKind::Chunks, input.rule.slidingWindow, input.chunk};
        Slices slices(memory, checkpoint, tilePairs(listed.call));
        runSums(memory, {.attention = listed.call, .zeroKeys = input.zeroKeys, .uniformRows = input.uniformRows}, sums,
                slices);
    });
}

} // namespace kvscope::gpu
