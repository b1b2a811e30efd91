// Greedy k-center. A launch makes one pick for all heads: every block first merges the results that the blocks of the
// previous launch left, which gives the centre, then compares its own rows with that centre and leaves its farthest row
// for the next launch. So no block waits for another inside a launch, and the result does not depend on their order.
#include "gpu/kernels/greedy_centers.h"

#include "gpu/kernels/center_steps.h"
#include "gpu/kernels/lanes.h"
#include "gpu/kernels/stop_word.h"

namespace kvscope::gpu {

namespace {

constexpr int kThreads = 256;
constexpr int kRowsPerPass = kThreads / kDistanceParts;
constexpr int kRowsPerBlock = 4 * kRowsPerPass;

std::int64_t blocksOf(const DeviceRows& keys) { return (keys.rows + kRowsPerBlock - 1) / kRowsPerBlock; }

struct PickCall {
    CentersCall run;
    std::int32_t pick; ///< centre picked in this launch; count: only the last radius is left to write
    std::int64_t blocks;
    const Farthest* before; ///< [H, blocks] left by the previous launch
    Farthest* after;        ///< [H, blocks]
};

struct Shared {
    Farthest found[kThreads];
    double centre[1]; ///< [d] in double, so that it is widened only once
};

std::size_t sharedBytes(const DeviceRows& keys) {
    return sizeof(Shared) + static_cast<std::size_t>(keys.width) * sizeof(double);
}

/// Merges all threads' candidates; every thread gets the result.
__device__ __forceinline__ Farthest farthestOfBlock(Shared& s, const Farthest& mine) {
    __syncthreads();
    s.found[threadIdx.x] = mine;
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) s.found[threadIdx.x] = farthestOf(s.found[threadIdx.x], s.found[threadIdx.x + half]);
    }
    __syncthreads();
    return s.found[0];
}

/// The farthest row before this pick; also writes what the previous pick left to be written.
__device__ __forceinline__ Farthest previous(Shared& s, const PickCall& call, std::int64_t head) {
    Farthest mine;
    for (std::int64_t b = threadIdx.x; b < call.blocks; b += kThreads)
        mine = farthestOf(mine, call.before[head * call.blocks + b]);
    const Farthest top = farthestOfBlock(s, mine);
    if (blockIdx.x == 0 && threadIdx.x == 0 && call.run.found[head] == call.pick) {
        const std::int64_t place = head * call.run.stride + call.pick - 1;
        call.run.radius[place] = sqrt(top.distance);
        call.run.closest[place] = sqrt(top.distance) - (top.runnerUp < 0 ? 0 : sqrt(top.runnerUp));
    }
    return top;
}

template <class Element>
__device__ __forceinline__ Farthest compareRows(double* centre, const PickCall& call, std::int64_t head,
                                                std::int64_t centreRow) {
    const DeviceRows& keys = call.run.keys;
    const int lane = threadIdx.x % kDistanceParts;
    const Element* rows = static_cast<const Element*>(keys.data) + head * keys.headStride;
    for (std::int64_t c = threadIdx.x; c < keys.width; c += kThreads)
        centre[c] = widened(rows[centreRow * keys.width + c]);
    __syncthreads();
    const std::int64_t first = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kDistanceParts;
    Farthest mine;
    for (int pass = 0; pass < kRowsPerBlock; pass += kRowsPerPass) {
        const std::int64_t row = first + pass, read = row < keys.rows ? row : keys.rows - 1;
        const double distance = distanceOfRows(centre, rows + read * keys.width, keys.width, lane);
        if (lane != 0 || row >= keys.rows) continue;
        const std::int64_t place = head * keys.rows + row;
        double nearest = call.pick == 0 ? __builtin_inf() : call.run.distances[place];
        std::int32_t owner = call.pick == 0 ? 0 : call.run.centre[place];
        if (distance < nearest) {
            nearest = distance;
            owner = call.pick;
        }
        call.run.distances[place] = nearest;
        call.run.centre[place] = owner;
        mine = farthestOf(mine, {nearest, -1, row});
    }
    return mine;
}

template <class Element> __global__ void __launch_bounds__(kThreads) pickKernel(PickCall call) {
    Shared& s = sharedAs<Shared>();
    if (isStopped(call.run.stop)) return;
    const std::int64_t head = blockIdx.y;
    std::int64_t centre = call.run.first[head];
    if (call.pick > 0) {
        const Farthest top = previous(s, call, head);
        if (top.distance == 0 || call.pick == call.run.count) { // every row is a centre: pass that on
            if (threadIdx.x == 0) call.after[head * call.blocks + blockIdx.x] = top;
            return;
        }
        centre = top.row;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        call.run.order[head * call.run.stride + call.pick] = static_cast<std::int32_t>(centre);
        call.run.found[head] = call.pick + 1;
    }
    const Farthest found = farthestOfBlock(s, compareRows<Element>(s.centre, call, head, centre));
    if (threadIdx.x == 0) call.after[head * call.blocks + blockIdx.x] = found;
}

/// What the launch before the first one of a continued run would have left: every block's farthest row.
__global__ void __launch_bounds__(kThreads) resumeKernel(PickCall call) {
    Shared& s = sharedAs<Shared>();
    const std::int64_t head = blockIdx.y, n = call.run.keys.rows;
    Farthest mine;
    for (int i = threadIdx.x; i < kRowsPerBlock; i += kThreads) {
        const std::int64_t row = std::int64_t{blockIdx.x} * kRowsPerBlock + i;
        if (row < n) mine = farthestOf(mine, {call.run.distances[head * n + row], -1, row});
    }
    const Farthest found = farthestOfBlock(s, mine);
    if (threadIdx.x == 0) call.after[head * call.blocks + blockIdx.x] = found;
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
            launch("k-center pick", pickKernel<decltype(element)>, grid, kThreads, sharedBytes(run.keys), stream, call);
        }
    });
}

} // namespace kvscope::gpu
