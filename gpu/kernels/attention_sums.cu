// Row sums (softmax normalisers) and column sums (accumulated attention) of the attention weights. The first kernel
// takes a tile of query rows over the keys they see, with the online-softmax state of every row in registers; the
// second takes a tile of keys over the rows that see them and adds up their weights per query head. Both compute the
// logits tile by tile.
#include "gpu/kernels/attention_sums.h"

#include "gpu/kernels/attention_rows.h"
#include "gpu/kernels/stop_word.h"
#include "gpu/kernels/tensor_tile.h"

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kKeyTilesPerSplit = 8; // with few rows, 512 keys per block
constexpr std::int64_t kManyBlocks = 256;

/// Number of splits of the keys of a row tile. It depends on the shape alone, so that sums keep their order.
std::int64_t splitsOf(const AttentionCall& call) {
    const bool fewRows = rowTilesOf(call) * call.keys.heads < kManyBlocks;
    return fewRows ? (keyTilesOf(call) + kKeyTilesPerSplit - 1) / kKeyTilesPerSplit : 1;
}

struct SumsCall {
    AttentionSumsCall sums;
    std::int64_t splits;
    float* columns; ///< [Hq, m]
    TileRange tiles;
};

constexpr int kWeightStride = kTile + 1; // odd stride against shared-memory bank conflicts

template <class Tile> struct Shared {
    using Number = typename Tile::Value;
    union { // the tile's weights overwrite its rows; the keys may have to stay
        typename Tile::Shared tile;
        Number weights[kTile * kWeightStride];
    };
    union {
        OnlineSoftmax<double> parts[kTile][Tile::kParts];
        SoftmaxNormaliser<Number> normalisers[kTile];
    };
    TilePlaces places;
    Number columns[1]; ///< [largestGroup][kTile]

    static_assert(!Tile::kKeepsOperands || sizeof(weights) <= sizeof(Tile::Shared::rows));
};

/// Whether the position lies in a short last chunk, to which the padding rules apply (C8).
__device__ __forceinline__ bool isShortChunk(const AttentionCall& call, std::int64_t position) {
    return call.mask.kind == MaskKind::Chunks && (position / call.mask.chunk + 1) * call.mask.chunk > call.keys.rows;
}

/// Writes the normaliser of a row whose online softmax is complete.
template <class Number>
__device__ __forceinline__ void finishRow(const AttentionSumsCall& call, std::int64_t slot, OnlineSoftmax<double> sum) {
    const std::int64_t query = slot % call.attention.queryCount;
    if (call.zeroKeys > 0 && isShortChunk(call.attention, positionOfQuery(call.attention, query))) {
        sum.updateMax(0);
        sum.rowSum += static_cast<double>(call.zeroKeys) * softmaxExp(0 - sum.rowMax);
    }
    static_cast<SoftmaxNormaliser<Number>*>(call.normalisers)[slot] = normaliserOf<Number>(sum);
}

template <class Tile> __global__ void __launch_bounds__(kTileThreads, Tile::kBlocks) softmaxKernel(SumsCall call) {
    using Number = typename Tile::Value;
    Shared<Tile>& s = sharedAs<Shared<Tile>>();
    const AttentionCall& a = call.sums.attention;
    if (isStopped(a.stop)) return;
    const LogitShape<Number> shape(a);
    const std::int64_t kvHead = blockIdx.y, rowTile = call.tiles.end - 1 - blockIdx.x; // the longest rows first
    const std::int64_t perSplit = call.splits > 1 ? kKeyTilesPerSplit : keyTilesOf(a);
    TileRange range = keyTilesFor(a, kvHead, rowTile);
    const std::int64_t from = blockIdx.z * perSplit, to = from + perSplit;
    range = {range.begin > from ? range.begin : from, range.end < to ? range.end : to};
    placeRows(s.places, a, kvHead, rowTile);
    OnlineSoftmax<Number> sums[Tile::kRowsPerThread];
    for (std::int64_t keyTile = range.begin; keyTile < range.end; ++keyTile) {
        __syncthreads();
        placeKeys(s.places, a, kvHead, keyTile);
        __syncthreads();
        Number values[kTileValues];
        Tile::multiply(s.tile, queriesOf(a, s.places), keysOf(a, s.places), keyTile > range.begin, false, values);
        makeLogits<Tile>(a, s.places, shape, isWhole(a, s.places, kvHead, rowTile, keyTile), values);
        for (int v = 0; v < kTileValues; ++v) sums[Tile::rowSlot(v)].updateMax(values[v]);
        for (int v = 0; v < kTileValues; ++v) sums[Tile::rowSlot(v)].add(values[v]);
    }
    __syncthreads();
    for (int v = 0; v < kTileValues; ++v) { // all threads of a row slot compute the same row
        const OnlineSoftmax<Number>& sum = sums[Tile::rowSlot(v)];
        s.parts[Tile::rowOf(v)][Tile::part()] = {double(sum.rowMax), double(sum.rowSum)};
    }
    __syncthreads();
    const std::int64_t slot = threadIdx.x < kTile ? s.places.rowSlots[threadIdx.x] : -1;
    if (slot < 0) return;
    OnlineSoftmax<double> row;
    for (const OnlineSoftmax<double>& part : s.parts[threadIdx.x]) row.merge(part);
    if (call.splits > 1)
        call.sums.scratch[blockIdx.z * a.slotCount * a.queryCount + slot] = row;
    else
        finishRow<Number>(call.sums, slot, row);
}

/// Merges the splits in ascending order.
template <class Number> __global__ void __launch_bounds__(kTileThreads) mergeSplitsKernel(SumsCall call) {
    const AttentionCall& a = call.sums.attention;
    const std::int64_t count = a.slotCount * a.queryCount, i = std::int64_t{blockIdx.x} * kTileThreads + threadIdx.x;
    if (i >= count) return;
    OnlineSoftmax<double> row;
    for (std::int64_t split = 0; split < call.splits; ++split) row.merge(call.sums.scratch[split * count + i]);
    finishRow<Number>(call.sums, i, row);
}

/// Writes the tile's weights into shared memory; rows that do not exist have weight 0.
template <class Tile>
__device__ __forceinline__ void storeWeights(Shared<Tile>& s, const typename Tile::Value (&logits)[kTileValues]) {
    for (int v = 0; v < kTileValues; ++v) {
        const int row = Tile::rowOf(v);
        const auto normaliser = s.normalisers[row];
        s.weights[row * kWeightStride + Tile::keyOf(v)] =
            softmaxExp(logits[v] - normaliser.rowMax) * normaliser.inverseSum;
    }
}

/// columns[member][key] += the weights of that member's rows, in query order.
template <class Tile> __device__ __forceinline__ void addColumns(Shared<Tile>& s, const AttentionCall& a) {
    const int key = threadIdx.x % kTile, rows = static_cast<int>(queriesPerTile(a)) * a.largestGroup;
    for (int member = threadIdx.x / kTile; member < a.largestGroup; member += kTileThreads / kTile) {
        typename Tile::Value sum = 0;
        for (int row = member; row < rows; row += a.largestGroup) sum += s.weights[row * kWeightStride + key];
        s.columns[member * kTile + key] += sum;
    }
}

template <class Tile> __global__ void __launch_bounds__(kTileThreads, Tile::kBlocks) columnKernel(SumsCall call) {
    using Number = typename Tile::Value;
    Shared<Tile>& s = sharedAs<Shared<Tile>>();
    const AttentionCall& a = call.sums.attention;
    if (isStopped(a.stop)) return;
    const LogitShape<Number> shape(a);
    const std::int64_t kvHead = blockIdx.y, keyTile = call.tiles.begin + blockIdx.x, m = a.keys.rows;
    placeKeys(s.places, a, kvHead, keyTile);
    for (int i = threadIdx.x; i < a.largestGroup * kTile; i += kTileThreads) s.columns[i] = 0;
    const TileRange range = rowTilesFor(a, kvHead, keyTile);
    for (std::int64_t rowTile = range.begin; rowTile < range.end; ++rowTile) {
        __syncthreads();
        placeRows(s.places, a, kvHead, rowTile);
        __syncthreads();
        if (threadIdx.x < kTile) {
            const std::int64_t slot = s.places.rowSlots[threadIdx.x];
            const auto* normalisers = static_cast<const SoftmaxNormaliser<Number>*>(call.sums.normalisers);
            s.normalisers[threadIdx.x] = slot < 0 ? SoftmaxNormaliser<Number>{0, 0} : normalisers[slot];
        }
        Number values[kTileValues];
        Tile::multiply(s.tile, queriesOf(a, s.places), keysOf(a, s.places), false, rowTile > range.begin, values);
        makeLogits<Tile>(a, s.places, shape, isWhole(a, s.places, kvHead, rowTile, keyTile), values);
        __syncthreads(); // weights overwrite the operands
        storeWeights(s, values);
        __syncthreads();
        addColumns(s, a);
    }
    __syncthreads();
    const std::int64_t key = keyTile * kTile + threadIdx.x % kTile;
    if (key >= m) return;
    const bool padded = isShortChunk(a, key);
    const double uniform = padded ? static_cast<double>(call.sums.uniformRows) / static_cast<double>(a.mask.chunk) : 0;
    for (std::int32_t i = threadIdx.x / kTile; i < a.groups[kvHead + 1] - a.groups[kvHead]; i += kTileThreads / kTile)
        call.columns[a.heads[a.groups[kvHead] + i] * m + key] =
            static_cast<float>(double(s.columns[i * kTile + threadIdx.x % kTile]) + uniform);
}

template <class Tile> std::size_t sharedBytes(const AttentionCall& a) {
    return sizeof(Shared<Tile>) + static_cast<std::size_t>(a.largestGroup) * kTile * sizeof(typename Tile::Value);
}

} // namespace

std::int64_t softmaxScratch(const AttentionCall& a) {
    const std::int64_t splits = splitsOf(a);
    return splits > 1 ? splits * a.slotCount * a.queryCount : 0;
}

std::int64_t softmaxTiles(const AttentionCall& a) { return rowTilesOf(a); }

std::int64_t columnTiles(const AttentionCall& a) { return keyTilesOf(a); }

void softmaxNormalisers(const AttentionSumsCall& sums, Stream stream, std::int64_t begin, std::int64_t end) {
    const AttentionCall& a = sums.attention;
    const bool isLast = end >= rowTilesOf(a);
    const SumsCall call{sums, splitsOf(a), nullptr, {begin, isLast ? rowTilesOf(a) : end}};
    withTile(a, [&](auto tile) {
        using Tile = decltype(tile);
        launch("softmax sums", softmaxKernel<Tile>, {call.tiles.end - begin, a.keys.heads, call.splits}, kTileThreads,
               sharedBytes<Tile>(a), stream, call);
        const std::int64_t rows = a.slotCount * a.queryCount;
        if (isLast && call.splits > 1)
            launch("merging softmax sums", mergeSplitsKernel<typename Tile::Value>,
                   {(rows + kTileThreads - 1) / kTileThreads}, kTileThreads, 0, stream, call);
    });
}

void attentionColumnSums(const AttentionSumsCall& sums, float* columns, Stream stream, std::int64_t begin,
                         std::int64_t end) {
    const AttentionCall& a = sums.attention;
    end = end < keyTilesOf(a) ? end : keyTilesOf(a);
    withTile(a, [&](auto tile) {
        using Tile = decltype(tile);
        launch("attention column sums", columnKernel<Tile>, {end - begin, a.keys.heads}, kTileThreads,
               sharedBytes<Tile>(a), stream, SumsCall{sums, 1, columns, {begin, end}});
    });
}

} // namespace kvscope::gpu
