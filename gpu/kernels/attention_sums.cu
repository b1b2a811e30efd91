// Row sums (softmax normalisers) and column sums (accumulated attention) of the attention weights. The first kernel
// takes a tile of query rows over the keys they see, with the online-softmax state of every row in registers; the
// second takes a tile of keys over the rows that see them and adds up their weights per query head. Both compute the
// logits tile by tile; for a short window the first can store them for the second.
#include "gpu/kernels/attention_sums.h"

#include "gpu/kernels/attention_rows.h"
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
    TileSlice slice;
};

constexpr int kWeightStride = kTile + 1; // odd stride against shared-memory bank conflicts

template <class Tile> struct Shared {
    union { // the tile's weights overwrite its rows; the keys may have to stay
        typename Tile::Shared tile;
        typename Tile::Value weights[kTile * kWeightStride];
    };
    union {
        OnlineSoftmax<double> parts[kTile][Tile::kParts];
        SoftmaxNormaliser normalisers[kTile];
    };
    TilePlaces places;
    double columns[1]; ///< [largestGroup][kTile]

    static_assert(!Tile::kKeepsOperands || sizeof(weights) <= sizeof(Tile::Shared::rows));
};

/// Stored logits of a tile: value by value, with the threads contiguous.
template <class Number>
__device__ __forceinline__ Number* keptTile(const AttentionSumsCall& call, std::int64_t kvHead, std::int64_t rowTile,
                                            std::int64_t keyTile) {
    const AttentionCall& a = call.attention;
    const std::int64_t tile = (kvHead * rowTilesOf(a) + rowTile) * keyTilesOf(a) + keyTile;
    return static_cast<Number*>(call.logits) + tile * kTile * kTile + threadIdx.x;
}

/// Whether the position lies in a short last chunk, to which the padding rules apply (C8).
__device__ __forceinline__ bool isShortChunk(const AttentionCall& call, std::int64_t position) {
    return call.mask.kind == MaskKind::Chunks && (position / call.mask.chunk + 1) * call.mask.chunk > call.keys.rows;
}

__device__ __forceinline__ SoftmaxNormaliser finished(const AttentionSumsCall& call, std::int64_t query,
                                                      OnlineSoftmax<double> sum) {
    if (call.zeroKeys > 0 && isShortChunk(call.attention, positionOfQuery(call.attention, query))) {
        sum.updateMax(0);
        sum.rowSum += static_cast<double>(call.zeroKeys) * softmaxExp(0 - sum.rowMax);
    }
    return normaliserOf(sum);
}

template <class Tile> __global__ void __launch_bounds__(kTileThreads) softmaxKernel(SumsCall call) {
    using Number = typename Tile::Value;
    Shared<Tile>& s = sharedAs<Shared<Tile>>();
    const AttentionCall& a = call.sums.attention;
    const std::int64_t kvHead = call.slice.headBegin + blockIdx.y;
    const std::int64_t rowTile = call.slice.end - 1 - blockIdx.x; // the longest rows first
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
        makeLogits<Tile>(a, s.places, isWhole(a, s.places, kvHead, rowTile, keyTile), values);
        Number* kept = call.sums.logits ? keptTile<Number>(call.sums, kvHead, rowTile, keyTile) : nullptr;
        for (int v = 0; kept && v < kTileValues; ++v) kept[v * kTileThreads] = values[v];
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
        static_cast<OnlineSoftmax<double>*>(call.sums.scratch)[blockIdx.z * a.slotCount * a.queryCount + slot] = row;
    else
        call.sums.normalisers[slot] = finished(call.sums, slot % a.queryCount, row);
}

/// Merges the splits in ascending order.
__global__ void __launch_bounds__(kTileThreads) mergeSplitsKernel(SumsCall call) {
    const AttentionCall& a = call.sums.attention;
    const std::int64_t count = a.slotCount * a.queryCount, i = std::int64_t{blockIdx.x} * kTileThreads + threadIdx.x;
    if (i >= count) return;
    OnlineSoftmax<double> row;
    for (std::int64_t split = 0; split < call.splits; ++split)
        row.merge(static_cast<const OnlineSoftmax<double>*>(call.sums.scratch)[split * count + i]);
    call.sums.normalisers[i] = finished(call.sums, i % a.queryCount, row);
}

/// Writes the tile's weights into shared memory; rows that do not exist have weight 0.
template <class Tile>
__device__ __forceinline__ void storeWeights(Shared<Tile>& s, const typename Tile::Value (&logits)[kTileValues]) {
    using Number = typename Tile::Value;
    for (int v = 0; v < kTileValues; ++v) {
        const int row = Tile::rowOf(v);
        const SoftmaxNormaliser normaliser = s.normalisers[row];
        s.weights[row * kWeightStride + Tile::keyOf(v)] =
            softmaxExp(logits[v] - Number(normaliser.rowMax)) * Number(normaliser.inverseSum);
    }
}

/// columns[member][key] += the weights of that member's rows, in query order.
template <class Tile> __device__ __forceinline__ void addColumns(Shared<Tile>& s, const AttentionCall& a) {
    using Number = typename Tile::Value;
    const int key = threadIdx.x % kTile, rows = static_cast<int>(queriesPerTile(a)) * a.largestGroup;
    for (int member = threadIdx.x / kTile; member < a.largestGroup; member += kTileThreads / kTile) {
        Number sum = 0;
        for (int row = member; row < rows; row += a.largestGroup) sum += s.weights[row * kWeightStride + key];
        s.columns[member * kTile + key] += double(sum);
    }
}

/// Column sums of a thread's own values, kept in registers from tile to tile: where the GQA group size divides 8, a
/// tensor tile gives a thread two rows of the same member, eight apart, so shared memory is needed only at the end.
/// Groups of tiles are added up first, then their sums, which rounds less than one long float sum.
class OwnColumns {
public:
    using Tile = TensorTile<BFloat16>; ///< all 16-bit tiles have this layout

    template <class AnyTile> static __device__ __forceinline__ bool fits(const AttentionCall& a) {
        return AnyTile::kKeepsOperands && 8 % a.largestGroup == 0;
    }

    __device__ __forceinline__ void add(const float (&logits)[kTileValues], const SoftmaxNormaliser* normalisers) {
        const SoftmaxNormaliser rows[2] = {normalisers[Tile::rowOf(0)], normalisers[Tile::rowOf(2)]};
        const float rowMaxima[2] = {float(rows[0].rowMax), float(rows[1].rowMax)},
                    factors[2] = {float(rows[0].inverseSum), float(rows[1].inverseSum)};
        for (int v = 0; v < kTileValues; ++v)
            m_some[keySlot(v)] += softmaxExp(logits[v] - rowMaxima[Tile::rowSlot(v)]) * factors[Tile::rowSlot(v)];
        if (++m_tiles % kTilesTogether == 0) settle();
    }

    /// Adds columns[member][key] over all threads; `room` is free shared memory for [32][64] floats.
    __device__ __forceinline__ void finish(double* room, const AttentionCall& a, double* columns) {
        settle();
        const int place = Tile::warp() % 4 * 8 + Tile::lane() / 4; // rows place % 8, + 8, of 16 rows place / 8
        for (int v = 0; v < kTileValues; ++v)
            if (Tile::rowSlot(v) == 0) room[place * kTile + Tile::keyOf(v)] = double(m_all[keySlot(v)]);
        __syncthreads();
        for (int i = threadIdx.x; i < a.largestGroup * kTile; i += kTileThreads)
            for (int row = i / kTile; row < kPlaces; row += a.largestGroup) columns[i] += room[row * kTile + i % kTile];
    }

    static constexpr int kPlaces = 32;

private:
    static constexpr int kKeys = 8, kTilesTogether = 16;

    static __device__ __forceinline__ int keySlot(int value) { return value / 4 * 2 + value % 2; }
    __device__ __forceinline__ void settle() {
        for (int k = 0; k < kKeys; ++k) {
            m_all[k] += m_some[k];
            m_some[k] = 0;
        }
    }

    float m_some[kKeys] = {};
    float m_all[kKeys] = {};
    int m_tiles = 0;
};

template <class Tile>
__global__ void __launch_bounds__(kTileThreads, Tile::kKeepsOperands ? 3 : 0) columnKernel(SumsCall call) {
    using Number = typename Tile::Value;
    Shared<Tile>& s = sharedAs<Shared<Tile>>();
    const AttentionCall& a = call.sums.attention;
    const std::int64_t kvHead = call.slice.headBegin + blockIdx.y, keyTile = call.slice.begin + blockIdx.x,
                       m = a.keys.rows;
    placeKeys(s.places, a, kvHead, keyTile);
    for (int i = threadIdx.x; i < a.largestGroup * kTile; i += kTileThreads) s.columns[i] = 0;
    const TileRange range = rowTilesFor(a, kvHead, keyTile);
    const bool inRegisters = OwnColumns::fits<Tile>(a);
    OwnColumns own;
    for (std::int64_t rowTile = range.begin; rowTile < range.end; ++rowTile) {
        __syncthreads();
        placeRows(s.places, a, kvHead, rowTile);
        __syncthreads();
        if (threadIdx.x < kTile) {
            const std::int64_t slot = s.places.rowSlots[threadIdx.x];
            s.normalisers[threadIdx.x] = slot < 0 ? SoftmaxNormaliser{0, 0} : call.sums.normalisers[slot];
        }
        Number values[kTileValues];
        if (call.sums.logits) {
            const Number* kept = keptTile<Number>(call.sums, kvHead, rowTile, keyTile);
            for (int v = 0; v < kTileValues; ++v) values[v] = kept[v * kTileThreads];
        } else {
            Tile::multiply(s.tile, queriesOf(a, s.places), keysOf(a, s.places), false, rowTile > range.begin, values);
            makeLogits<Tile>(a, s.places, isWhole(a, s.places, kvHead, rowTile, keyTile), values);
        }
        if (!inRegisters || call.sums.logits)
            __syncthreads(); // normalisers are written, and weights may overwrite the operands
        if constexpr (Tile::kKeepsOperands)
            if (inRegisters) {
                own.add(values, s.normalisers);
                continue;
            }
        storeWeights(s, values);
        __syncthreads();
        addColumns(s, a);
    }
    __syncthreads();
    if constexpr (Tile::kKeepsOperands)
        if (inRegisters) {
            static_assert(sizeof(s.tile) >= OwnColumns::kPlaces * kTile * sizeof(double));
            own.finish(reinterpret_cast<double*>(&s.tile), a, s.columns);
            __syncthreads();
        }
    const std::int64_t key = keyTile * kTile + threadIdx.x % kTile;
    if (key >= m) return;
    const bool padded = isShortChunk(a, key);
    const double uniform = padded ? static_cast<double>(call.sums.uniformRows) / static_cast<double>(a.mask.chunk) : 0;
    for (std::int32_t i = threadIdx.x / kTile; i < a.groups[kvHead + 1] - a.groups[kvHead]; i += kTileThreads / kTile)
        call.columns[a.heads[a.groups[kvHead] + i] * m + key] =
            static_cast<float>(s.columns[i * kTile + threadIdx.x % kTile] + uniform);
}

std::int64_t piecesOf(std::int64_t count) { return (count + kTileThreads - 1) / kTileThreads; }

/// Clamps the slice to the tiles and heads that exist.
TileSlice within(TileSlice slice, std::int64_t tiles, const AttentionCall& a) {
    slice.end = slice.end < tiles ? slice.end : tiles;
    slice.headEnd = slice.headEnd < a.keys.heads ? slice.headEnd : a.keys.heads;
    return slice;
}

template <class Tile> std::size_t sharedBytes(const AttentionCall& a) {
    return sizeof(Shared<Tile>) + static_cast<std::size_t>(a.largestGroup) * kTile * sizeof(double);
}

} // namespace

std::size_t softmaxScratchBytes(const AttentionCall& a) {
    const std::int64_t splits = splitsOf(a);
    return splits > 1 ? static_cast<std::size_t>(splits * a.slotCount * a.queryCount) * sizeof(OnlineSoftmax<double>)
                      : 0;
}

std::size_t keptLogitsBytes(const AttentionCall& a) {
    const std::int64_t tiles = a.keys.heads * rowTilesOf(a) * keyTilesOf(a);
    return static_cast<std::size_t>(tiles * kTile * kTile * (a.arithmetic == KernelArithmetic::Exact ? 8 : 4));
}

std::int64_t softmaxTiles(const AttentionCall& a) { return rowTilesOf(a); }

std::int64_t columnTiles(const AttentionCall& a) { return keyTilesOf(a); }

void softmaxNormalisers(const AttentionSumsCall& sums, Stream stream, TileSlice slice) {
    const AttentionCall& a = sums.attention;
    slice = within(slice, rowTilesOf(a), a);
    const SumsCall call{sums, splitsOf(a), nullptr, slice};
    withTile(a, [&](auto tile) {
        using Tile = decltype(tile);
        launch("softmax sums", softmaxKernel<Tile>,
               {slice.end - slice.begin, slice.headEnd - slice.headBegin, call.splits}, kTileThreads,
               sharedBytes<Tile>(a), stream, call);
    });
    if (call.splits > 1) // rows outside the slice are complete already or will be overwritten
        launch("merging softmax sums", mergeSplitsKernel, {piecesOf(a.slotCount * a.queryCount)}, kTileThreads, 0,
               stream, call);
}

void attentionColumnSums(const AttentionSumsCall& sums, float* columns, Stream stream, TileSlice slice) {
    const AttentionCall& a = sums.attention;
    slice = within(slice, keyTilesOf(a), a);
    withTile(a, [&](auto tile) {
        using Tile = decltype(tile);
        launch("attention column sums", columnKernel<Tile>, {slice.end - slice.begin, slice.headEnd - slice.headBegin},
               kTileThreads, sharedBytes<Tile>(a), stream, SumsCall{sums, 1, columns, slice});
    });
}

} // namespace kvscope::gpu
