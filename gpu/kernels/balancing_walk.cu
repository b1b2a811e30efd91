// Self-balancing walks, one block of threads per walk: 32 rows at a time (the lanes) are multiplied with all earlier
// rows in panels shared by all threads, and the panels are added up in row order, one thread per lane. Then one warp
// steps through the 32 rows with y in registers. Every sum has the CPU engine's order, so the signs are equal.
#include "gpu/kernels/balancing_walk.h"

#include "gpu/kernels/device.h"
#include "gpu/kernels/elements.h"
#include "gpu/kernels/walk_lanes.h"

namespace kvscope::gpu {

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = kWarp;                              // rows that step together
constexpr int kPanel = 64;                                 // earlier rows per multiplication
constexpr int kDepth = 32;                                 // elements of the rows in shared memory at a time
constexpr int kPad = 1;                                    // against shared-memory bank conflicts
constexpr int kRowsPerThread = kPanel * kLanes / kThreads; // of one lane

struct Shared {
    double panel[kPanel][kDepth + kPad];
    double lanes[kLanes][kDepth + kPad];
    double matrix[kPanel][kLanes];
    std::int32_t ended;
    double centre[1]; ///< [d]
};

/// Rows places[first .. first + count) of a walk, elements [depth, depth + kDepth); zero where there is none.
template <int Rows>
__device__ __forceinline__ void fill(double (&to)[Rows][kDepth + kPad], const DeviceRows& from, const Walk& walk,
                                     std::int64_t first, std::int64_t count, std::int64_t depth) {
    for (int i = threadIdx.x; i < Rows * kDepth; i += kThreads) {
        const int row = i / kDepth, c = i % kDepth;
        const bool there = row < count && depth + c < from.width;
        to[row][c] = there ? double(elementOf(from, walk.rule.head, walk.rows[first + row], depth + c)) : 0;
    }
}

/// Products of the panel's rows threadIdx.x / 32, + 8, ... with lane threadIdx.x % 32, added element by element.
__device__ __forceinline__ void multiply(Shared& s, const DeviceRows& from, const Walk& walk, std::int64_t first,
                                         std::int64_t count, std::int64_t lanesAt, std::int64_t laneCount,
                                         double (&products)[kRowsPerThread]) {
    for (double& product : products) product = 0;
    for (std::int64_t depth = 0; depth < from.width; depth += kDepth) {
        __syncthreads();
        fill(s.panel, from, walk, first, count, depth);
        fill(s.lanes, from, walk, lanesAt, laneCount, depth);
        __syncthreads();
        const auto* lane = s.lanes[threadIdx.x % kLanes];
        for (int c = 0; c < kDepth; ++c)
            for (int r = 0; r < kRowsPerThread; ++r)
                products[r] =
                    exactMultiplyAdd(s.panel[threadIdx.x / kLanes + r * (kThreads / kLanes)][c], lane[c], products[r]);
    }
}

/// M_ij of `count` rows from `first` on against the lanes.
__device__ __forceinline__ void fillMatrix(Shared& s, const WalksCall& call, const Walk& walk, std::int64_t first,
                                           std::int64_t count, std::int64_t lanesAt, std::int64_t laneCount) {
    double values[kRowsPerThread] = {}, keys[kRowsPerThread];
    if (call.values.data) multiply(s, call.values, walk, first, count, lanesAt, laneCount, values);
    multiply(s, call.keys, walk, first, count, lanesAt, laneCount, keys);
    const int lane = threadIdx.x % kLanes;
    const auto termOf = [&](std::int64_t place) {
        const std::int64_t entry = walk.begin + (place < walk.count ? place : walk.count - 1);
        return WalkTerm{call.scratch[entry], call.weights ? call.weights[entry] : 1};
    };
    const WalkTerm laneTerm = termOf(lanesAt + lane);
    for (int r = 0; r < kRowsPerThread; ++r) {
        const int row = threadIdx.x / kLanes + r * (kThreads / kLanes);
        s.matrix[row][lane] = walkEntry(walk.rule, keys[r], values[r], termOf(first + row), laneTerm);
    }
    __syncthreads();
}

/// Computes the centre c of the walk; false when c is 0 and can be left out.
__device__ __forceinline__ bool fillCentre(Shared& s, const WalksCall& call, const Walk& walk) {
    const std::int64_t d = call.keys.width;
    if (walk.rule.meanOver <= 0 && !call.centres) return false;
    for (std::int64_t c = threadIdx.x; c < d; c += kThreads) {
        double sum = 0;
        if (walk.rule.meanOver > 0) {
            for (std::int64_t i = 0; i < walk.count; ++i)
                sum += double(elementOf(call.keys, walk.rule.head, walk.rows[i], c));
            sum /= static_cast<double>(walk.rule.meanOver);
        } else {
            sum = call.centres[walk.rule.head * d + c];
        }
        s.centre[c] = sum;
    }
    __syncthreads();
    return true;
}

/// Writes <k_i, c> - <c, c> / 2 of every row to scratch: <k_i - c, k_j - c> = <k_i, k_j> - term_i - term_j.
__device__ __forceinline__ void fillTerms(Shared& s, const WalksCall& call, const Walk& walk) {
    const bool centred = fillCentre(s, call, walk);
    double square = 0;
    for (std::int64_t c = 0; centred && c < call.keys.width; ++c) square += s.centre[c] * s.centre[c];
    for (std::int64_t first = 0; first < walk.count; first += kPanel) {
        const std::int64_t row = first + threadIdx.x;
        double term = 0;
        for (std::int64_t depth = 0; centred && depth < call.keys.width; depth += kDepth) {
            __syncthreads();
            fill(s.panel, call.keys, walk, first, walk.count - first, depth);
            __syncthreads();
            const std::int64_t end = call.keys.width - depth < kDepth ? call.keys.width - depth : kDepth;
            for (std::int64_t c = 0; threadIdx.x < kPanel && c < end; ++c)
                term += s.centre[depth + c] * s.panel[threadIdx.x][c];
        }
        if (threadIdx.x < kPanel && row < walk.count) call.scratch[walk.begin + row] = centred ? term - square / 2 : 0;
    }
    __syncthreads();
}

__global__ void __launch_bounds__(kThreads) walkKernel(WalksCall call) {
    Shared& s = sharedAs<Shared>();
    if (isStopped(call.stop)) return;
    const Walk walk = walkOfBlock(call);
    if (!beginWalk(call, walk)) return;
    double margin = marginBefore(call);
    if (threadIdx.x == 0) s.ended = 0;
    if (call.firstStep == 0) fillTerms(s, call, walk);
    for (std::int64_t lanesAt = call.firstStep; lanesAt < endOfSteps(call, walk); lanesAt += kLanes) {
        const std::int64_t left = walk.count - lanesAt;
        const int laneCount = static_cast<int>(left < kLanes ? left : kLanes);
        double y[1] = {};
        for (std::int64_t first = 0; first < lanesAt; first += kPanel) {
            const int count = static_cast<int>(lanesAt - first < kPanel ? lanesAt - first : kPanel);
            fillMatrix(s, call, walk, first, count, lanesAt, laneCount);
            for (int i = 0; threadIdx.x < kLanes && i < count; ++i)
                y[0] += double(call.signs[walk.begin + first + i]) * s.matrix[i][threadIdx.x];
        }
        fillMatrix(s, call, walk, lanesAt, laneCount, lanesAt, laneCount);
        const bool goesOn = threadIdx.x >= kLanes || walkLanes(s.matrix, call, walk, lanesAt, laneCount, y, margin);
        if (!goesOn && threadIdx.x == 0) s.ended = 1;
        __syncthreads();
        if (s.ended != 0) break;
    }
    if (threadIdx.x == 0) call.margins[blockIdx.x] = margin;
}

} // namespace

void balancingWalks(const WalksCall& call, Stream stream) {
    if (call.arithmetic == KernelArithmetic::Fast) return fastBalancingWalks(call, stream);
    const std::size_t sharedBytes = sizeof(Shared) + static_cast<std::size_t>(call.keys.width) * sizeof(double);
    launch("balancing walks", walkKernel, {call.walks}, kThreads, sharedBytes, stream, call);
}

} // namespace kvscope::gpu
