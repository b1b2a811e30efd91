// Compiled as kernels are.
#include "tests/support/emulation/wrong_kernels.h"

#include "gpu/kernels/device.h"

namespace kvscope::gpu::emulation {

namespace {

constexpr int kThreads = 64;

struct WrongCall {
    Wrong wrong;
    float* sums;
};

struct Shared {
    float numbers[kThreads];
    float warpSums[kThreads / kWarp];
};

__global__ void wrongKernel(WrongCall call) {
    Shared& s = sharedAs<Shared>();
    const int t = threadIdx.x, warp = t / kWarp;
    s.numbers[t] = static_cast<float>(t);
    if (call.wrong != Wrong::NoWarpBarrier) __syncwarp();
    if (t % kWarp == 0) {
        s.warpSums[warp] = 0;
        for (int i = 0; i < kWarp; ++i) s.warpSums[warp] += s.numbers[warp * kWarp + i];
    }
    if (call.wrong != Wrong::NoBlockBarrier) __syncthreads();
    if (t == 0) call.sums[call.wrong == Wrong::BlocksShareAnElement ? 0 : blockIdx.x] = s.warpSums[0] + s.warpSums[1];
}

} // namespace

void launchWrongKernel(Wrong wrong, float* sums) {
    launch("wrong", wrongKernel, {2}, kThreads, sizeof(Shared), nullptr, WrongCall{wrong, sums});
}

} // namespace kvscope::gpu::emulation
