#pragma once

#include <Eigen/Core>

namespace kvscope::cpu {

/// Eigenvalues, ascending, and eigenvectors, as columns, of a symmetric matrix [d, d], whose lower triangle is read.
struct SymmetricEigen {
    Eigen::VectorXd values;  ///< [d]
    Eigen::MatrixXd vectors; ///< [d, d]
};

// Nothing else calls Eigen's solver, because compiling it takes 13 seconds.
SymmetricEigen symmetricEigen(const Eigen::MatrixXd& symmetric);
Eigen::VectorXd symmetricEigenvalues(const Eigen::MatrixXd& symmetric); ///< [d], ascending

} // namespace kvscope::cpu
