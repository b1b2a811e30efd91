#pragma once

#include <Eigen/Core>

namespace kvscope::cpu {

/// Of a symmetric matrix [d, d], whose lower triangle is read: its eigenvalues ascending, eigenvectors as columns.
struct SymmetricEigen {
    Eigen::VectorXd values;  ///< [d]
    Eigen::MatrixXd vectors; ///< [d, d]
};

// By Eigen's solver, here alone: compiling it takes 13 seconds.
SymmetricEigen symmetricEigen(const Eigen::MatrixXd& symmetric);
Eigen::VectorXd symmetricEigenvalues(const Eigen::MatrixXd& symmetric); ///< [d], ascending

} // namespace kvscope::cpu
