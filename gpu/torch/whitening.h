#pragma once

#include "core/engine/leverage.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

// The small problems of leverage, B of them at once: each operation is one launch for all heads and chunks of a batch.
// Included by sources of this folder that read LibTorch's headers themselves.
namespace kvscope::gpu {

/// W [B, k, k] with leverage of row x = ||W^T x||^2. Directions that do not count are zero columns, so that matrices of
/// different rank stay in one batch.
struct Whitening {
    at::Tensor directions;
    at::Tensor rank;           ///< [B] columns of W that count
    at::Tensor singularValues; ///< [B, k] of the rows, descending; undefined where the route does not need them
};

struct WhiteningRule {
    LeverageRoute route = LeverageRoute::Svd;
    Regulariser regulariser = Regulariser::None;
    double strength = 0;
    std::int64_t rows = 0; ///< that each problem was made of
    at::Tensor noise;      ///< [B] squared length below which a direction is rounding
};

/// K^T K [B, k, k] of rows [B, n, k].
at::Tensor gramOf(const at::Tensor& rows);
/// R with R^T R = K^T K, upper triangular: [B, min(n, k), k].
at::Tensor triangleOf(const at::Tensor& rows);

/// Routes Gram and Cholesky. A matrix that Cholesky cannot factor falls back to eigenvectors by itself.
Whitening whiteningOfGram(const at::Tensor& gram, const WhiteningRule& rule);
/// From R of triangleOf. Routes Svd and Qr; likewise.
Whitening whiteningOfTriangle(const at::Tensor& triangle, const WhiteningRule& rule);

} // namespace kvscope::gpu
