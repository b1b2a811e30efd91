// Self-balancing walks, one block of threads per walk: 32 rows at a time (the lanes) are multiplied with all earlier
// rows in panels, and one warp adds the panels up in row order. Then that warp steps through the 32 rows with y in
// registers. When exact, every sum has the CPU engine's order, so the signs are equal.
#include "gpu/kernels/balancing_walk.h"

#include "gpu/kernels/lanes.h"
#include "gpu/kernels/walk_tile.h"

namespace kvscope::gpu {

namespace {

constexpr int kLanes = kWarp;
constexpr int kBlocks = 4; ///< per multiprocessor: other walks run while one waits for memory or for its next sign

template <class Element> struct Shared {
    WalkSlice<Element>
        slices[kPanel + 2 * kLanes];   ///< panel, lanes' keys, lanes' values; before the steps: one per thread
    double matrix[kPanel][kLanes + 1]; ///< products of values, then entries
    WalkTerm panelTerms[kPanel], laneTerms[kLanes];
    double signs[2][kPanel]; ///< of the panel's rows; two of each, because one is read while the next is placed
    Draw draws[2][kLanes];
    double sums[kLanes], margins[kLanes]; ///< y of the lanes' rows; smallest margins so far
    Walk walk;                            ///< here, because registers are scarce
    WalkRows keys, values;                ///< of its head
    std::int32_t ended;
    double centre[1]; ///< [d]
};

/// Computes the centre c of the walk; false when c is 0 and can be left out.
template <class Element>
__device__ __forceinline__ bool fillCentre(Shared<Element>& s, const WalksCall& call, const Walk& walk) {
    constexpr int kDepth = WalkSlice<Element>::kDepth;
    const int d = static_cast<int>(call.keys.width);
    if (walk.rule.meanOver <= 0 && !call.centres) return false;
    for (int c = threadIdx.x; c < d; c += kWalkThreads)
        s.centre[c] = walk.rule.meanOver > 0 ? 0 : call.centres[walk.rule.head * d + c];
    for (int depth = 0; walk.rule.meanOver > 0 && depth < d; depth += kDepth) {
        const int c = threadIdx.x;
        double sum = 0;
        for (int first = 0; first < walk.count; first += kWalkThreads) {
            const int rows = walk.count - first < kWalkThreads ? walk.count - first : kWalkThreads;
            __syncthreads();
            fillSlices<kWalkThreads>(s.slices, s.keys, walk, first, depth);
            waitForCopies();
            __syncthreads();
            for (int row = 0; c < kDepth && row < rows; ++row) sum += double(widened(s.slices[row].items[c]));
        }
        if (c < kDepth && depth + c < d) s.centre[depth + c] = sum / static_cast<double>(walk.rule.meanOver);
    }
    __syncthreads();
    return true;
}

/// Writes <k_i, c> - <c, c> / 2 of every row to scratch: <k_i - c, k_j - c> = <k_i, k_j> - term_i - term_j.
template <class Element>
__device__ __forceinline__ void fillTerms(Shared<Element>& s, const WalksCall& call, const Walk& walk) {
    constexpr int kDepth = WalkSlice<Element>::kDepth, kCount = Several<Element>::kCount;
    const int d = static_cast<int>(call.keys.width);
    const bool centred = fillCentre(s, call, walk);
    for (int first = 0; first < walk.count; first += kWalkThreads) {
        double term = 0, square = 0;
        for (int depth = 0; centred && depth < d; depth += kDepth) {
            __syncthreads();
            fillSlices<kWalkThreads>(s.slices, s.keys, walk, first, depth);
            waitForCopies();
            __syncthreads();
            const int end = d - depth < kDepth ? d - depth : kDepth;
            for (int begin = 0; begin < end; begin += kCount) {
                const auto row = *reinterpret_cast<Several<Element>*>(&s.slices[threadIdx.x].items[begin]);
                KVSCOPE_UNROLL for (int k = 0; k < kCount; ++k) {
                    if (begin + k >= end) continue;
                    const double c = s.centre[depth + begin + k];
                    term += c * double(widened(row.items[k]));
                    square += c * c;
                }
            }
        }
        const int row = first + threadIdx.x;
        if (row < walk.count) call.scratch[walk.begin + row] = term - square / 2;
    }
    __syncthreads();
}

/// Terms and weight of a row; those of the last row if there is none.
__device__ __forceinline__ WalkTerm termOf(const WalksCall& call, const Walk& walk, int row) {
    const std::int64_t entry = walk.begin + (row < walk.count ? row : walk.count - 1);
    return {call.scratch[entry], call.weights ? call.weights[entry] : 1};
}

/// What the panel's entries and sums need beside products, written by the last warp while the first one adds.
template <class Element>
__device__ __forceinline__ void placePanel(Shared<Element>& s, const WalksCall& call, const Walk& walk, int first,
                                           int lanesAt) {
    const int lane = threadIdx.x % kWarp;
    for (int r = lane; r < kPanel; r += kWarp) {
        s.panelTerms[r] = termOf(call, walk, first + r);
        s.signs[first / kPanel % 2][r] = first + r < lanesAt ? double(call.signs[walk.begin + first + r]) : 0;
    }
    if (first != 0) return;
    s.laneTerms[lane] = termOf(call, walk, lanesAt + lane);
    s.draws[lanesAt / kLanes % 2][lane] = drawOf(call, walk, lanesAt + lane);
}

/// A slice of a panel and of its lanes, in the order in which they are multiplied: values first.
struct Stage {
    int lanesAt, first, depth;
    bool isKeys;
};

/// Begins to copy a slice to shared memory. Lanes that are no wider than a slice stay for all panels.
template <class Element>
__device__ __forceinline__ void fetch(Shared<Element>& s, const Walk& walk, const Stage& stage) {
    const WalkRows& from = stage.isKeys ? s.keys : s.values;
    fillSlices<kPanel>(s.slices, from, walk, stage.first, stage.depth);
    if (stage.first == 0 || from.rows.width > WalkSlice<Element>::kDepth)
        fillSlices<kLanes>(stage.isKeys ? s.slices + kPanel : s.slices + kPanel + kLanes, from, walk, stage.lanesAt,
                           stage.depth);
}

/// Begins to copy what follows this slice, before the walk's `end`.
template <class Element>
__device__ __forceinline__ void fetchNext(Shared<Element>& s, const Walk& walk, Stage stage, int end) {
    stage.depth += WalkSlice<Element>::kDepth;
    if (stage.depth >= (stage.isKeys ? s.keys : s.values).rows.width) {
        stage.depth = 0;
        if (stage.isKeys) stage.first += kPanel;
        stage.isKeys = !stage.isKeys || !s.values.rows.data;
    }
    if (stage.first >= stage.lanesAt + kLanes) {
        stage.first = 0;
        stage.lanesAt += kLanes;
    }
    if (stage.lanesAt < end) fetch(s, walk, stage);
}

/// Converts a thread's products of keys and of values, which lie where the entries will, to entries. All factors are
/// copied first: they, too, lie in shared memory, and would be read again after every entry.
template <class Element, class Number>
__device__ __forceinline__ void makeEntries(Shared<Element>& s, const Walk& walk, const Number (&keys)[kWalkValues]) {
    const WalkFactors<Number> factors(walk.rule);
    const RowFactors<Number> rows[2] = {RowFactors<Number>(s.panelTerms[panelRowOf(0)]),
                                        RowFactors<Number>(s.panelTerms[panelRowOf(2)])};
    const bool hasValues = s.values.rows.data != nullptr;
    KVSCOPE_UNROLL for (int v = 0; v < kWalkValues; ++v) {
        if (v % 4 > 1) continue; // the second row of a lane comes with the first
        const RowFactors<Number> lane(s.laneTerms[laneOf(v)]);
        double *first = &s.matrix[panelRowOf(v)][laneOf(v)], *second = &s.matrix[panelRowOf(v + 2)][laneOf(v)];
        const Number values[2] = {hasValues ? Number(*first) : Number(0), hasValues ? Number(*second) : Number(0)};
        *first = walkEntry(factors, keys[v], values[0], rows[0], lane);
        *second = walkEntry(factors, keys[v + 2], values[1], rows[1], lane);
    }
}

/// M_ij of the panel's rows against the lanes. Its first slice is being copied; at the end, that of the next panel is.
template <class Element, class Number>
__device__ __forceinline__ void fillMatrix(Shared<Element>& s, const Walk& walk, int first, int lanesAt, int end) {
    const bool isNeeded = first + panelRowOf(0) / kWarpRows * kWarpRows < lanesAt + kLanes; // the same for a whole warp
    Number products[kWalkValues];
    for (bool isKeys = !s.values.rows.data, isDone = false; !isDone; isKeys = true) {
        isDone = isKeys;
        KVSCOPE_UNROLL for (Number& product : products) product = 0;
        const WalkSlice<Element>* lanes = isKeys ? s.slices + kPanel : s.slices + kPanel + kLanes;
        const int width = static_cast<int>((isKeys ? s.keys : s.values).rows.width);
        for (int depth = 0; depth < width; depth += WalkSlice<Element>::kDepth) {
            const int left = width - depth;
            waitForCopies();
            __syncthreads();
            if (isNeeded)
                addProducts(s.slices, lanes, left < WalkSlice<Element>::kDepth ? left : WalkSlice<Element>::kDepth,
                            products);
            __syncthreads();
            fetchNext(s, walk, {lanesAt, first, depth, isKeys}, end);
        }
        if (isKeys)
            makeEntries(s, walk, products);
        else
            KVSCOPE_UNROLL for (int v = 0; v < kWalkValues; ++v) s.matrix[panelRowOf(v)][laneOf(v)] = products[v];
    }
    __syncthreads();
}

/// Adds the panel's rows before the lanes, 32 or 64 of them, to y of the thread's lane.
template <class Element> __device__ __forceinline__ void addPanel(Shared<Element>& s, int first, int lanesAt) {
    const double* signs = s.signs[first / kPanel % 2];
    double y = s.sums[threadIdx.x];
    for (int begin = 0; begin < kPanel && first + begin < lanesAt; begin += kLanes) {
        KVSCOPE_UNROLL for (int row = begin; row < begin + kLanes; ++row) y =
            exactMultiplyAdd(signs[row], s.matrix[row][threadIdx.x], y);
    }
    s.sums[threadIdx.x] = y;
}

template <class Element, class Number>
__global__ void __launch_bounds__(kWalkThreads, kBlocks) walkKernel(WalksCall call) {
    auto& s = sharedAs<Shared<Element>>();
    if (isStopped(call.stop)) return;
    const Walk& walk = s.walk;
    const bool isStepping = threadIdx.x < kWarp;
    if (threadIdx.x == 0) {
        s.walk = walkOfBlock(call);
        s.keys = rowsOfWalk<Element>(call.keys, walk);
        s.values = rowsOfWalk<Element>(call.values, walk);
        s.ended = 0;
    }
    __syncthreads();
    if (!beginWalk(call, walk)) return;
    if (isStepping) s.margins[threadIdx.x] = marginBefore(call);
    if (call.firstStep == 0) fillTerms(s, call, walk);
    const int end = endOfSteps(call, walk);
    if (call.firstStep < end) fetch(s, walk, {static_cast<int>(call.firstStep), 0, 0, !s.values.rows.data});
    for (int lanesAt = static_cast<int>(call.firstStep); lanesAt < end; lanesAt += kLanes) {
        if (isStepping) s.sums[threadIdx.x] = 0;
        for (int first = 0; first < lanesAt + kLanes; first += kPanel) {
            if (threadIdx.x / kWarp == kWalkThreads / kWarp - 1) placePanel(s, call, walk, first, lanesAt);
            fillMatrix<Element, Number>(s, walk, first, lanesAt, end);
            if (isStepping) addPanel(s, first, lanesAt);
        }
        if (isStepping &&
            !walkLanes(&s.matrix[lanesAt % kPanel], call, walk, lanesAt, s.draws[lanesAt / kLanes % 2][threadIdx.x],
                       s.sums[threadIdx.x], s.margins[threadIdx.x]))
            s.ended = 1;
        __syncthreads();
        if (s.ended != 0) break;
    }
    waitForCopies(); // that an ended walk does not need
    if (!isStepping) return;
    double margin = s.margins[threadIdx.x];
    for (int half = kLanes / 2; half > 0; half /= 2) {
        const double other = __shfl_xor_sync(kAllLanes, margin, half);
        margin = other < margin ? other : margin;
    }
    if (threadIdx.x == 0) call.margins[blockIdx.x] = margin;
}

} // namespace

void balancingWalks(const WalksCall& call, Stream stream) {
    withWalkElement(call, [&](auto element) {
        using Element = decltype(element);
        const auto centre = static_cast<std::size_t>(call.keys.width) * sizeof(double);
        launch("balancing walks",
               call.arithmetic == KernelArithmetic::Exact ? walkKernel<Element, double> : walkKernel<Element, float>,
               {call.walks}, kWalkThreads, sizeof(Shared<Element>) + centre, stream, call);
    });
}

} // namespace kvscope::gpu
