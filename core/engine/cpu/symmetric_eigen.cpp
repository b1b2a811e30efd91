// The symmetric eigenproblem, by Eigen.
#include "core/engine/cpu/symmetric_eigen.h"

#include <Eigen/Eigenvalues>

namespace kvscope::cpu {

SymmetricEigen symmetricEigen(const Eigen::MatrixXd& symmetric) {
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
    return {solver.eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXd symmetricEigenvalues(const Eigen::MatrixXd& symmetric) {
    return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(symmetric, Eigen::EigenvaluesOnly).eigenvalues();
}

} // namespace kvscope::cpu
