// Stable selection of the best rows by radix: four histograms of eight bits find the rank of the worst kept score and
// how many scores equal to it are kept; one more pass in row order writes the rows, so that ties go to the earlier row
// and the list is ascending. One block of threads per head. Integers only: the order of threads cannot change a result.
#include "gpu/kernels/top_k.h"

#include "gpu/kernels/device.h"
#include "gpu/kernels/rank_steps.h"

namespace kvscope::gpu {

namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarp;
constexpr int kBins = 256;
constexpr int kCopies = 8; ///< of the histogram: scores share leading bits, so warps would contend for the same bin
constexpr int kBinsPerLane = kBins / kWarp;

struct Shared {
    unsigned histogram[kCopies][kBins];
    unsigned less[kWarps], equal[kWarps]; ///< per warp, of the current rows
    unsigned prefix;                      ///< leading bits of the worst kept rank
    unsigned wanted;                      ///< how many of the rows with these bits are kept
    unsigned lessBefore, equalBefore;     ///< in the rows before the current ones
    unsigned bestEvicted, firstNaN;
};

/// The rows of one head that compete.
struct Rows {
    const float* scores;
    std::int64_t begin, end;
};

/// Finds the bin that holds row number s.wanted (from 1): run by the first warp, eight bins per lane.
__device__ __forceinline__ void chooseBin(Shared& s, int shift) {
    const int lane = threadIdx.x;
    unsigned counts[kBinsPerLane], sum = 0;
    for (int i = 0; i < kBinsPerLane; ++i) {
        counts[i] = 0;
        for (int copy = 0; copy < kCopies; ++copy)
            counts[i] += s.histogram[copy][lane * kBinsPerLane + i];
        sum += counts[i];
    }
    unsigned before = sum;
    for (int step = 1; step < kWarp; step *= 2) {
        const unsigned other = __shfl_up_sync(kAllLanes, before, step);
        before += lane >= step ? other : 0;
    }
    before -= sum;
    const unsigned wanted = s.wanted;
    __syncwarp();
    for (int i = 0; i < kBinsPerLane; ++i) {
        if (before < wanted && wanted <= before + counts[i]) { // true in one lane only
            s.prefix |= static_cast<unsigned>(lane * kBinsPerLane + i) << shift;
            s.wanted = wanted - before;
        }
        before += counts[i];
    }
}

/// Stores the rank of the worst kept row in s.prefix and the number of kept rows of equal score in s.wanted.
__device__ __forceinline__ void findWorstKept(Shared& s, const Rows& rows) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < kCopies * kBins; i += kThreads)
            s.histogram[i / kBins][i % kBins] = 0;
        __syncthreads();
        const unsigned known = shift == 24 ? 0 : 0xffffffffU << (shift + 8), prefix = s.prefix;
        unsigned* histogram = s.histogram[threadIdx.x / kWarp % kCopies];
        for (std::int64_t row = rows.begin + threadIdx.x; row < rows.end; row += kThreads) {
            const unsigned rank = rankBits(rows.scores[row]);
            if ((rank & known) == prefix)
                atomicAdd(&histogram[rank >> shift & (kBins - 1)], 1U);
        }
        __syncthreads();
        if (threadIdx.x < kWarp)
            chooseBin(s, shift);
        __syncthreads();
    }
}

/// Writes the kept rows of [first, first + kThreads) in row order; notes the best evicted rank.
__device__ __forceinline__ void writeRows(Shared& s, const Rows& rows, std::int64_t first, std::int32_t* kept) {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    const std::int64_t row = first + threadIdx.x;
    const bool valid = row < rows.end;
    const unsigned rank = valid ? rankBits(rows.scores[row]) : 0xffffffffU;
    const bool isLess = valid && rank < s.prefix, isEqual = valid && rank == s.prefix;
    const unsigned lessVotes = __ballot_sync(kAllLanes, isLess), equalVotes = __ballot_sync(kAllLanes, isEqual);
    if (lane == 0) {
        s.less[warp] = static_cast<unsigned>(__popc(lessVotes));
        s.equal[warp] = static_cast<unsigned>(__popc(equalVotes));
    }
    __syncthreads();
    unsigned less = s.lessBefore, equal = s.equalBefore;
    for (int w = 0; w < warp; ++w) {
        less += s.less[w];
        equal += s.equal[w];
    }
    const unsigned below = (1U << lane) - 1;
    less += static_cast<unsigned>(__popc(lessVotes & below));
    equal += static_cast<unsigned>(__popc(equalVotes & below));
    if (isLess || (isEqual && equal < s.wanted))
        kept[less + (equal < s.wanted ? equal : s.wanted)] = static_cast<std::int32_t>(row);
    else if (valid)
        atomicMin(&s.bestEvicted, rank);
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 0; w < kWarps; ++w) {
            s.lessBefore += s.less[w];
            s.equalBefore += s.equal[w];
        }
    __syncthreads();
}

__device__ __forceinline__ bool meetsNaN(Shared& s, const TopKCall& call, const float* scores) {
    if (threadIdx.x == 0)
        s.firstNaN = 0xffffffffU;
    __syncthreads();
    for (std::int64_t row = threadIdx.x; row < call.rows; row += kThreads)
        if (scores[row] != scores[row])
            atomicMin(&s.firstNaN, static_cast<unsigned>(row));
    __syncthreads();
    const bool found = s.firstNaN != 0xffffffffU;
    if (threadIdx.x == 0)
        call.nanRows[blockIdx.x] = found ? std::int64_t{s.firstNaN} : -1;
    return found;
}

__global__ void __launch_bounds__(kThreads) topKKernel(TopKCall call) {
    Shared& s = sharedAs<Shared>();
    const std::int64_t head = blockIdx.x;
    const float* scores = call.scores + head * call.rows;
    if (meetsNaN(s, call, scores))
        return;
    const KeptShares shares = keptShares(call.rows, call.counts[head], call.protectFirst, call.protectLast);
    const Rows rows{scores, shares.first, call.rows - shares.last};
    std::int32_t* kept = call.kept + head * call.keptStride;
    for (std::int64_t i = threadIdx.x; i < shares.first; i += kThreads)
        kept[i] = static_cast<std::int32_t>(i);
    for (std::int64_t i = threadIdx.x; i < shares.last; i += kThreads)
        kept[shares.first + shares.free + i] = static_cast<std::int32_t>(rows.end + i);
    const bool all = shares.free == rows.end - rows.begin;
    if (threadIdx.x == 0) {
        s.prefix = 0;
        s.wanted = static_cast<unsigned>(shares.free);
        s.lessBefore = s.equalBefore = 0;
        s.bestEvicted = 0xffffffffU;
        if (all || shares.free == 0)
            call.margins[head] = __builtin_inff();
    }
    __syncthreads();
    kept += shares.first;
    if (all)
        for (std::int64_t i = threadIdx.x; i < shares.free; i += kThreads)
            kept[i] = static_cast<std::int32_t>(rows.begin + i);
    if (all || shares.free == 0)
        return;
    findWorstKept(s, rows);
    for (std::int64_t first = rows.begin; first < rows.end; first += kThreads)
        writeRows(s, rows, first, kept);
    if (threadIdx.x == 0)
        call.margins[head] = marginOf(s.prefix, s.bestEvicted);
}

} // namespace

void topK(const TopKCall& call, Stream stream) {
    launch("top k", topKKernel, {call.heads}, kThreads, sizeof(Shared), stream, call);
}

} // namespace kvscope::gpu
