// Weighted attention. A block keeps a tile of query rows and walks over a part of the terms of their group: logits of
// 64 terms at a time, their online softmax, and the weighted values, all in registers of the warp that has the row. The
// second kernel merges the parts, one warp to a row.
#include "gpu/kernels/weighted_attention.h"

#include "gpu/kernels/attention_tiles.h"
#include "gpu/kernels/lanes.h"
#include "gpu/kernels/stop_word.h"

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kColumns = 128; // of the values, per block
constexpr int kMergeThreads = 256;
constexpr std::int64_t kWantedBlocks = 512, kLeastTiles = 8; // per part

/// Sums of a row over some terms, relative to e^rowMax.
template <class Number> struct RowSums {
    Number rowMax, rowSum, squares; ///< squares: of x e^(l - rowMax)
};

struct WeightedWork {
    WeightedAttentionCall call;
    std::int64_t splits, tilesPerSplit;
    RowSums<double>* sums; ///< [splits, slots R]
    void* outputs;         ///< [splits, slots R, dv] of the tile's numbers
};

/// 64 terms: their keys, values and weights.
template <class Number> struct TermSide {
    TileSide keys;
    std::int64_t valueOffsets[kTile];
    struct {
        Number numerator, denominator;
    } weights[kTile];
};

template <class Tile> struct Shared {
    typename Tile::SharedWithValues tile;
    TileSide rows;
    TermSide<typename Tile::Value> terms[3];
};

/// Terms of a group that queries up to `last` may see.
KVSCOPE_PORTABLE std::int64_t termsUntil(const WeightedAttentionCall& call, std::int64_t listed, std::int64_t last) {
    return listed + (last + 1 > call.tail ? last + 1 - call.tail : 0);
}

/// The terms of one group for a tile of queries.
struct GroupTerms {
    std::int64_t begin, listed, count, kvHead;
    std::int64_t skipped; ///< terms before the sliding window, where none is listed

    __device__ __forceinline__ GroupTerms(const WeightedAttentionCall& call, std::int64_t group, PositionSpan queries)
        : begin(call.offsets[group]), listed(call.offsets[group + 1] - begin),
          count(termsUntil(call, listed, queries.last)), kvHead(call.kvHeads[group]),
          skipped(listed > 0 ? 0 : termsUntil(call, 0, keysSeenBy(call.attention.mask, queries).first - 1)) {}

    /// Tiles of terms that some of the queries see, among those of a part.
    __device__ __forceinline__ TileRange tilesOf(const WeightedWork& work, std::int64_t split) const {
        const std::int64_t first = split * work.tilesPerSplit, all = (count + kTile - 1) / kTile,
                           end = first + work.tilesPerSplit, seen = skipped / kTile;
        return {first > seen ? first : seen, end < all ? end : all};
    }
    /// Whether every query from position `first` on sees every term of the tile.
    __device__ __forceinline__ bool isWhole(const WeightedAttentionCall& call, std::int64_t tile,
                                            std::int64_t first) const {
        const std::int64_t end = (tile + 1) * kTile, lastToken = call.tail - 1 + (end > listed ? end - listed : 0);
        return call.attention.mask.slidingWindow == 0 && end <= count && lastToken <= first;
    }
};

/// Fills in the terms of a tile; a barrier must follow.
template <class Number>
__device__ __forceinline__ void placeTerms(TermSide<Number>& side, const WeightedAttentionCall& call,
                                           const GroupTerms& terms, std::int64_t tile) {
    const int k = threadIdx.x;
    if (k >= kTile) return;
    const std::int64_t term = tile * kTile + k;
    const bool there = term < terms.count, isListed = term < terms.listed;
    const std::int64_t token = isListed ? call.tokens[terms.begin + term] : call.tail + term - terms.listed;
    const DeviceRows& keys = call.attention.keys;
    side.keys.offsets[k] = there ? terms.kvHead * keys.headStride + token * keys.width : -1;
    side.keys.positions[k] = token;
    side.valueOffsets[k] = there ? terms.kvHead * call.values.headStride + token * call.values.width : -1;
    side.weights[k] = {isListed ? Number(call.numerator[terms.begin + term]) : Number(1),
                       isListed ? Number(call.denominator[terms.begin + term]) : Number(1)};
}

/// Adds this thread's terms of a row: values, whose logits are value * scale, become weights x e^(l - rowMax). Returns
/// the factor for everything that was added before.
template <class Number, int Count, class WeightsOf>
__device__ __forceinline__ Number addTerms(RowSums<Number>& row, Number scale, Number (&values)[Count],
                                           const WeightsOf& weightsOf) {
    Number largest = row.rowMax;
    KVSCOPE_UNROLL for (const Number value : values) largest = largerOf(largest, value);
    largest = overRow(largest, [](Number a, Number b) { return largerOf(a, b); });
    // Nothing was seen yet where it is -infinity, and e^-infinity is 0.
    const Number shift = largest == -Number(__builtin_inff()) ? Number(0) : -(largest * scale);
    const Number factor = powerOf(multiplyAdd(row.rowMax, scale, shift));
    row = {largest, row.rowSum * factor, row.squares * factor * factor};
    KVSCOPE_UNROLL for (int k = 0; k < Count; ++k) {
        const Number power = powerOf(multiplyAdd(values[k], scale, shift));
        const auto weights = weightsOf(k);
        values[k] = weights.numerator * power;
        row.rowSum = multiplyAdd(weights.denominator, power, row.rowSum);
        row.squares = multiplyAdd(values[k], values[k], row.squares);
    }
    return factor;
}

template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kWeightedBlocks) weightedKernel(WeightedWork work) {
    using Number = typename Tile::Value;
    auto& s = sharedAs<Shared<Tile>>();
    const WeightedAttentionCall& call = work.call;
    const AttentionCall& a = call.attention;
    if (isStopped(a.stop)) return;
    const LogitShape<Number> shape(a);
    const std::int64_t group = blockIdx.y, rowTile = blockIdx.x, split = blockIdx.z % work.splits,
                       column = blockIdx.z / work.splits * kColumns;
    const PositionSpan queries = spanOfRows(a, rowTile);
    const GroupTerms terms(call, group, queries);
    const TileRange range = terms.tilesOf(work, split);
    placeRows(s.rows, a, group, rowTile);
    for (int ahead = 0; ahead < 2; ++ahead) placeTerms(s.terms[ahead], call, terms, range.begin + ahead);
    __syncthreads();
    const auto valuesOf = [&](int place) { return rowsAt(call.values, s.terms[place].valueOffsets); };
    RowSums<Number> rows[Tile::kSlots];
    for (RowSums<Number>& row : rows) row = {-Number(__builtin_inff()), 0, 0};
    typename Tile::Outputs outputs = {};
    TileWalk walk(range, {0, 0});
    Tile tile;
    if (!walk.isAtEnd()) {
        tile.request(s.tile, queriesOf(a, s.rows), keysOf(a, s.terms[0].keys));
        tile.start(s.tile, queriesOf(a, s.rows), keysOf(a, s.terms[0].keys));
    }
    for (; !walk.isAtEnd(); walk.step()) {
        Number weights[Tile::kSlots][Tile::kPerSlot];
        const auto& side = s.terms[walk.place];
        tile.multiply(
            s.tile, queriesOf(a, s.rows), keysOf(a, side.keys), walk.stage,
            [&] { tile.fetchValues(s.tile, valuesOf(walk.place), column); }, weights);
        placeTerms(s.terms[walk.placeAfter(2)], call, terms, walk.tile + 2);
        shape.apply(weights);
        if (!terms.isWhole(call, walk.tile, queries.first))
            maskLogits<Tile>(weights, [&](int row, int key) { return isSeen(a, s.rows, row, side.keys, key); });
        KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
            const Number factor = addTerms(rows[slot], shape.factor(), weights[slot],
                                           [&](int k) { return side.weights[Tile::columnOf(k)]; });
            KVSCOPE_UNROLL for (int n = 0; n < kColumns / 8; ++n) {
                KVSCOPE_UNROLL for (int j = 0; j < 2; ++j) Tile::outputAt(outputs, slot, n, j) *= factor;
            }
        }
        tile.addWeighted(
            s.tile, weights, valuesOf(walk.place), column,
            [&] {
                if (!walk.isLast()) tile.fetch(s.tile, keysOf(a, s.terms[walk.placeAfter(1)].keys), 1 - walk.stage);
            },
            outputs);
    }
    const std::int64_t part = split * a.slotCount * a.queryCount;
    const auto sum = [](Number x, Number y) { return x + y; };
    KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
        const RowSums<Number> row{rows[slot].rowMax, overRow(rows[slot].rowSum, sum), overRow(rows[slot].squares, sum)};
        const std::int64_t to = s.rows.rowSlots[Tile::rowOf(slot)];
        if (to < 0) continue;
        if (column == 0 && Tile::lane() % 4 == 0)
            work.sums[part + to] = {double(row.rowMax * shape.factor()) / double(kLogitsPerNat<Number>),
                                    double(row.rowSum), double(row.squares)};
        KVSCOPE_UNROLL for (int n = 0; n < kColumns / 8; ++n) {
            KVSCOPE_UNROLL for (int j = 0; j < 2; ++j) {
                const std::int64_t c = column + n * 8 + Tile::lane() % 4 * 2 + j;
                if (c < call.values.width)
                    static_cast<Number*>(work.outputs)[(part + to) * call.values.width + c] =
                        Tile::outputAt(outputs, slot, n, j);
            }
        }
    }
}

/// Merges the parts of a row in ascending order and writes its results.
template <class Number> __global__ void __launch_bounds__(kMergeThreads) mergePartsKernel(WeightedWork work) {
    const WeightedAttentionCall& call = work.call;
    const AttentionCall& a = call.attention;
    const std::int64_t count = a.slotCount * a.queryCount, dv = call.values.width;
    const std::int64_t index = std::int64_t{blockIdx.x} * (kMergeThreads / kWarp) + threadIdx.x / kWarp;
    const bool there = index < count; // all lanes of a warp take part in the sums
    const std::int64_t slot = there ? index : count - 1, head = a.heads[slot / a.queryCount],
                       query = slot % a.queryCount;
    OnlineSoftmax<double> row;
    if (call.sinks) row = {double(call.sinks[slot / a.queryCount]), 1};
    for (std::int64_t split = 0; split < work.splits; ++split) {
        const double other = work.sums[split * count + slot].rowMax;
        row.updateMax(other);
    }
    double squares = 0;
    const auto factorOf = [&](const RowSums<double>& part) {
        return part.rowMax == row.rowMax ? 1 : softmaxExp(part.rowMax - row.rowMax);
    };
    for (std::int64_t split = 0; split < work.splits; ++split) {
        const RowSums<double> part = work.sums[split * count + slot];
        const double factor = factorOf(part);
        row.rowSum += factor * part.rowSum;
        squares += factor * factor * part.squares;
    }
    const bool nothing = row.rowSum <= 0; // false for NaN, which passes through
    const std::int64_t out = head * call.outStride + query;
    double distance = 0, norm = 0;
    for (std::int64_t c = threadIdx.x % kWarp; c < dv; c += kWarp) {
        double sum = 0;
        for (std::int64_t split = 0; split < work.splits; ++split)
            sum += factorOf(work.sums[split * count + slot]) *
                   double(static_cast<const Number*>(work.outputs)[(split * count + slot) * dv + c]);
        const float z = nothing ? 0.0F : static_cast<float>(sum / row.rowSum);
        if (call.output && there) call.output[out * dv + c] = z;
        if (!call.reference.data) continue;
        const double exact = elementOf(call.reference, head, query, c), difference = double(z) - exact;
        distance += difference * difference;
        norm += exact * exact;
    }
    distance = sumOfLanes<kWarp>(distance);
    norm = sumOfLanes<kWarp>(norm);
    if (!there || threadIdx.x % kWarp != 0) return;
    const double none = -__builtin_inf();
    call.logDenominator[out] = static_cast<float>(nothing ? none : log(row.rowSum) + row.rowMax);
    call.logNorm[out] = static_cast<float>(squares <= 0 ? none : 0.5 * log(squares) + row.rowMax);
    if (call.error)
        call.error[out] = sqrt(norm) < 1e-12 ? __builtin_nanf("") : static_cast<float>(sqrt(distance) / sqrt(norm));
}

/// Parts of the terms. Their number depends on the shape alone, so that sums keep their order.
WeightedWork workOf(const WeightedAttentionCall& call) {
    const AttentionCall& a = call.attention;
    const std::int64_t last = a.firstQuery + a.queryCount - 1;
    const std::int64_t tiles = (termsUntil(call, call.mostListed, last) + kTile - 1) / kTile;
    const std::int64_t blocks = rowTilesOf(a) * call.groupCount, most = (tiles + kLeastTiles - 1) / kLeastTiles;
    const std::int64_t wanted = blocks > 0 ? kWantedBlocks / blocks : 1;
    const std::int64_t splits = wanted < 1 || most < 1 ? 1 : wanted < most ? wanted : most;
    const std::int64_t rows = splits * a.slotCount * a.queryCount;
    auto* sums = reinterpret_cast<RowSums<double>*>(call.scratch);
    return {call, splits, (tiles + splits - 1) / splits, sums, call.scratch ? sums + rows : nullptr};
}

} // namespace

std::int64_t weightedScratch(const WeightedAttentionCall& call) {
    const AttentionCall& a = call.attention;
    return workOf(call).splits * a.slotCount * a.queryCount * (3 + call.values.width);
}

void weightedAttention(const WeightedAttentionCall& call, Stream stream) {
    const AttentionCall& a = call.attention;
    const WeightedWork work = workOf(call);
    const std::int64_t panels = (call.values.width + kColumns - 1) / kColumns, rows = a.slotCount * a.queryCount;
    const auto run = [&](auto tile) {
        using Tile = decltype(tile);
        launch("weighted attention", weightedKernel<Tile>, {rowTilesOf(a), call.groupCount, work.splits * panels},
               Tile::kThreads, sizeof(Shared<Tile>), stream, work);
        constexpr std::int64_t kRows = kMergeThreads / kWarp;
        launch("merging weighted attention", mergePartsKernel<typename Tile::Value>, {(rows + kRows - 1) / kRows},
               kMergeThreads, 0, stream, work);
    };
    const auto isBFloat = [](const DeviceRows& r) { return r.type == ElementType::BFloat16; };
    if (a.arithmetic == KernelArithmetic::Fast && isBFloat(a.queries) && isBFloat(a.keys) && isBFloat(call.values))
        run(TensorProducts<BFloat16>{});
    else
        run(DoubleProducts<8, 64>{}); // reads any type
}

} // namespace kvscope::gpu
