#pragma once

#include "core/engine/tensor.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// How leverage is computed; all four agree to rounding on well-conditioned rows. Svd and Qr start
/// from the triangular factor of the rows, Gram and Cholesky from K^T K, which squares the condition number (C6).
enum class LeverageRoute { Svd, Qr, Gram, Cholesky };

/// Ridge adds `strength` to the diagonal of K^T K. Clamp raises its eigenvalues to `strength` (Svd and Gram only).
enum class Regulariser { None, Ridge, Clamp };

/// Leverage of every row x of K: x^T (K^T K)^+ x, over all rows of a head or chunk by chunk.
struct LeverageRequest {
    Tensor rows;       ///< [H, n, d] keys before RoPE
    HostTensor sketch; ///< [H, d, k], or [1, d, k] for all heads: K Phi takes the place of K. Empty: none
    LeverageRoute route = LeverageRoute::Gram;
    bool centred = false;   ///< subtract the mean of the chunk's rows
    std::int64_t chunk = 0; ///< rows per chunk, within which leverage is computed; the last is shorter; 0: all rows
    Regulariser regulariser = Regulariser::None;
    double strength = 0;
    bool wantsSpectrum = true; ///< false: Leverage::spectrum stays empty, and a decomposition less is computed
};

struct Leverage {
    HostTensor scores;   ///< [H, n], 0..1
    HostTensor spectrum; ///< [H, k] singular values, descending, of the sketched, centred rows; empty: chunks, or not
                         ///< asked for
    std::vector<std::int64_t> rank; ///< [H] numerical rank (a ridge or a clamp drops no direction); of the last chunk
};

} // namespace kvscope
