#pragma once

#include "core/engine/whitening.h"

#include <Eigen/Core>

namespace kvscope::cpu {

/// W [d, rank] with leverage of row x = || W^T x ||^2: the rows times W have orthonormal columns.
struct Whitening {
    Eigen::MatrixXd directions;
    Eigen::VectorXd singularValues; ///< of the rows, descending; empty where the route does not need them
};

/// From the Gram matrix K^T K. Routes Gram and Cholesky.
Whitening whiteningOfGram(const Eigen::MatrixXd& gram, const WhiteningRule& rule);
/// From an upper triangular (or any) R with R^T R = K^T K. Routes Svd and Qr.
Whitening whiteningOfFactor(const Eigen::MatrixXd& factor, const WhiteningRule& rule);
/// Singular values of the rows, descending, from their factor (Svd, Qr) or Gram matrix (Gram, Cholesky).
Eigen::VectorXd singularValuesOf(const Eigen::MatrixXd& small, LeverageRoute route);

} // namespace kvscope::cpu
