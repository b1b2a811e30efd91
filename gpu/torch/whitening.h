#pragma once

#include "core/engine/leverage.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

// The small dense problems of leverage, B of them at once: each operation is one launch for all heads and chunks of a
// batch. For sources of this folder that include LibTorch's headers.
namespace kvscope::gpu {

/// W [B, k, k] with leverage of row x = ||W^T x||^2. Directions beyond the rank are zero columns, so that matrices of
/// different rank fit into one batch.
struct Whitening {
    at::Tensor directions;
    at::Tensor rank;           ///< [B] columns of W that count
    at::Tensor singularValues; ///< [B, k] of the rows, descending; undefined where the route does not need them
};

struct WhiteningRule {
    LeverageRoute route = LeverageRoute::Svd;
    Regulariser regulariser = Regulariser::None;
    double strength = 0;
    std::int64_t rows = 0; ///< of each problem
    at::Tensor noise;      ///< [B] squared length below which a direction counts as rounding
};

/// K^T K [B, k, k] of rows [B, n, k].
at::Tensor gramOf(const at::Tensor& rows);
/// R with R^T R = K^T K, upper triangular: [B, min(n, k), k].
at::Tensor triangleOf(const at::Tensor& rows);

/// Routes Gram and Cholesky. A matrix that Cholesky cannot factor is solved by eigenvectors.
Whitening whiteningOfGram(const at::Tensor& gram, const WhiteningRule& rule);
/// Routes Svd and Qr, from R of triangleOf; dependent columns are solved by singular vectors.
Whitening whiteningOfTriangle(const at::Tensor& triangle, const WhiteningRule& rule);

} // namespace kvscope::gpu
