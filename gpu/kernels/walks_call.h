#pragma once

#include "gpu/kernels/device_data.h"

#include <limits>

// Arguments of a launch of self-balancing walks (BalanceKV Algorithm 2 and its blocked form;
// core/engine/balancing_walk.h); when exact, with the CPU engine's bits. One launch runs all walks of all heads, one
// block of threads per walk; the kernel matrix of a walk exists only in panels of 64 rows by 32.
namespace kvscope::gpu {

/// In the order of the walk's rows: y_i = sum over j < i of M_ij sign_j, p_i = 1/2 - gamma y_i, sign_i = +1 iff u_i <
/// p_i, M_ij = e^(logScale <k_i - c, k_j - c> - logShift) (valueScale <x_i v_i, x_j v_j> + valueConstant).
struct WalkRule {
    std::int64_t head = 0;
    std::int64_t meanOver = 0; ///< c = sum of the rows' keys / meanOver; 0: c is the head's row of `centres`
    double gamma = 0;
    double logScale = 1, logShift = 0, valueScale = 1, valueConstant = 0;
    double failAbove = std::numeric_limits<double>::infinity(); ///< |y| above it ends the walk (FAIL)
    std::int32_t firstIsPlus = 0;                               ///< the first sign is +1 without a draw
};

/// All pointers are device memory. Walk w has the entries offsets[w] .. offsets[w + 1] of every list.
struct WalksCall {
    DeviceRows keys;
    DeviceRows values;              ///< data null: <v_i, v_j> = 0
    const float* centres = nullptr; ///< [H, d]; null: 0
    std::int64_t walks = 0;
    std::int64_t entries = 0; ///< offsets[walks]
    const std::int64_t* offsets = nullptr;
    const WalkRule* rules = nullptr;      ///< [walks]
    const std::int32_t* rows = nullptr;   ///< [entries]
    const double* uniforms = nullptr;     ///< [entries] u
    const double* weights = nullptr;      ///< [entries] x; null: all 1
    const std::uint8_t* silent = nullptr; ///< [entries] 1: sign 0, the row changes no sum; null: none

    std::int8_t* signs = nullptr;    ///< [entries]; entries after a walk's end are not written
    double* products = nullptr;      ///< [entries] y; null: not wanted
    double* diagonal = nullptr;      ///< [entries] M_ii; null: not wanted
    std::int64_t* steps = nullptr;   ///< [walks] steps done; fewer than the walk's rows when it ended early
    std::int32_t* endings = nullptr; ///< [walks] a WalkEnding
    double* margins = nullptr;       ///< [walks] smallest |u - p| of a drawn sign
    double* scratch = nullptr;       ///< [entries]

    /// Steps to take in this call, multiples of 64: a long walk can be stopped between launches. The steps before
    /// `firstStep` were taken by an earlier call with the same lists.
    std::int64_t firstStep = 0, endStep = INT64_MAX;

    /// Fast: products of keys and of values, and exponentials, in float, on tensor cores where both are of one 16-bit
    /// type; their sums, p and the margins in double. Signs may differ where |u - p| is below gamma times the error of
    /// y.
    KernelArithmetic arithmetic = KernelArithmetic::Exact;
    StopWord stop = {};
};

enum class WalkEnding : std::int32_t {
    Complete,
    Failed,   ///< |y| > failAbove at step `steps`
    NotFinite ///< NaN or infinity at step `steps`: the caller refuses the keys and values
};

} // namespace kvscope::gpu
