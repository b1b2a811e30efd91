#pragma once

#include "gpu/kernels/stop_word.h"
#include "gpu/kernels/walk_steps.h"

// The steps of rows that walk together, shared by the exact and the fast kernel of balancing walks.
namespace kvscope::gpu {

/// The part of the lists that belongs to one walk.
struct Walk {
    WalkRule rule;
    std::int64_t begin, count;
    const std::int32_t* rows;
};

__device__ __forceinline__ Walk walkOfBlock(const WalksCall& call) {
    const std::int64_t begin = call.offsets[blockIdx.x];
    return {call.rules[blockIdx.x], begin, call.offsets[blockIdx.x + 1] - begin, call.rows + begin};
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
__device__ __forceinline__ std::int64_t endOfSteps(const WalksCall& call, const Walk& walk) {
    return call.endStep < walk.count ? call.endStep : walk.count;
}

/// Smallest margin of the earlier steps.
__device__ __forceinline__ double marginBefore(const WalksCall& call) {
    return call.firstStep > 0 ? call.margins[blockIdx.x] : __builtin_inf();
}

/// The steps of rows lanesAt .. lanesAt + count, at most 32 PerThread of them, run by the first warp: thread t has rows
/// t, t + 32, ..., and y[k] is the sum for row t + 32 k over the rows before lanesAt. matrix[i][j] is M of rows lanesAt
/// + i and lanesAt + j. False when the walk ends.
template <int PerThread, class Matrix>
__device__ __forceinline__ bool walkLanes(const Matrix& matrix, const WalksCall& call, const Walk& walk,
                                          std::int64_t lanesAt, int count, double (&y)[PerThread], double& margin) {
    const int lane = threadIdx.x;
    for (int group = 0; group < PerThread && group * kWarp < count; ++group) {
        const int left = count - group * kWarp, size = left < kWarp ? left : kWarp;
        const std::int64_t entry = walk.begin + lanesAt + group * kWarp + (lane < size ? lane : size - 1);
        const double uniform = call.uniforms[entry];
        const int silent = call.silent ? call.silent[entry] : 0;
        for (int i = 0; i < size; ++i) {
            const int row = group * kWarp + i;
            const double product = __shfl_sync(kAllLanes, y[group], i), diagonal = matrix[row][row];
            const WalkStep step = walkStep(walk.rule, lanesAt + row, product, diagonal,
                                           __shfl_sync(kAllLanes, uniform, i), __shfl_sync(kAllLanes, silent, i) != 0);
            if (step.ending != WalkEnding::Complete) {
                if (lane == 0) {
                    call.endings[blockIdx.x] = static_cast<std::int32_t>(step.ending);
                    call.steps[blockIdx.x] = lanesAt + row;
                }
                return false;
            }
            margin = step.margin < margin ? step.margin : margin;
            for (int k = 0; k < PerThread; ++k) y[k] += step.sign * matrix[row][lane + k * kWarp];
            if (lane == i) {
                call.signs[entry] = static_cast<std::int8_t>(step.sign);
                call.products[entry] = product;
                call.diagonal[entry] = diagonal;
            }
        }
    }
    return true;
}

} // namespace kvscope::gpu
