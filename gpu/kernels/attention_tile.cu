// The attention map at screen resolution. A block takes 64 keys and loops over the rows that see them, tile by tile:
// the weights of the heads are combined, every pixel takes the maximum of its cells, and the keys' sums are kept for
// the marginal. The maximum is one of integers, so the order of blocks does not matter.
#include "gpu/kernels/attention_tile.h"

#include "gpu/kernels/attention_rows.h"
#include "gpu/kernels/map_steps.h"
#include "gpu/kernels/stop_word.h"
#include "gpu/kernels/tensor_tile.h"

namespace kvscope::gpu {

namespace {

constexpr int kStride = kTile + 1;
constexpr int kKeysPerItem = 4; // neighbouring keys of a row that one thread computes
constexpr int kItemsPerRow = kTile / kKeysPerItem;
constexpr std::int64_t kWantedBlocks = 1024;
constexpr std::int64_t kMostRowTiles =
    256; // per block, so that a stop need not wait for long rows, and for sums in float

/// Key tiles of the rectangle, and splits of the rows where the keys alone give too few or too long blocks.
struct TileGrid {
    std::int64_t firstKeyTile, keyTiles, splits, rowTilesPerSplit;
};

TileGrid gridOf(const AttentionTileCall& call) {
    const std::int64_t first = call.keyBegin / kTile, keys = (call.keyEnd + kTile - 1) / kTile - first;
    const std::int64_t rows = rowTilesOf(call.attention), fair = kWantedBlocks / keys;
    const std::int64_t least = (rows + kMostRowTiles - 1) / kMostRowTiles, wanted = fair < least ? least : fair;
    const std::int64_t splits = wanted < 1 ? 1 : wanted > rows ? rows : wanted;
    const std::int64_t per = (rows + splits - 1) / splits;
    return {first, keys, (rows + per - 1) / per, per};
}

struct MapCall {
    AttentionTileCall tile;
    TileGrid grid;
    double* keySums;  ///< [splits, keyTiles * kTile]
    unsigned* pixels; ///< [height, width]
    std::int64_t beginTile;
};

template <class Tile> struct Shared {
    union { // as in attention_sums.cu
        typename Tile::Shared tile;
        typename Tile::Value weights[kTile * kStride];
    };
    TilePlaces places;
    SoftmaxNormaliser<typename Tile::Value> normalisers[kTile];
    std::int32_t keyPixels[kTile]; ///< pixel column of each key; -1: outside of the rectangle
    static_assert(!Tile::kKeepsOperands || sizeof(weights) <= sizeof(Tile::Shared::rows));
};

template <class Tile>
__device__ __forceinline__ void storeWeights(Shared<Tile>& s, bool logits,
                                             const typename Tile::Value (&values)[kTileValues]) {
    using Number = typename Tile::Value;
    for (int v = 0; v < kTileValues; ++v) {
        const int row = Tile::rowOf(v);
        Number& weight = s.weights[row * kStride + Tile::keyOf(v)];
        weight = logits ? values[v] : softmaxExp(values[v] - s.normalisers[row].rowMax) * s.normalisers[row].inverseSum;
    }
}

/// The cell of one query and one key: its heads' weights, which lie in neighbouring rows, combined.
template <class Number> __device__ __forceinline__ Number combined(const Number* weights, int members, HeadRule rule) {
    Number cell = weights[0];
    for (int i = 1; i < members; ++i) {
        const Number other = weights[i * kStride];
        cell = rule == HeadRule::Max ? (cell < other ? other : cell) : cell + other;
    }
    return rule == HeadRule::Mean ? cell / Number(members) : cell;
}

/// The maximum over 16 neighbouring lanes.
__device__ __forceinline__ unsigned largestOfLanes(unsigned bits) {
    for (int half = kItemsPerRow / 2; half > 0; half /= 2) {
        const unsigned other = __shfl_xor_sync(kAllLanes, bits, half);
        bits = bits > other ? bits : other;
    }
    return bits;
}

__device__ __forceinline__ void raisePixel(const MapCall& call, std::int64_t y, std::int64_t x, unsigned bits) {
    if (bits != 0) atomicMax(&call.pixels[y * call.tile.width + x], bits);
}

template <class Tile>
__device__ __forceinline__ void placePixels(Shared<Tile>& s, const AttentionTileCall& t, std::int64_t keyTile) {
    const std::int64_t key = keyTile * kTile + threadIdx.x, offset = key - t.keyBegin;
    if (threadIdx.x < kTile)
        s.keyPixels[threadIdx.x] = key < t.keyBegin || key >= t.keyEnd
                                       ? -1
                                       : static_cast<std::int32_t>(pieceOf(t.keyEnd - t.keyBegin, t.width, offset));
}

/// Pixels of the tile's first and last key that lie in the rectangle.
struct PixelSpan {
    std::int32_t first, last;
};

template <class Tile>
__device__ __forceinline__ PixelSpan pixelsOf(const Shared<Tile>& s, const AttentionTileCall& t, std::int64_t keyTile) {
    const std::int64_t first = t.keyBegin - keyTile * kTile, last = t.keyEnd - 1 - keyTile * kTile;
    return {s.keyPixels[first > 0 ? first : 0], s.keyPixels[last < kTile ? last : kTile - 1]};
}

/// Combines the heads for four keys of one query and updates their pixels' maxima. The cells stay in the first head's
/// row for the column sums. All threads of a warp must call it together; `query` may be past the end.
template <class Tile>
__device__ __forceinline__ void raiseQuery(Shared<Tile>& s, const MapCall& call, PixelSpan span, int query,
                                           std::int64_t rowTile) {
    const AttentionTileCall& t = call.tile;
    const AttentionCall& a = t.attention;
    const std::int64_t row = rowTile * queriesPerTile(a) + query;
    const bool there = query < queriesPerTile(a) && row < a.queryCount;
    const std::int64_t y = there ? t.pixelRows[row] : 0;
    const bool few = span.last <= span.first + 1; // all keys fall into one or two pixels
    unsigned bestFirst = 0, bestLast = 0;
    for (int i = 0; there && i < kKeysPerItem; ++i) {
        const int k = threadIdx.x % kItemsPerRow * kKeysPerItem + i, first = query * a.largestGroup;
        const std::int32_t x = s.keyPixels[k];
        if (x < 0 || !sees(a.mask, s.places.rowPositions[first], s.places.keyPositions[k])) continue;
        auto* weights = &s.weights[first * kStride + k];
        const auto cell = combined(weights, a.largestGroup, t.combine);
        *weights = cell;
        const unsigned bits = pixelBits(static_cast<float>(cell));
        if (!few)
            raisePixel(call, y, x, bits);
        else if (x == span.first)
            bestFirst = bits > bestFirst ? bits : bestFirst;
        else
            bestLast = bits > bestLast ? bits : bestLast;
    }
    if (!few) return; // uniform over the block
    bestFirst = largestOfLanes(bestFirst);
    bestLast = largestOfLanes(bestLast);
    if (threadIdx.x % kItemsPerRow == 0) {
        raisePixel(call, y, span.first, bestFirst);
        raisePixel(call, y, span.last, bestLast);
    }
}

/// Weights of the tile that enter a column sum: masked ones are 0.
template <class Tile>
__device__ __forceinline__ typename Tile::Value sumOfKey(const Shared<Tile>& s, const AttentionCall& a,
                                                         std::int64_t rowTile) {
    typename Tile::Value sum = 0;
    for (int query = 0; query < queriesPerTile(a) && rowTile * queriesPerTile(a) + query < a.queryCount; ++query)
        sum += s.weights[query * a.largestGroup * kStride + threadIdx.x];
    return sum;
}

template <class Tile> __global__ void __launch_bounds__(kTileThreads, Tile::kBlocks) mapKernel(MapCall call) {
    using Number = typename Tile::Value;
    Shared<Tile>& s = sharedAs<Shared<Tile>>();
    const AttentionCall& a = call.tile.attention;
    if (isStopped(a.stop)) return;
    const LogitShape<Number> shape(a);
    const std::int64_t place = call.beginTile + blockIdx.x, keyTile = call.grid.firstKeyTile + place;
    const bool logits = !call.tile.normalisers;
    TileRange range = rowTilesFor(a, 0, keyTile);
    const std::int64_t from = blockIdx.y * call.grid.rowTilesPerSplit, to = from + call.grid.rowTilesPerSplit;
    range = {range.begin > from ? range.begin : from, range.end < to ? range.end : to};
    placeKeys(s.places, a, 0, keyTile);
    placePixels(s, call.tile, keyTile);
    __syncthreads();
    const PixelSpan span = pixelsOf(s, call.tile, keyTile);
    Number keySum = 0;
    for (std::int64_t rowTile = range.begin; rowTile < range.end; ++rowTile) {
        __syncthreads();
        placeRows(s.places, a, 0, rowTile);
        __syncthreads();
        if (threadIdx.x < kTile) {
            const std::int64_t slot = s.places.rowSlots[threadIdx.x];
            const auto* normalisers = static_cast<const SoftmaxNormaliser<Number>*>(call.tile.normalisers);
            s.normalisers[threadIdx.x] = slot < 0 || logits ? SoftmaxNormaliser<Number>{0, 0} : normalisers[slot];
        }
        Number values[kTileValues];
        Tile::multiply(s.tile, queriesOf(a, s.places), keysOf(a, s.places), false, rowTile > range.begin, values);
        makeLogits<Tile>(a, s.places, shape, isWhole(a, s.places, 0, rowTile, keyTile), values);
        __syncthreads();
        storeWeights(s, logits, values);
        __syncthreads();
        for (int first = 0; first < queriesPerTile(a); first += kTileThreads / kItemsPerRow)
            raiseQuery(s, call, span, first + static_cast<int>(threadIdx.x) / kItemsPerRow, rowTile);
        __syncthreads();
        if (threadIdx.x < kTile && !logits) keySum += sumOfKey(s, a, rowTile);
    }
    if (threadIdx.x < kTile)
        call.keySums[(blockIdx.y * call.grid.keyTiles + place) * kTile + threadIdx.x] = double(keySum);
}

__global__ void __launch_bounds__(kTileThreads) clearPixelsKernel(MapCall call) {
    const std::int64_t i = std::int64_t{blockIdx.x} * kTileThreads + threadIdx.x;
    if (i < call.tile.height * call.tile.width) call.pixels[i] = 0;
}

/// Converts pixels to floats and adds up the columns' sums in key order.
__global__ void __launch_bounds__(kTileThreads) finishMapKernel(MapCall call) {
    const AttentionTileCall& t = call.tile;
    const std::int64_t i = std::int64_t{blockIdx.x} * kTileThreads + threadIdx.x;
    if (i < t.height * t.width) t.cells[i] = valueOfPixel(call.pixels[i]);
    if (i >= t.width) return;
    const std::int64_t length = t.keyEnd - t.keyBegin, origin = call.grid.firstKeyTile * kTile;
    double sum = 0;
    for (std::int64_t split = 0; split < call.grid.splits; ++split)
        for (std::int64_t k = pieceBegin(length, t.width, i); k < pieceBegin(length, t.width, i + 1); ++k)
            sum += call.keySums[split * call.grid.keyTiles * kTile + t.keyBegin + k - origin];
    t.columnSums[i] = static_cast<float>(sum);
}

std::int64_t keySumsOf(const TileGrid& grid) { return grid.splits * grid.keyTiles * kTile; }

} // namespace

std::size_t attentionTileScratchBytes(const AttentionTileCall& call) {
    return static_cast<std::size_t>(keySumsOf(gridOf(call))) * sizeof(double) +
           static_cast<std::size_t>(call.height * call.width) * sizeof(unsigned);
}

std::int64_t mapTiles(const AttentionTileCall& call) { return gridOf(call).keyTiles; }

void attentionTile(const AttentionTileCall& tile, Stream stream, std::int64_t beginTile, std::int64_t endTile) {
    const TileGrid grid = gridOf(tile);
    auto* keySums = static_cast<double*>(tile.scratch);
    const MapCall call{tile, grid, keySums, reinterpret_cast<unsigned*>(keySums + keySumsOf(grid)), beginTile};
    const Grid pixels{(tile.height * tile.width + kTileThreads - 1) / kTileThreads};
    const bool isLast = endTile >= grid.keyTiles;
    if (beginTile == 0) launch("clearing the map", clearPixelsKernel, pixels, kTileThreads, 0, stream, call);
    withTile(tile.attention, [&](auto kind) {
        using Tile = decltype(kind);
        launch("attention map", mapKernel<Tile>, {(isLast ? grid.keyTiles : endTile) - beginTile, grid.splits},
               kTileThreads, sizeof(Shared<Tile>), stream, call);
    });
    if (isLast) launch("finishing the map", finishMapKernel, pixels, kTileThreads, 0, stream, call);
}

} // namespace kvscope::gpu
