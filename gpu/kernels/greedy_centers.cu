// Greedy k-center. A launch makes one pick for all heads: every block first merges the results that the blocks of the
// previous launch left, which gives the centre, then compares its own rows with that centre and leaves its farthest row
// for the next launch. So no block waits for another inside a launch, and the result does not depend on their order.
// Launches overlap: the next one's blocks read their first rows while the last blocks of this one end.
// Few rows come nearer with a pick: rows are compared in float, whose error is bounded, and only those that the bound
// does not rule out are compared in double.
#include "gpu/kernels/greedy_centers.h"

#include "gpu/kernels/center_steps.h"
#include "gpu/kernels/lanes.h"
#include "gpu/kernels/stop_word.h"

namespace kvscope::gpu {

namespace {

constexpr int kThreads = 256;
constexpr int kRowsPerBlock = kThreads; ///< each thread decides about one
constexpr int kWarps = kThreads / kWarp;
constexpr int kRowLanes = 16; ///< lanes that read a row in float, 16 bytes each at a time
constexpr int kRowsAhead = 4; ///< that such lanes read at once: one of every quarter of their 16 rows
constexpr int kBatches = kRowLanes / kRowsAhead;
/// Blocks that a multiprocessor must hold; floats take two steps where others take one and need more registers.
template <class Element> constexpr int kBlocksAtOnce = sizeof(Element) == 4 ? 3 : 4;

std::int64_t blocksOf(const DeviceRows& keys) { return (keys.rows + kRowsPerBlock - 1) / kRowsPerBlock; }

struct PickCall {
    CentersCall run;
    std::int32_t pick; ///< centre picked in this launch; = count: only the last radius is written
    std::int64_t blocks;
    const Farthest* before; ///< [H, blocks] left by the previous launch
    Farthest* after;        ///< [H, blocks]
};

struct __attribute__((may_alias)) Word {
    alignas(16) std::uint32_t parts[4];
};

template <class Element> constexpr int kPerWord = sizeof(Word) / sizeof(Element);

/// Elements of a row that its lanes read at once.
template <class Element> constexpr int kPerStep = kRowLanes* kPerWord<Element>;

struct Shared {
    Farthest before, after[kWarps];
    float centre[4]; ///< [d], and zeros up to whole steps
};

std::size_t sharedBytes(const DeviceRows& keys) {
    return sizeof(Shared) + static_cast<std::size_t>(keys.width + kPerStep<BFloat16>) * sizeof(float);
}

/// Merges the candidates of a warp; every lane gets the result.
__device__ __forceinline__ Farthest farthestOfWarp(Farthest mine) {
    for (int half = kWarp / 2; half > 0; half /= 2)
        mine = farthestOf(mine, {__shfl_xor_sync(kAllLanes, mine.distance, half),
                                 __shfl_xor_sync(kAllLanes, mine.runnerUp, half),
                                 __shfl_xor_sync(kAllLanes, mine.row, half)});
    return mine;
}

/// Leaves the farthest of the block's rows for the next launch.
__device__ __forceinline__ void leaveFarthest(Shared& s, const PickCall& call, std::int64_t head, Farthest mine) {
    mine = farthestOfWarp(mine);
    if (threadIdx.x % kWarp == 0) s.after[threadIdx.x / kWarp] = mine;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < kWarps; ++warp) mine = farthestOf(mine, s.after[warp]);
    call.after[head * call.blocks + blockIdx.x] = mine;
}

/// The farthest row before this pick; also writes the previous pick's radius and lead.
__device__ __forceinline__ Farthest previous(Shared& s, const PickCall& call, std::int64_t head) {
    if (threadIdx.x < kWarp) {
        Farthest mine;
        for (std::int64_t b = threadIdx.x; b < call.blocks; b += kWarp)
            mine = farthestOf(mine, call.before[head * call.blocks + b]);
        mine = farthestOfWarp(mine);
        if (threadIdx.x == 0) s.before = mine;
    }
    __syncthreads();
    const Farthest top = s.before;
    if (blockIdx.x == 0 && threadIdx.x == 0 && call.run.found[head] == call.pick) {
        const std::int64_t place = head * call.run.stride + call.pick - 1;
        call.run.radius[place] = sqrt(top.distance);
        call.run.closest[place] = sqrt(top.distance) - (top.runnerUp < 0 ? 0 : sqrt(top.runnerUp));
    }
    return top;
}

/// The rows of this thread's half of a warp and the words of them that were read ahead. Rows that do not lie in whole
/// words are not read here: their distance in float is NaN, so that they are all compared in double.
template <class Element> class RowsAhead {
public:
    __device__ __forceinline__ RowsAhead(const DeviceRows& keys, std::int64_t head)
        : m_rows(static_cast<const Element*>(keys.data) + head * keys.headStride), m_last(keys.rows - 1),
          m_width(static_cast<int>(keys.width)) {
        const std::int64_t begin = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kRowLanes * kRowLanes;
        const std::int64_t most = m_last - begin;
        m_mine = at(begin) + threadIdx.x % kRowLanes * kPerWord<Element>;
        m_most = static_cast<int>(most < 0 ? 0 : most < kRowLanes ? most : kRowLanes);
        m_straight = reinterpret_cast<std::uintptr_t>(m_rows) % sizeof(Word) == 0 && m_width % kPerWord<Element> == 0;
    }

    /// The row, or the last row for rows beyond it.
    __device__ __forceinline__ const Element* at(std::int64_t row) const {
        return m_rows + (row < m_last ? row : m_last) * m_width;
    }
    /// This lane's elements of step `begin` of the batch's rows; zeros behind the width.
    __device__ __forceinline__ void fetch(int batch, int begin) {
        const bool reads =
            m_straight && begin + static_cast<int>(threadIdx.x) % kRowLanes * kPerWord<Element> < m_width;
        KVSCOPE_UNROLL
        for (int i = 0; i < kRowsAhead; ++i) {
            const int row = i * kBatches + batch;
            m_words[i] = {};
            if (reads)
                m_words[i] = *reinterpret_cast<const Word*>(m_mine + ((row < m_most ? row : m_most) * m_width + begin));
        }
    }
    /// Adds (x_c - y_c)^2 of the fetched elements to the rows' sums; centre: those of the centre.
    __device__ __forceinline__ void addSquares(float (&sums)[kRowsAhead], const float* centre) const {
        KVSCOPE_UNROLL
        for (int e = 0; e < kPerWord<Element>; ++e) {
            const float y = centre[e];
            KVSCOPE_UNROLL
            for (int i = 0; i < kRowsAhead; ++i) {
                const float difference = widened(elementIn(m_words[i], e)) - y;
                sums[i] = exactMultiplyAdd(difference, difference, sums[i]);
            }
        }
    }
    __device__ __forceinline__ float known(float squared) const { return m_straight ? squared : __builtin_nanf(""); }

private:
    __device__ __forceinline__ static Element elementIn(const Word& word, int e) {
        if constexpr (sizeof(Element) == 4)
            return __builtin_bit_cast(Element, word.parts[e]);
        else
            return Element{static_cast<std::uint16_t>(word.parts[e / 2] >> (e % 2 * 16))};
    }

    const Element* m_rows;
    const Element* m_mine; ///< this lane's first word of its half's first row
    std::int64_t m_last;
    int m_width, m_most; ///< the last of its half's rows, counted from the first
    bool m_straight;
    Word m_words[kRowsAhead];
};

/// Four sums over 16 lanes; lane i gets sum i / 4.
__device__ __forceinline__ float ownSumOfRowLanes(const float (&sums)[kRowsAhead]) {
    const bool upper = threadIdx.x & 8, odd = threadIdx.x & 4;
    const float a = (upper ? sums[2] : sums[0]) + __shfl_xor_sync(kAllLanes, upper ? sums[0] : sums[2], 8);
    const float b = (upper ? sums[3] : sums[1]) + __shfl_xor_sync(kAllLanes, upper ? sums[1] : sums[3], 8);
    return sumOfLanes<4>((odd ? b : a) + __shfl_xor_sync(kAllLanes, odd ? a : b, 4));
}

/// The squared distance in float between the centre and this thread's row.
template <class Element>
__device__ __forceinline__ float floatDistance(RowsAhead<Element>& rows, const float* centre, int width) {
    const float* mine = centre + threadIdx.x % kRowLanes * kPerWord<Element>;
    float own = 0;
    KVSCOPE_UNROLL
    for (int batch = 0; batch < kBatches; ++batch) {
        float sums[kRowsAhead] = {};
        for (int begin = 0; begin < width; begin += kPerStep<Element>) {
            rows.addSquares(sums, mine + begin);
            if (begin + kPerStep<Element> < width)
                rows.fetch(batch, begin + kPerStep<Element>);
            else if (batch + 1 < kBatches)
                rows.fetch(batch + 1, 0);
        }
        const float sum = ownSumOfRowLanes(sums);
        if (static_cast<int>(threadIdx.x) % kBatches == batch) own = sum;
    }
    return rows.known(own);
}

/// Whether the distance in double is certainly at least `nearest`; false where floats leave their range.
__device__ __forceinline__ bool isFarther(float squared, double nearest, std::int64_t width) {
    const double error = (static_cast<double>(width) / 4 + 28) * 0x1.0p-24;
    return squared > 1e-30F && squared < 1e38F && double{squared} * (1 - error) >= nearest;
}

/// The distance in double of this thread's row; NaN unless it or another row of its group of four is asked for.
template <class Element>
__device__ __forceinline__ double exactDistance(const RowsAhead<Element>& rows, std::int64_t centre, bool isAsked,
                                                std::int64_t width) {
    constexpr int kGroups = kWarp / kDistanceParts;
    const unsigned asked = __ballot_sync(kAllLanes, isAsked), lane = threadIdx.x % kWarp;
    const std::int64_t begin = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x - lane;
    double own = __builtin_nan("");
    for (unsigned first = 0; first < kWarp; first += kGroups) { // four rows at once
        if ((asked >> first) % (1U << kGroups) == 0) continue;
        const double distance = distanceOfRows(rows.at(centre), rows.at(begin + first + lane / kDistanceParts), width,
                                               lane % kDistanceParts);
        const double mine = __shfl_sync(kAllLanes, distance, lane % kGroups * kDistanceParts);
        if (lane / kGroups * kGroups == first) own = mine;
    }
    return own;
}

/// Compares the block's rows with the centre; returns this thread's.
template <class Element>
__device__ __forceinline__ Farthest compareRow(float* inFloat, RowsAhead<Element>& rows, const PickCall& call,
                                               std::int64_t head, std::int64_t centre) {
    const DeviceRows& keys = call.run.keys;
    const std::int64_t row = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x, place = head * keys.rows + row;
    const bool exists = row < keys.rows, isFirst = call.pick == 0;
    double nearest = exists && !isFirst ? call.run.distances[place] : __builtin_inf();
    for (std::int64_t c = threadIdx.x; c < keys.width + kPerStep<Element>; c += kThreads)
        inFloat[c] = c < keys.width ? widened(rows.at(centre)[c]) : 0;
    __syncthreads();
    const float squared = floatDistance(rows, inFloat, static_cast<int>(keys.width));
    const bool isNear = exists && !isFarther(squared, nearest, keys.width);
    const double distance = exactDistance(rows, centre, isNear, keys.width);
    if (!exists) return {};
    if (isFirst || (isNear && distance < nearest)) {
        if (distance < nearest) nearest = distance;
        call.run.distances[place] = nearest;
        call.run.centre[place] = call.pick;
    }
    return {nearest, -1, row};
}

template <class Element> __global__ void __launch_bounds__(kThreads, kBlocksAtOnce<Element>) pickKernel(PickCall call) {
    Shared& s = sharedAs<Shared>();
    const std::int64_t head = blockIdx.y;
    RowsAhead<Element> rows(call.run.keys, head);
    rows.fetch(0, 0); // before the centre is known
    letNextBegin();
    waitForWorkBefore();
    if (isStopped(call.run.stop)) return;
    std::int64_t centre = call.run.first[head];
    if (call.pick > 0) {
        const Farthest top = previous(s, call, head);
        if (top.distance == 0 || call.pick == call.run.count) { // all is done: pass that on
            if (threadIdx.x == 0) call.after[head * call.blocks + blockIdx.x] = top;
            return;
        }
        centre = top.row;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        call.run.order[head * call.run.stride + call.pick] = static_cast<std::int32_t>(centre);
        call.run.found[head] = call.pick + 1;
    }
    leaveFarthest(s, call, head, compareRow(s.centre, rows, call, head, centre));
}

/// What the launch before the first one of a continued run would have left: every block's farthest row.
__global__ void __launch_bounds__(kThreads) resumeKernel(PickCall call) {
    Shared& s = sharedAs<Shared>();
    const std::int64_t head = blockIdx.y, n = call.run.keys.rows;
    const std::int64_t row = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x;
    Farthest mine;
    if (row < n) mine = {call.run.distances[head * n + row], -1, row};
    leaveFarthest(s, call, head, mine);
}

} // namespace

std::size_t centersScratchBytes(const DeviceRows& keys) {
    return static_cast<std::size_t>(2 * keys.heads * blocksOf(keys)) * sizeof(Farthest);
}

void greedyCenters(const CentersCall& asked, Stream stream) {
    CentersCall run = asked;
    run.stride = run.stride > 0 ? run.stride : run.count;
    const std::int64_t blocks = blocksOf(run.keys), half = run.keys.heads * blocks;
    auto* found = static_cast<Farthest*>(run.scratch);
    const Grid grid{blocks, run.keys.heads};
    PickCall call{run, run.known, blocks, nullptr, found + half};
    if (run.known > 0) launch("continue k-center", resumeKernel, grid, kThreads, sharedBytes(run.keys), stream, call);
    withElement(run.keys.type, [&](auto element) {
        for (std::int32_t pick = run.known; pick <= run.count; ++pick) {
            call.pick = pick;
            // The two halves of the scratch alternate.
            call.before = (pick - run.known) % 2 == 0 ? found + half : found;
            call.after = (pick - run.known) % 2 == 0 ? found : found + half;
            launch("k-center pick", pickKernel<decltype(element)>, grid, kThreads, sharedBytes(run.keys), stream, call,
                   pick > run.known);
        }
    });
}

} // namespace kvscope::gpu
