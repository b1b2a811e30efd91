#pragma once

#include "core/engine/whitening.h"

#include <Eigen/Core>

namespace kvscope::cpu {

/// W [d, rank] with leverage of row x = || W^T x ||^2: the rows times W have orthonormal columns.
struct Whitening {
    Eigen::MatrixXd directions;
    Eigen::VectorXd singularValues; ///< of the rows, descending; empty where the route does not need them
};

/// From the rows' small matrix: an upper triangular (or any) R with R^T R = K^T K for the routes Svd and Qr, K^T K for
/// the others.
Whitening whiteningOf(const Eigen::MatrixXd& small, const WhiteningRule& rule);
/// Singular values of the rows, descending, from their whitening or, where it has none, from their small matrix.
Eigen::VectorXd singularValuesOf(const Whitening& whitening, const Eigen::MatrixXd& small, LeverageRoute route);

} // namespace kvscope::cpu
