#pragma once

#include "gpu/kernels/elements.h"
#include "tests/support/emulation/emulated_device.h"

#include <cmath>

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

inline unsigned __ballot_sync(unsigned, bool vote) {
    using namespace kvscope::gpu::emulation;
    *laneSlot(static_cast<int>(threadPlace().x % 32)) = vote ? 1 : 0;
    warpBarrier();
    unsigned votes = 0;
    for (int lane = 0; lane < 32; ++lane) votes |= unsigned{*laneSlot(lane)} << lane;
    warpBarrier();
    return votes;
}

inline unsigned atomicMax(unsigned* to, unsigned value) {
    ::kvscope::gpu::emulation::noteAccess(to, sizeof *to, true, true);
    return ::kvscope::gpu::emulation::exchangedForLarger(to, value);
}

namespace kvscope::gpu {

/// Copies at once what hardware copies some time before waitForCopies.
inline void copySixteen(void* to, const void* from, bool there = true) {
    there ? std::memcpy(to, from, 16) : std::memset(to, 0, 16);
}
inline void waitForCopies() {}

inline constexpr bool kHasWarpgroups = false;
inline void beginWarpgroup(float (&)[8][4]) {}
inline void endWarpgroup(float (&)[8][4]) {}
template <class Element> void multiplyByWarpgroup(float (&)[8][4], const std::uint32_t (&)[4], const std::uint16_t*) {}

/// See gpu/kernels/tensor_cores.h.
template <bool Transposed> void loadMatrices(std::uint32_t (&into)[4], const void* row) {
    const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4, two = lane % 4 * 2;
    std::memcpy(emulation::laneSlot(lane), &row, sizeof row);
    emulation::warpBarrier();
    for (int i = 0; i < 4; ++i) {
        const auto at = [&](int r, int c) {
            const std::uint16_t* begin;
            std::memcpy(&begin, emulation::laneSlot(8 * i + r), sizeof begin);
            return std::uint32_t{begin[c]};
        };
        into[i] = Transposed ? at(two, group) | at(two + 1, group) << 16 : at(group, two) | at(group, two + 1) << 16;
    }
    emulation::warpBarrier();
}

/// The tensor cores' m8n8k4 of doubles (see gpu/kernels/tensor_cores.h for who holds what).
inline void multiplyDoubles(double (&c)[2], double a, double b) {
    const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4, two = lane % 4 * 2;
    const double both[2] = {a, b};
    double left[4][2], right[2][4][2]; // of the lanes that hold this lane's row of a, and its columns of b
    std::memcpy(emulation::laneSlot(lane), both, sizeof both);
    emulation::warpBarrier();
    std::memcpy(left, emulation::laneSlot(4 * group), sizeof left);
    std::memcpy(right, emulation::laneSlot(4 * two), sizeof right);
    emulation::warpBarrier();
    for (int column = 0; column < 2; ++column)
        for (int k = 0; k < 4; ++k) c[column] = std::fma(left[k][0], right[column][k][1], c[column]);
}

/// The tensor cores' m16n8k16, fragment by fragment (see gpu/kernels/tensor_cores.h for who holds what).
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
