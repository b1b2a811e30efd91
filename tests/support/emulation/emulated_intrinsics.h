#pragma once

#include "gpu/kernels/elements.h"
#include "tests/support/emulation/emulated_device.h"

// CUDA's built-in names for the emulated device: places, barriers, exchanges between lanes, atomics, tensor cores.

#define threadIdx (::kvscope::gpu::emulation::threadPlace())
#define blockIdx (::kvscope::gpu::emulation::blockPlace())
#define blockDim (::kvscope::gpu::emulation::blockSize())
#define gridDim (::kvscope::gpu::emulation::gridSize())

inline void __syncthreads() { ::kvscope::gpu::emulation::blockBarrier(); }

inline int __syncthreads_or(int vote) { return ::kvscope::gpu::emulation::blockBarrier(vote != 0) ? 1 : 0; }

inline void __syncwarp(unsigned = 0xffffffffU) { ::kvscope::gpu::emulation::warpBarrier(); }

template <class T> T __shfl_sync(unsigned, T value, int lane) {
    return ::kvscope::gpu::emulation::exchanged(value, lane);
}

template <class T> T __shfl_xor_sync(unsigned, T value, int mask) {
    return ::kvscope::gpu::emulation::exchanged(value, static_cast<int>(threadIdx.x % 32) ^ mask);
}

inline unsigned __ballot_sync(unsigned, int vote) {
    unsigned votes = vote != 0 ? 1U << threadIdx.x % 32 : 0;
    for (int half = 16; half > 0; half /= 2) votes |= __shfl_xor_sync(0xffffffffU, votes, half);
    return votes;
}

inline unsigned atomicMax(unsigned* to, unsigned value) {
    ::kvscope::gpu::emulation::noteAccess(to, sizeof *to, true, true);
    return ::kvscope::gpu::emulation::exchangedForLarger(to, value);
}

namespace kvscope::gpu {

/// The tensor cores' m16n8k16, fragment by fragment (see gpu/kernels/tensor_tile.h for who holds what).
template <class Element>
void multiplyFragments(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4, two = lane % 4 * 2;
    std::uint32_t left[4][4], right[2][4][2]; // a of the lanes that hold this lane's rows, b of those with its columns
    std::memcpy(emulation::laneSlot(lane), a, sizeof a);
    emulation::warpBarrier();
    for (int t = 0; t < 4; ++t) std::memcpy(left[t], emulation::laneSlot(4 * group + t), sizeof left[t]);
    emulation::warpBarrier();
    std::memcpy(emulation::laneSlot(lane), b, sizeof b);
    emulation::warpBarrier();
    for (int column = 0; column < 2; ++column)
        for (int t = 0; t < 4; ++t)
            std::memcpy(right[column][t], emulation::laneSlot(4 * (two + column) + t), sizeof right[column][t]);
    emulation::warpBarrier();
    const auto half = [](std::uint32_t pair, int which) {
        return widened(Element{static_cast<std::uint16_t>(pair >> (16 * which))});
    };
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 16; ++k) { // element k lies in the pair k / 2 of the lower or upper eight
            const int t = k % 8 / 2, upper = k / 8;
            c[i] += half(left[t][i / 2 + 2 * upper], k % 2) * half(right[i % 2][t][upper], k % 2);
        }
}

} // namespace kvscope::gpu
