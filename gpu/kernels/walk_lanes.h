#pragma once

#include "gpu/kernels/stop_word.h"
#include "gpu/kernels/walk_steps.h"

// The steps of rows that walk together.
namespace kvscope::gpu {

/// The part of the lists that belongs to one walk.
struct Walk {
    WalkRule rule;
    std::int64_t begin;
    int count;
    const std::int32_t* rows;
};

__device__ __forceinline__ Walk walkOfBlock(const WalksCall& call) {
    const std::int64_t begin = call.offsets[blockIdx.x];
    return {call.rules[blockIdx.x], begin, static_cast<int>(call.offsets[blockIdx.x + 1] - begin), call.rows + begin};
}

/// Whether the walk has steps to take in this call; the first call sets its ending to "complete" until a step says
/// otherwise.
__device__ __forceinline__ bool beginWalk(const WalksCall& call, const Walk& walk) {
    if (call.firstStep > 0)
        return call.firstStep < walk.count &&
               call.endings[blockIdx.x] == static_cast<std::int32_t>(WalkEnding::Complete);
    if (threadIdx.x == 0) {
        call.endings[blockIdx.x] = static_cast<std::int32_t>(WalkEnding::Complete);
        call.steps[blockIdx.x] = walk.count;
    }
    return true;
}

/// The end of this call's steps.
__device__ __forceinline__ int endOfSteps(const WalksCall& call, const Walk& walk) {
    return call.endStep < walk.count ? static_cast<int>(call.endStep) : walk.count;
}

/// Smallest margin of the earlier steps.
__device__ __forceinline__ double marginBefore(const WalksCall& call) {
    return call.firstStep > 0 ? call.margins[blockIdx.x] : __builtin_inf();
}

/// What a row draws its sign with.
struct Draw {
    double uniform;
    bool isSilent;
};

/// The draw of a row; behind the end, that of the last row.
__device__ __forceinline__ Draw drawOf(const WalksCall& call, const Walk& walk, int row) {
    const std::int64_t entry = walk.begin + (row < walk.count ? row : walk.count - 1);
    return {call.uniforms[entry], call.silent && call.silent[entry] != 0};
}

/// The steps of the rows from lanesAt on, at most 32 of them, run by one warp: y is the sum for the row of the
/// thread's lane over the rows before lanesAt, matrix[i][j] is M of rows lanesAt + i and lanesAt + j. False when the
/// walk ends. Only what the next sign waits for is done step by step; y stays what it was when its row's step came, so
/// that refusals, margins and results of all rows follow at once.
template <class Row>
__device__ __forceinline__ bool walkLanes(const Row* matrix, const WalksCall& call, const Walk& walk, int lanesAt,
                                          const Draw& draw, double y, double& margin) {
    const int lane = threadIdx.x % kWarp, count = walk.count - lanesAt;
    const unsigned silent = __ballot_sync(kAllLanes, draw.isSilent);
    const bool isForced = lanesAt + lane == 0 && walk.rule.firstIsPlus != 0;
    const double uniform = isForced ? -__builtin_inf() : draw.uniform, gamma = walk.rule.gamma;
    KVSCOPE_UNROLL for (int i = 0; i < kWarp - 1; ++i) {
        const double entry = lane > i && (silent >> i & 1U) == 0 ? matrix[i][lane] : 0;
        const double sum = y + entry, difference = y - entry;
        const unsigned plus = __ballot_sync(kAllLanes, uniform < 0.5 - gamma * y);
        y = (plus >> i & 1U) != 0 ? sum : difference;
    }
    const double diagonal = matrix[lane][lane];
    const WalkStep step = walkStep(walk.rule, lanesAt + lane, y, diagonal, draw.uniform, draw.isSilent);
    const unsigned ends = __ballot_sync(kAllLanes, lane < count && step.ending != WalkEnding::Complete);
    const bool isAfterEnd = (ends & ((1U << lane) - 1)) != 0;
    if (lane >= count || isAfterEnd) return ends == 0;
    if (step.ending != WalkEnding::Complete) {
        call.endings[blockIdx.x] = static_cast<std::int32_t>(step.ending);
        call.steps[blockIdx.x] = lanesAt + lane;
        return false;
    }
    const std::int64_t entry = walk.begin + lanesAt + lane;
    margin = step.margin < margin ? step.margin : margin;
    call.signs[entry] = static_cast<std::int8_t>(step.sign);
    if (call.products) call.products[entry] = y;
    if (call.diagonal) call.diagonal[entry] = diagonal;
    return ends == 0;
}

} // namespace kvscope::gpu
