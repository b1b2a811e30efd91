#pragma once

#include "gpu/kernels/attention_rows.h"

// How a kernel goes from tile to tile.
namespace kvscope::gpu {

/// The tiles of `range` of which nothing is masked: neighbours, because positions ascend. All threads call it together;
/// `words` are two in shared memory. Calls ahead() behind its first barrier, where the range is not empty.
template <class Ahead, class IsWhole>
__device__ __forceinline__ TileRange wholeTiles(unsigned (&words)[2], TileRange range, int threads, const Ahead& ahead,
                                                const IsWhole& isWhole) {
    if (threadIdx.x < 2) words[threadIdx.x] = 0;
    __syncthreads();
    if (range.begin < range.end) ahead();
    unsigned end = 0, beforeBegin = 0; // counted from the ends of the range, so that both are maxima
    for (std::int64_t tile = range.begin + threadIdx.x; tile < range.end; tile += threads) {
        if (!isWhole(tile)) continue;
        end = static_cast<unsigned>(tile + 1 - range.begin);
        beforeBegin = beforeBegin > 0 ? beforeBegin : static_cast<unsigned>(range.end - tile);
    }
    if (end > 0) {
        atomicMax(&words[0], end);
        atomicMax(&words[1], beforeBegin);
    }
    __syncthreads();
    return {range.end - words[1], range.begin + words[0]};
}

/// A walk over tiles of moving rows. Three of them have places in shared memory: while one is multiplied, the next is
/// being fetched and the one after that is being placed, so one barrier per tile is enough.
struct TileWalk {
    int tile, end, wholeBegin, wholeEnd;
    int place = 0, stage = 0;

    __device__ __forceinline__ explicit TileWalk(TileRange tiles, TileRange wholeOnes)
        : tile(static_cast<int>(tiles.begin)), end(static_cast<int>(tiles.end)),
          wholeBegin(static_cast<int>(wholeOnes.begin)), wholeEnd(static_cast<int>(wholeOnes.end)) {}
    __device__ __forceinline__ bool isAtEnd() const { return tile >= end; }
    __device__ __forceinline__ bool isLast() const { return tile + 1 >= end; }
    __device__ __forceinline__ bool isWhole() const { return tile >= wholeBegin && tile < wholeEnd; }
    __device__ __forceinline__ int placeAfter(int tiles) const {
        const int sum = place + tiles;
        return sum < 3 ? sum : sum - 3;
    }
    __device__ __forceinline__ void step() {
        ++tile;
        place = placeAfter(1);
        stage = 1 - stage;
    }
};

} // namespace kvscope::gpu
