#pragma once

#include "core/engine/leverage.h"

#include <Eigen/Core>

namespace kvscope::cpu {

/// W [d, rank] with leverage of row x = || W^T x ||^2: the rows times W have orthonormal columns.
struct Whitening {
    Eigen::MatrixXd directions;
    Eigen::VectorXd singularValues; ///< of the rows, descending; empty where the route does not need them
};

struct WhiteningRule {
    LeverageRoute route = LeverageRoute::Gram;
    Regulariser regulariser = Regulariser::None;
    double strength = 0;
    std::int64_t rows = 0;
    /// Squared length below which a direction counts as rounding, independent of the largest one (what centring leaves
    /// of constant rows).
    double noise = 0;
};

/// From the Gram matrix K^T K. Routes Gram and Cholesky.
Whitening whiteningOfGram(const Eigen::MatrixXd& gram, const WhiteningRule& rule);
/// From an upper triangular (or any) R with R^T R = K^T K. Routes Svd and Qr.
Whitening whiteningOfFactor(const Eigen::MatrixXd& factor, const WhiteningRule& rule);

} // namespace kvscope::cpu
