// Row sums (softmax normalisers) and column sums (accumulated attention) of the attention weights. The first kernel
// keeps a tile of query rows and walks over the keys that they see, with the online-softmax state of every row in
// registers; the second keeps a tile of keys and walks over the rows that see them, with every key's sums in registers.
#include "gpu/kernels/attention_sums.h"

#include "gpu/kernels/attention_tiles.h"
#include "gpu/kernels/stop_word.h"

#include <cassert>

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kKeyTilesPerSplit = 8; // with few rows, 512 keys per block
constexpr std::int64_t kManyBlocks = 256;
constexpr int kMergeThreads = 256;

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

/// Whether the position lies in a short last chunk, to which the padding rules apply (C8).
__device__ __forceinline__ bool isShortChunk(const AttentionCall& call, std::int64_t position) {
    return call.mask.kind == MaskKind::Chunks && (position / call.mask.chunk + 1) * call.mask.chunk > call.keys.rows;
}

/// Writes the normaliser of a row whose online softmax is complete.
__device__ __forceinline__ void finishRow(const AttentionSumsCall& call, std::int64_t slot, OnlineSoftmax<double> sum) {
    const std::int64_t query = slot % call.attention.queryCount;
    if (call.zeroKeys > 0 && isShortChunk(call.attention, positionOfQuery(call.attention, query))) {
        sum.updateMax(0);
        sum.rowSum += static_cast<double>(call.zeroKeys) * softmaxExp(0 - sum.rowMax);
    }
    call.normalisers[slot] = normaliserOf(sum);
}

template <class Tile> struct SoftmaxShared {
    union { // the parts overwrite the last tile
        typename Tile::Shared tile;
        OnlineSoftmax<double> parts[kTile][Tile::kColumnWarps];
    };
    TileSide rows, keys[3];
    unsigned whole[2];
};

/// The online softmax of a thread's rows. Maxima are of values, a logit is value * factor.
template <class Tile> class RowSums {
public:
    using Number = typename Tile::Value;

    __device__ __forceinline__ explicit RowSums(Number factor) : m_factor(factor) {}

    __device__ __forceinline__ void add(const Number (&values)[Tile::kSlots][Tile::kPerSlot]) {
        Number shift[Tile::kSlots];
        KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
            Number largest = m_rows[slot].rowMax;
            KVSCOPE_UNROLL for (const Number value : values[slot]) largest = largerOf(largest, value);
            shift[slot] = updateMax(m_rows[slot], largest);
        }
        KVSCOPE_UNROLL for (int k = 0; k < Tile::kPerSlot; ++k) {
            KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) m_rows[slot].rowSum +=
                powerOf(multiplyAdd(values[slot][k], m_factor, shift[slot]));
        }
    }

    /// The sums of a row over the warp's columns, of natural logits; the lanes of the row get the same.
    __device__ __forceinline__ OnlineSoftmax<double> ofRow(int slot) {
        OnlineSoftmax<Number>& row = m_rows[slot];
        updateMax(row, overRow(row.rowMax, [](Number a, Number b) { return largerOf(a, b); }));
        const Number sum = overRow(row.rowSum, [](Number a, Number b) { return a + b; });
        return {double(row.rowMax * m_factor) / double(kLogitsPerNat<Number>), double(sum)};
    }

private:
    /// Rescales rowSum to terms e^(logit - largest). Returns the shift of logits: 0 where largest is -infinity, because
    /// nothing was seen yet and e^-infinity is 0.
    __device__ __forceinline__ Number updateMax(OnlineSoftmax<Number>& row, Number largest) const {
        const Number shift = largest == -Number(__builtin_inff()) ? Number(0) : -(largest * m_factor);
        row = {largest, row.rowSum * powerOf(multiplyAdd(row.rowMax, m_factor, shift))};
        return shift;
    }

    Number m_factor;
    OnlineSoftmax<Number> m_rows[Tile::kSlots];
};

template <class Tile> __global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) softmaxKernel(SumsCall call) {
    using Number = typename Tile::Value;
    auto& s = sharedAs<SoftmaxShared<Tile>>();
    const AttentionCall& a = call.sums.attention;
    if (isStopped(a.stop)) return;
    const LogitShape<Number> shape(a);
    const std::int64_t kvHead = blockIdx.y, rowTile = call.tiles.end - 1 - blockIdx.x; // the longest rows first
    const std::int64_t perSplit = call.splits > 1 ? kKeyTilesPerSplit : keyTilesOf(a);
    TileRange range = keyTilesFor(a, kvHead, rowTile);
    const std::int64_t from = blockIdx.z * perSplit, to = from + perSplit;
    range = {range.begin > from ? range.begin : from, range.end < to ? range.end : to};
    placeRows(s.rows, a, kvHead, rowTile);
    for (int ahead = 0; ahead < 2; ++ahead) placeKeys(s.keys[ahead], a, kvHead, range.begin + ahead);
    Tile tile;
    TileWalk walk(range, wholeTiles(
                             s.whole, range, Tile::kThreads,
                             [&] { tile.request(s.tile, queriesOf(a, s.rows), keysOf(a, s.keys[0])); },
                             [&](std::int64_t keyTile) { return isWhole(a, kvHead, rowTile, keyTile); }));
    RowSums<Tile> sums(shape.factor());
    if (!walk.isAtEnd()) tile.start(s.tile, queriesOf(a, s.rows), keysOf(a, s.keys[0]));
    for (; !walk.isAtEnd(); walk.step()) {
        Number logits[Tile::kSlots][Tile::kPerSlot];
        const TileSide& keys = s.keys[walk.place];
        tile.multiply(
            s.tile, queriesOf(a, s.rows), keysOf(a, keys), walk.stage,
            [&] {
                if (!walk.isLast()) tile.fetch(s.tile, keysOf(a, s.keys[walk.placeAfter(1)]), 1 - walk.stage);
            },
            logits);
        placeKeys(s.keys[walk.placeAfter(2)], a, kvHead, walk.tile + 2);
        shape.apply(logits);
        if (!walk.isWhole())
            maskLogits<Tile>(logits, [&](int row, int column) { return isSeen(a, s.rows, row, keys, column); });
        sums.add(logits);
    }
    __syncthreads();
    KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
        const OnlineSoftmax<double> row = sums.ofRow(slot);
        if (Tile::lane() % 4 == 0) s.parts[Tile::rowOf(slot)][Tile::columnWarp()] = row;
    }
    __syncthreads();
    const std::int64_t slot = threadIdx.x < kTile ? s.rows.rowSlots[threadIdx.x] : -1;
    if (slot < 0) return;
    OnlineSoftmax<double> row;
    for (const OnlineSoftmax<double>& part : s.parts[threadIdx.x]) row.merge(part);
    if (call.splits > 1)
        call.sums.scratch[blockIdx.z * a.slotCount * a.queryCount + slot] = row;
    else
        finishRow(call.sums, slot, row);
}

/// Merges the splits of a row, one warp to a row.
__global__ void __launch_bounds__(kMergeThreads) mergeSplitsKernel(SumsCall call) {
    const AttentionCall& a = call.sums.attention;
    const std::int64_t count = a.slotCount * a.queryCount;
    const std::int64_t i = std::int64_t{blockIdx.x} * (kMergeThreads / kWarp) + threadIdx.x / kWarp;
    const int lane = threadIdx.x % kWarp;
    if (i >= count) return; // the whole warp returns
    OnlineSoftmax<double> row;
    for (std::int64_t split = lane; split < call.splits; split += kWarp)
        row.merge(call.sums.scratch[split * count + i]);
    for (int half = kWarp / 2; half > 0; half /= 2)
        row.merge({__shfl_xor_sync(kAllLanes, row.rowMax, half), __shfl_xor_sync(kAllLanes, row.rowSum, half)});
    if (lane == 0) finishRow(call.sums, i, row);
}

/// Sums of a key that a warp ends with: up to sixteen heads are the same in every sixteen places of a tile.
constexpr int kTotals = 16;
constexpr int kThreadTotals = 4; // of a thread: its columns k, k + 4, .. have the same head

template <class Tile> struct ColumnShared {
    static constexpr int kStride = kTotals * Tile::kColumnWarps + 1; ///< odd, against shared-memory bank conflicts
    union {                                                          // the totals overwrite the last tile
        typename Tile::Shared tile;
        typename Tile::Value totals[kTile][kStride];
    };
    TileSide keys, rows[3];
    WeightShift<typename Tile::Value> shifts[3][kTile];
    unsigned whole[2];
};

/// Writes what the warps have summed up, for every key and member of the group.
template <class Tile>
__device__ __forceinline__ void writeColumns(const ColumnShared<Tile>& s, const SumsCall& call, std::int64_t kvHead,
                                             std::int64_t keyTile) {
    const AttentionCall& a = call.sums.attention;
    const PlaceRule rule(a);
    const int place = threadIdx.x % kTile;
    const std::int64_t key = keyTile * kTile + place, m = a.keys.rows;
    if (key >= m) return;
    const bool padded = isShortChunk(a, key);
    const double uniform = padded ? static_cast<double>(call.sums.uniformRows) / static_cast<double>(a.mask.chunk) : 0;
    const std::int32_t begin = a.groups[kvHead], members = a.groups[kvHead + 1] - begin;
    for (std::int32_t member = threadIdx.x / kTile; member < members; member += Tile::kThreads / kTile) {
        double sum = uniform;
        for (int i = 0; i < kTotals >> rule.bits; ++i)
            for (int warp = 0; warp < Tile::kColumnWarps; ++warp)
                sum += double(s.totals[place][warp * kTotals + rule.placeOf({i, member})]);
        call.columns[a.heads[begin + member] * m + key] = static_cast<float>(sum);
    }
}

template <class Tile> __global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) columnKernel(SumsCall call) {
    using Number = typename Tile::Value;
    auto& s = sharedAs<ColumnShared<Tile>>();
    const AttentionCall& a = call.sums.attention;
    if (isStopped(a.stop)) return;
    const LogitShape<Number> shape(a);
    const auto heads = static_cast<unsigned>(a.keys.heads); // heads alternate, so that no head's long walks begin last
    const std::int64_t kvHead = blockIdx.x % heads, keyTile = call.tiles.begin + blockIdx.x / heads;
    const TileRange range = rowTilesFor(a, kvHead, keyTile);
    QueryPlacer placer(a, kvHead);
    SoftmaxNormaliser normaliser{0, 0};
    const auto read = [&](std::int64_t rowTile) {
        placer.read(rowTile);
        if (placer.isNormalising()) normaliser = normaliserAt(call.sums.normalisers, placer.slot());
    };
    const auto put = [&](int to) {
        placer.put(s.rows[to]);
        if (placer.isNormalising()) s.shifts[to][placer.place()] = shiftOf<Number>(normaliser);
    };
    placeKeys(s.keys, a, kvHead, keyTile);
    for (int ahead = 0; ahead < 2; ++ahead) {
        read(range.begin + ahead);
        put(ahead);
    }
    read(range.begin + 2);
    Tile tile;
    TileWalk walk(range, wholeTiles(
                             s.whole, range, Tile::kThreads,
                             [&] { tile.request(s.tile, keysOf(a, s.keys), queriesOf(a, s.rows[0])); },
                             [&](std::int64_t rowTile) { return isWhole(a, kvHead, rowTile, keyTile); }));
    Number sums[Tile::kSlots][kThreadTotals] = {};
    if (!walk.isAtEnd()) tile.start(s.tile, keysOf(a, s.keys), queriesOf(a, s.rows[0]));
    for (; !walk.isAtEnd(); walk.step()) {
        Number logits[Tile::kSlots][Tile::kPerSlot];
        const TileSide& rows = s.rows[walk.place];
        tile.multiply(
            s.tile, keysOf(a, s.keys), queriesOf(a, rows), walk.stage,
            [&] {
                if (!walk.isLast()) tile.fetch(s.tile, queriesOf(a, s.rows[walk.placeAfter(1)]), 1 - walk.stage);
            },
            logits);
        put(walk.placeAfter(2));
        read(walk.tile + 3);
        shape.apply(logits);
        if (!walk.isWhole())
            maskLogits<Tile>(logits, [&](int key, int column) { return isSeen(a, rows, column, s.keys, key); });
        KVSCOPE_UNROLL for (int k = 0; k < Tile::kPerSlot; ++k) {
            const auto shift = s.shifts[walk.place][Tile::columnOf(k)];
            KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) sums[slot][k % kThreadTotals] +=
                shift.weightOf(logits[slot][k], shape.factor());
        }
    }
    __syncthreads();
    KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
        KVSCOPE_UNROLL for (int k = 0; k < kThreadTotals; ++k)
            s.totals[Tile::rowOf(slot)][Tile::columnWarp() * kTotals + Tile::columnOf(k) % kTotals] = sums[slot][k];
    }
    __syncthreads();
    writeColumns(s, call, kvHead, keyTile);
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
        launch("softmax sums", softmaxKernel<Tile>, {call.tiles.end - begin, a.keys.heads, call.splits}, Tile::kThreads,
               sizeof(SoftmaxShared<Tile>), stream, call);
        const std::int64_t rows = a.slotCount * a.queryCount;
        if (isLast && call.splits > 1)
            launch("merging softmax sums", mergeSplitsKernel, {(rows * kWarp + kMergeThreads - 1) / kMergeThreads},
                   kMergeThreads, 0, stream, call);
    });
}

void attentionColumnSums(const AttentionSumsCall& sums, float* columns, Stream stream, std::int64_t begin,
                         std::int64_t end) {
    const AttentionCall& a = sums.attention;
    assert(a.largestGroup <= kTotals);
    end = end < keyTilesOf(a) ? end : keyTilesOf(a);
    withTile(a, [&](auto tile) {
        using Tile = decltype(tile);
        launch("attention column sums", columnKernel<Tile>, {(end - begin) * a.keys.heads}, Tile::kThreads,
               sizeof(ColumnShared<Tile>), stream, SumsCall{sums, 1, columns, {begin, end}});
    });
}

} // namespace kvscope::gpu
