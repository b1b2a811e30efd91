#pragma once

namespace kvscope::gpu::emulation {

/// Kernels that tests of the emulated device want wrong: each sums up the numbers that 64 threads write into shared
/// memory, without one thing that this needs.
enum class Wrong { Nothing, NoBlockBarrier, NoWarpBarrier, BlocksShareAnElement };
/// `sums`: one per block, of two blocks.
void launchWrongKernel(Wrong wrong, float* sums);

} // namespace kvscope::gpu::emulation
