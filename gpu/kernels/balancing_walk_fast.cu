// Self-balancing walks in fast arithmetic, one block of threads per walk: 64 rows at a time (the lanes) are multiplied
// with all earlier rows, tile by tile as attention logits are, on tensor cores for 16-bit rows. A tile's entries stay
// in shared memory until they are added up; then one warp steps through the lanes.
#include "gpu/kernels/balancing_walk.h"

#include "gpu/kernels/lanes.h"
#include "gpu/kernels/tensor_tile.h"
#include "gpu/kernels/walk_lanes.h"

namespace kvscope::gpu {

namespace {

constexpr int kThreads = kTileThreads;
constexpr int kParts = kThreads / kTile; // threads that share the sum of one lane
constexpr int kRowsPerPart = kTile / kParts;
constexpr int kLanesPerThread = kTile / kWarp;

/// 64 rows of a walk: offsets of their keys and values, and the other factors of their entries.
struct TileOfWalk {
    std::int64_t keyOffsets[kTile], valueOffsets[kTile]; ///< in elements; -1: no such row
    WalkTerm terms[kTile];
};

template <class Tile> struct Shared {
    union { // the entries overwrite the rows that they were computed from
        typename Tile::Shared tile;
        double matrix[kTile][kTile + 1];
    };
    TileOfWalk panel, lanes;
    double sums[kParts][kTile];
    std::int32_t ended;
    double centre[1]; ///< [centreNumbers]
};

/// Doubles for the partial sums of the centre, which the centre then overwrites.
constexpr std::int64_t centreNumbers(std::int64_t width) { return width > kThreads ? width : kThreads; }

/// Rows first .. first + 64 of the walk; a barrier must follow.
__device__ __forceinline__ void place(TileOfWalk& to, const WalksCall& call, const Walk& walk, std::int64_t first) {
    const int r = threadIdx.x;
    if (r >= kTile) return;
    const bool there = first + r < walk.count;
    const std::int64_t entry = walk.begin + first + r, row = there ? walk.rows[first + r] : 0;
    to.keyOffsets[r] = there ? walk.rule.head * call.keys.headStride + row * call.keys.width : -1;
    to.valueOffsets[r] = there ? walk.rule.head * call.values.headStride + row * call.values.width : -1;
    to.terms[r] = {there ? call.scratch[entry] : 0, there && call.weights ? call.weights[entry] : 1};
}

/// M_ij of the panel's rows against the lanes.
template <class Tile>
__device__ __forceinline__ void fillMatrix(Shared<Tile>& s, const WalksCall& call, const Walk& walk) {
    const auto multiply = [&](const DeviceRows& from, const std::int64_t* panel, const std::int64_t* lanes,
                              float(&products)[kTileValues]) {
        Tile::multiply(s.tile, {from.data, from.type, from.width, panel}, {from.data, from.type, from.width, lanes},
                       false, false, products);
    };
    float values[kTileValues] = {}, keys[kTileValues];
    if (call.values.data) multiply(call.values, s.panel.valueOffsets, s.lanes.valueOffsets, values);
    multiply(call.keys, s.panel.keyOffsets, s.lanes.keyOffsets, keys);
    __syncthreads();
    for (int v = 0; v < kTileValues; ++v) {
        const int row = Tile::rowOf(v), lane = Tile::keyOf(v);
        s.matrix[row][lane] = fastWalkEntry(walk.rule, keys[v], values[v], s.panel.terms[row], s.lanes.terms[lane]);
    }
    __syncthreads();
}

/// Computes the centre c of the walk, with the threads split over columns and rows; false when c is 0.
template <class Tile>
__device__ __forceinline__ bool fillCentre(Shared<Tile>& s, const WalksCall& call, const Walk& walk) {
    const std::int64_t d = call.keys.width, parts = d < kThreads ? kThreads / d : 1;
    if (walk.rule.meanOver <= 0 && !call.centres) return false;
    for (std::int64_t i = threadIdx.x; i < parts * d; i += kThreads) {
        double sum = 0;
        if (walk.rule.meanOver > 0)
            for (std::int64_t r = i / d; r < walk.count; r += parts)
                sum += double(elementOf(call.keys, walk.rule.head, walk.rows[r], i % d));
        else
            sum = i < d ? call.centres[walk.rule.head * d + i] : 0;
        s.centre[i] = sum;
    }
    __syncthreads();
    for (std::int64_t c = threadIdx.x; c < d; c += kThreads) {
        double sum = s.centre[c];
        for (std::int64_t part = 1; part < parts; ++part) sum += s.centre[part * d + c];
        s.centre[c] = walk.rule.meanOver > 0 ? sum / static_cast<double>(walk.rule.meanOver) : sum;
    }
    __syncthreads();
    return true;
}

/// Writes <k_i, c> - <c, c> / 2 of every row to scratch, one warp per row.
template <class Tile>
__device__ __forceinline__ void fillTerms(Shared<Tile>& s, const WalksCall& call, const Walk& walk) {
    const bool centred = fillCentre(s, call, walk);
    const int lane = threadIdx.x % kWarp;
    for (std::int64_t row = threadIdx.x / kWarp; row < walk.count; row += kThreads / kWarp) {
        double term = 0;
        for (std::int64_t c = lane; centred && c < call.keys.width; c += kWarp) {
            const double x = elementOf(call.keys, walk.rule.head, walk.rows[row], c);
            term += s.centre[c] * (x - s.centre[c] / 2);
        }
        term = sumOfLanes<kWarp>(term);
        if (lane == 0) call.scratch[walk.begin + row] = term;
    }
    __syncthreads();
}

/// Adds the panel's rows to y: rows part * 16 .. + 16 for this thread's lane.
template <class Tile>
__device__ __forceinline__ void addPanel(const Shared<Tile>& s, const WalksCall& call, std::int64_t firstEntry,
                                         double& y) {
    const int lane = threadIdx.x % kTile, begin = threadIdx.x / kTile * kRowsPerPart;
    for (int row = begin; row < begin + kRowsPerPart; ++row)
        y += double(call.signs[firstEntry + row]) * s.matrix[row][lane];
}

template <class Tile> __global__ void __launch_bounds__(kThreads, Tile::kBlocks) fastWalkKernel(WalksCall call) {
    Shared<Tile>& s = sharedAs<Shared<Tile>>();
    if (isStopped(call.stop)) return;
    const Walk walk = walkOfBlock(call);
    if (!beginWalk(call, walk)) return;
    double margin = marginBefore(call);
    if (threadIdx.x == 0) s.ended = 0;
    if (call.firstStep == 0) fillTerms(s, call, walk);
    for (std::int64_t lanesAt = call.firstStep; lanesAt < endOfSteps(call, walk); lanesAt += kTile) {
        const std::int64_t left = walk.count - lanesAt;
        place(s.lanes, call, walk, lanesAt);
        double part = 0;
        for (std::int64_t first = 0; first <= lanesAt; first += kTile) {
            place(s.panel, call, walk, first);
            __syncthreads(); // also: the previous panel's entries have been added up
            fillMatrix(s, call, walk);
            if (first < lanesAt) // a whole panel of rows with known signs
                addPanel(s, call, walk.begin + first, part);
        }
        s.sums[threadIdx.x / kTile][threadIdx.x % kTile] = part; // the last panel is the lanes' own tile
        __syncthreads();
        if (threadIdx.x < kWarp) {
            double y[kLanesPerThread] = {};
            for (int i = 0; i < kParts * kLanesPerThread; ++i)
                y[i % kLanesPerThread] += s.sums[i / kLanesPerThread][threadIdx.x + i % kLanesPerThread * kWarp];
            const int count = static_cast<int>(left < kTile ? left : kTile);
            if (!walkLanes(s.matrix, call, walk, lanesAt, count, y, margin) && threadIdx.x == 0) s.ended = 1;
        }
        __syncthreads();
        if (s.ended != 0) break;
    }
    if (threadIdx.x == 0) call.margins[blockIdx.x] = margin;
}

} // namespace

void fastBalancingWalks(const WalksCall& call, Stream stream) {
    const bool sameType = !call.values.data || call.values.type == call.keys.type;
    withFastTile(sameType ? call.keys.type : ElementType::Float32, [&](auto tile) { // float tiles read any type
        using Tile = decltype(tile);
        const auto centre = static_cast<std::size_t>(centreNumbers(call.keys.width)) * sizeof(double);
        launch("fast balancing walks", fastWalkKernel<Tile>, {call.walks}, kThreads, sizeof(Shared<Tile>) + centre,
               stream, call);
    });
}

} // namespace kvscope::gpu
