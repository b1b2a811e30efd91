#pragma once

#include <Eigen/Core>

namespace kvscope::cpu {

/// Of a symmetric matrix [d, d], whose lower triangle is read: its eigenvalues ascending, eigenvectors as columns.
struct SymmetricEigen {
    Eigen::VectorXd values;  ///< [d]
    Eigen::MatrixXd vectors; ///< [d, d]
};

// Eigen's solver, which takes the compiler 13 seconds in every source that names it.
SymmetricEigen symmetricEigen(const Eigen::MatrixXd& symmetric);
Eigen::VectorXd symmetricEigenvalues(const Eigen::MatrixXd& symmetric); ///< [d], ascending

} // namespace kvscope::cpu
