// Weighted attention. A block takes a tile of query rows over a part of the terms of their group: logits of 64 terms at
// a time, their online softmax, four threads to a row, and the weighted values in registers, which are rescaled when
// the row's maximum rises. The second kernel merges the parts, one warp to a row.
#include "gpu/kernels/weighted_attention.h"

#include "gpu/kernels/attention_rows.h"
#include "gpu/kernels/lanes.h"
#include "gpu/kernels/stop_word.h"
#include "gpu/kernels/tensor_tile.h"

namespace kvscope::gpu {

namespace {

constexpr int kStride = kTile + 1;
constexpr int kPanels = 2; // 64 columns of the values each
constexpr std::int64_t kColumns = kPanels * kTile;
constexpr int kRowThreads = kTileThreads / kTile;
constexpr int kRowTerms = kTile / kRowThreads;
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

template <class Tile> struct Shared {
    using Number = typename Tile::Value;
    typename Tile::Shared tile;
    Number weights[kTile * kStride]; ///< logits, then x e^(l - rowMax)
    Number numerator[kTile], denominator[kTile], rescale[kTile];
    std::int64_t valueOffsets[kTile];
    TilePlaces places;
};

/// Terms of a group that queries up to `last` may see.
KVSCOPE_PORTABLE std::int64_t termsUntil(const WeightedAttentionCall& call, std::int64_t listed, std::int64_t last) {
    return listed + (last + 1 > call.tail ? last + 1 - call.tail : 0);
}

/// Fills in 64 terms from `first` on; a barrier must follow.
template <class Tile>
__device__ __forceinline__ void placeTerms(Shared<Tile>& s, const WeightedAttentionCall& call, std::int64_t group,
                                           std::int64_t first, std::int64_t terms) {
    using Number = typename Tile::Value;
    const int k = threadIdx.x;
    if (k >= kTile) return;
    const std::int64_t term = first + k, begin = call.offsets[group], listed = call.offsets[group + 1] - begin;
    const bool isListed = term < listed;
    const std::int64_t token = isListed ? call.tokens[begin + term] : call.tail + term - listed;
    const DeviceRows& keys = call.attention.keys;
    const std::int64_t kv = call.kvHeads[group];
    s.places.keyOffsets[k] = term < terms ? kv * keys.headStride + token * keys.width : -1;
    s.places.keyPositions[k] = token;
    s.valueOffsets[k] = term < terms ? kv * call.values.headStride + token * call.values.width : -1;
    s.numerator[k] = isListed ? Number(call.numerator[begin + term]) : Number(1);
    s.denominator[k] = isListed ? Number(call.denominator[begin + term]) : Number(1);
}

/// Adds the tile's terms to the row of this thread, of which it has kRowTerms; logits become weights.
template <class Tile> __device__ __forceinline__ void addTerms(Shared<Tile>& s, RowSums<typename Tile::Value>& row) {
    using Number = typename Tile::Value;
    const Number none = -Number(__builtin_inff());
    const int r = threadIdx.x / kRowThreads, first = threadIdx.x % kRowThreads * kRowTerms;
    Number* weights = s.weights + r * kStride;
    Number largest = row.rowMax;
    for (int k = first; k < first + kRowTerms; ++k) largest = weights[k] > largest ? weights[k] : largest;
    for (int half = kRowThreads / 2; half > 0; half /= 2) {
        const Number other = __shfl_xor_sync(kAllLanes, largest, half);
        largest = other > largest ? other : largest;
    }
    const Number factor = largest == row.rowMax ? Number(1) : softmaxExp(row.rowMax - largest);
    row = {largest, row.rowSum * factor, row.squares * factor * factor};
    for (int k = first; k < first + kRowTerms; ++k) {
        const Number power = weights[k] == none ? Number(0) : softmaxExp(weights[k] - largest);
        const Number weight = s.numerator[k] * power;
        row.rowSum += s.denominator[k] * power;
        row.squares += weight * weight;
        weights[k] = weight;
    }
    if (first == 0) s.rescale[r] = factor;
}

template <class Tile> __global__ void __launch_bounds__(kTileThreads) weightedKernel(WeightedWork work) {
    using Number = typename Tile::Value;
    Shared<Tile>& s = sharedAs<Shared<Tile>>();
    const WeightedAttentionCall& call = work.call;
    const AttentionCall& a = call.attention;
    if (isStopped(a.stop)) return;
    const LogitShape<Number> shape(a);
    const std::int64_t group = blockIdx.y, rowTile = blockIdx.x, split = blockIdx.z % work.splits,
                       column = blockIdx.z / work.splits * kColumns,
                       listed = call.offsets[group + 1] - call.offsets[group];
    placeRows(s.places, a, group, rowTile);
    const PositionSpan rows = spanOfRows(a, rowTile);
    const std::int64_t terms = termsUntil(call, listed, rows.last), end = (split + 1) * work.tilesPerSplit * kTile;
    const std::int64_t firstSeen = termsUntil(call, listed, keysSeenBy(a.mask, rows).first - 1); // of the tail
    RowSums<Number> row{-Number(__builtin_inff()), 0, 0};
    Number outputs[kPanels][kTileValues] = {};
    for (std::int64_t first = split * work.tilesPerSplit * kTile; first < (end < terms ? end : terms); first += kTile) {
        if (first >= listed && first + kTile <= firstSeen) continue; // before the sliding window
        __syncthreads();
        placeTerms(s, call, group, first, terms);
        __syncthreads();
        Number values[kTileValues];
        Tile::multiply(s.tile, queriesOf(a, s.places), keysOf(a, s.places), false, false, values);
        makeLogits<Tile>(a, s.places, shape, false, values);
        for (int v = 0; v < kTileValues; ++v) s.weights[Tile::rowOf(v) * kStride + Tile::keyOf(v)] = values[v];
        __syncthreads();
        addTerms(s, row);
        __syncthreads();
        KVSCOPE_UNROLL for (int panel = 0; panel < kPanels; ++panel) {
            for (int v = 0; v < kTileValues; ++v) outputs[panel][v] *= s.rescale[Tile::rowOf(v)];
            if (column + panel * kTile < call.values.width)
                Tile::addWeighted(s.tile, s.weights, kStride,
                                  {call.values.data, call.values.type, call.values.width, s.valueOffsets},
                                  column + panel * kTile, outputs[panel]);
        }
    }
    __syncthreads();
    for (int half = kRowThreads / 2; half > 0; half /= 2) {
        row.rowSum += __shfl_xor_sync(kAllLanes, row.rowSum, half);
        row.squares += __shfl_xor_sync(kAllLanes, row.squares, half);
    }
    const std::int64_t part = split * a.slotCount * a.queryCount, slot = s.places.rowSlots[threadIdx.x / kRowThreads];
    if (column == 0 && slot >= 0 && threadIdx.x % kRowThreads == 0)
        work.sums[part + slot] = {double(row.rowMax), double(row.rowSum), double(row.squares)};
    KVSCOPE_UNROLL for (int panel = 0; panel < kPanels; ++panel) {
        for (int v = 0; v < kTileValues; ++v) {
            const std::int64_t to = s.places.rowSlots[Tile::rowOf(v)], c = column + panel * kTile + Tile::keyOf(v);
            if (to >= 0 && c < call.values.width)
                static_cast<Number*>(work.outputs)[(part + to) * call.values.width + c] = outputs[panel][v];
        }
    }
}

/// Merges the parts of a row in ascending order and writes its results.
template <class Number> __global__ void __launch_bounds__(kTileThreads) mergePartsKernel(WeightedWork work) {
    const WeightedAttentionCall& call = work.call;
    const AttentionCall& a = call.attention;
    const std::int64_t count = a.slotCount * a.queryCount, dv = call.values.width;
    const std::int64_t index = std::int64_t{blockIdx.x} * (kTileThreads / kWarp) + threadIdx.x / kWarp;
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
               kTileThreads, sizeof(Shared<Tile>), stream, work);
        constexpr std::int64_t kRows = kTileThreads / kWarp;
        launch("merging weighted attention", mergePartsKernel<typename Tile::Value>, {(rows + kRows - 1) / kRows},
               kTileThreads, 0, stream, work);
    };
    const auto isBFloat = [](const DeviceRows& r) { return r.type == ElementType::BFloat16; };
    if (a.arithmetic == KernelArithmetic::Exact)
        run(PlainTile<double>{});
    else if (isBFloat(a.queries) && isBFloat(a.keys) && isBFloat(call.values))
        run(TensorTile<BFloat16>{});
    else
        run(PlainTile<float>{}); // reads any type
}

} // namespace kvscope::gpu
