#pragma once

#include "core/base/index.h"
#include "core/engine/tensor.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace kvscope {

/// One self-balancing walk over some rows of a head (BalanceKV Algorithm 2 and its blocked form).
/// In the order of `rows`: y_i = sum over j < i of M_ij sign_j, p_i = 1/2 - gamma y_i, sign_i = +1 iff u_i < p_i, with
///   M_ij = e^(logScale <k_i - c, k_j - c> - logShift) (valueScale <x_i v_i, x_j v_j> + valueConstant).
/// Exponents above 500 count as 500, so nothing overflows; p lies far outside [0, 1] long before.
struct BalancingWalk {
    std::int64_t head = 0;
    std::vector<TokenIndex> rows;
    std::vector<double> uniforms; ///< u, one per row
    std::vector<double> weights;  ///< x, one per row; empty: all 1
    std::vector<char> silent;     ///< per row, 1: the sign is 0, so the row changes no sum; empty: none
    std::int64_t meanOver = 0;    ///< c = sum of the rows' keys / meanOver; 0: c is the head's row of `centres`
    double gamma = 0;
    double logScale = 1, logShift = 0, valueScale = 1, valueConstant = 0;
    bool firstIsPlus = false;                                   ///< the first sign is +1 without a draw
    double failAbove = std::numeric_limits<double>::infinity(); ///< |y| above it ends the walk (FAIL)
};

struct BalancingWalks {
    Tensor keys;        ///< [H, n, d]
    Tensor values;      ///< [H, n, dv]; empty: <v_i, v_j> = 0
    HostTensor centres; ///< [H, d]; empty: 0
    std::vector<BalancingWalk> walks;
    /// Only signs are wanted: products and diagonals may stay empty, and of the margins only the smallest of each
    /// head's walks that did not FAIL need be right.
    bool signsOnly = false;
};

/// The steps of one walk, row by row. After FAIL the lists end before the failing row.
struct BalancingSteps {
    std::vector<std::int8_t> signs;
    std::vector<double> products;                            ///< y
    std::vector<double> diagonal;                            ///< M_ii
    std::int64_t failedAt = -1;                              ///< index into `rows`; -1: the walk did not fail
    double margin = std::numeric_limits<double>::infinity(); ///< smallest |u - p| of a drawn sign
    std::int64_t inDouble = 0; ///< with signsOnly: rows summed in double for their sign; depends on the engine
};

} // namespace kvscope
