// The device's own speed: eight independent chains per warp or thread hide what one instruction waits for, enough
// blocks fill every multiprocessor, and results are looked at only so that the compiler keeps them.
#include "tests/bench/gpu_check/rate_kernels.h"

#include "gpu/kernels/tensor_cores.h"

namespace kvscope::check {

namespace {

using namespace gpu;

constexpr int kThreads = 256, kBlocksPerProcessor = 8, kChains = 8;
constexpr int kMatrixRounds = 4096, kScalarRounds = 2048;
constexpr float kNever = -12345.0F; ///< no sum below ends here

struct ReadCall {
    const uint4* from;
    std::size_t count;
};

struct RateCall {
    float* out;
};

__global__ void __launch_bounds__(kThreads) readKernel(ReadCall call) {
    const std::size_t step = std::size_t{gridDim.x} * kThreads;
    unsigned bits = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x; i < call.count; i += step) {
        const uint4 four = call.from[i];
        bits |= four.x | four.y | four.z | four.w;
    }
    asm volatile("" ::"r"(bits)); // the loads must happen
}

__global__ void __launch_bounds__(kThreads) matrixKernel(RateCall call) {
    float sums[kChains][4] = {};
    std::uint32_t a[4], b[2]; // pairs of numbers near 1, alternating in sign
    for (int i = 0; i < 4; ++i) a[i] = 0x3f80bf80U + (threadIdx.x * 7 + i) % 61;
    for (int i = 0; i < 2; ++i) b[i] = 0xbf803f80U + (threadIdx.x * 5 + i) % 59;
    for (int round = 0; round < kMatrixRounds; ++round)
#pragma unroll
        for (int chain = 0; chain < kChains; ++chain) multiplyFragments<BFloat16>(sums[chain], a, b);
    float sum = 0;
    for (int chain = 0; chain < kChains; ++chain)
        sum += sums[chain][0] + sums[chain][1] + sums[chain][2] + sums[chain][3];
    if (sum == kNever) *call.out = sum;
}

template <class Number> __global__ void __launch_bounds__(kThreads) scalarKernel(RateCall call) {
    Number sums[kChains];
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = Number(threadIdx.x + chain);
    for (int round = 0; round < kScalarRounds; ++round)
#pragma unroll
        for (int chain = 0; chain < kChains; ++chain) sums[chain] = fma(sums[chain], Number(0.999), Number(0.5));
    Number sum = 0;
    for (int chain = 0; chain < kChains; ++chain) sum += sums[chain];
    if (sum == Number(kNever)) *call.out = static_cast<float>(sum);
}

std::int64_t blocksOf(int processors) { return std::int64_t{processors} * kBlocksPerProcessor; }

} // namespace

void readBytes(const void* bytes, std::size_t count, Stream stream) {
    launch("reading", readKernel, {2048}, kThreads, 0, stream,
           ReadCall{static_cast<const uint4*>(bytes), count / sizeof(uint4)});
}

void multiplyMatrices(int processors, void* out, Stream stream) {
    launch("matrix rate", matrixKernel, {blocksOf(processors)}, kThreads, 0, stream,
           RateCall{static_cast<float*>(out)});
}

double matrixOperations(int processors) {
    return 2.0 * 16 * 8 * 16 * kChains * kMatrixRounds * (kThreads / kWarp) * static_cast<double>(blocksOf(processors));
}

void multiplyDoubles(int processors, void* out, Stream stream) {
    launch("double rate", scalarKernel<double>, {blocksOf(processors)}, kThreads, 0, stream,
           RateCall{static_cast<float*>(out)});
}

void multiplyFloats(int processors, void* out, Stream stream) {
    launch("float rate", scalarKernel<float>, {blocksOf(processors)}, kThreads, 0, stream,
           RateCall{static_cast<float*>(out)});
}

double scalarOperations(int processors) {
    return 2.0 * kChains * kScalarRounds * kThreads * static_cast<double>(blocksOf(processors));
}

} // namespace kvscope::check
