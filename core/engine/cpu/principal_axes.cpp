// Principal component analysis of the keys of one head: the d x d covariance by the product kernel, which takes most of
// the time, then its leading eigenvectors by Spectra.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/row_moments.h"
#include "core/engine/cpu/symmetric_eigen.h"

#include <Spectra/MatOp/DenseSymMatProd.h>
#include <Spectra/SymEigsSolver.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <stdexcept>
#include <utility>

namespace kvscope::cpu {

namespace {

/// (sum x x^T - n mean mean^T) / (n - 1). Cancellation costs a factor (mean / spread)^2 of 2^53, harmless for keys.
Eigen::MatrixXd covarianceOf(const RowMoments& moments, const Eigen::VectorXd& mean, std::int64_t n) {
    const std::int64_t d = mean.size(), size = moments.stride;
    Eigen::MatrixXd covariance(d, d);
    const double rows = static_cast<double>(n), divisor = std::max(1.0, rows - 1);
    for (std::int64_t a = 0; a < d; ++a)
        for (std::int64_t b = a; b < d; ++b) {
            const double product = moments.products[a * size + b];
            covariance(a, b) = covariance(b, a) = (product - rows * mean[a] * mean[b]) / divisor;
        }
    for (std::int64_t a = 0; a < d; ++a) // cancellation may leave a tiny negative variance
        covariance(a, a) = std::max(0.0, covariance(a, a));
    return covariance;
}

struct Eigenpairs {
    Eigen::VectorXd values; ///< descending
    Eigen::MatrixXd vectors;
};

Eigenpairs allPairs(const Eigen::MatrixXd& symmetric, int count) {
    const cpu::SymmetricEigen all = cpu::symmetricEigen(symmetric);
    return {all.values.reverse().head(count), all.vectors.rowwise().reverse().leftCols(count)};
}

/// Whether the pairs are eigenpairs of the matrix with unit vectors, up to rounding.
bool arePairsOf(const Eigen::MatrixXd& symmetric, const Eigenpairs& pairs) {
    const double tolerance = 1e-9 * symmetric.trace();
    const Eigen::MatrixXd residual = symmetric * pairs.vectors - pairs.vectors * pairs.values.asDiagonal();
    const Eigen::Index count = pairs.values.size();
    return (residual.cwiseAbs().array() <= tolerance).all() && // false for NaN, which maxCoeff may skip
           (pairs.vectors.transpose() * pairs.vectors).isApprox(Eigen::MatrixXd::Identity(count, count), 1e-9);
}

/// Lanczos for a few eigenpairs of many. Nothing where it fails, as it does for matrices of low rank: the Krylov space
/// is exhausted, and Spectra throws, does not converge, or returns numbers that are no eigenvalues.
std::optional<Eigenpairs> lanczosPairs(const Eigen::MatrixXd& symmetric, int count, int subspace) {
    Spectra::DenseSymMatProd<double> product(symmetric);
    Spectra::SymEigsSolver<Spectra::DenseSymMatProd<double>> solver(product, count, subspace);
    try {
        solver.init(); // Spectra's own fixed starting vector: the same axes every time
        solver.compute(Spectra::SortRule::LargestAlge, 1000, 1e-13);
    } catch (const std::runtime_error&) { // of its tridiagonal solver
        return {};
    }
    if (solver.info() != Spectra::CompInfo::Successful) return {};
    Eigenpairs pairs{solver.eigenvalues(), solver.eigenvectors()};
    return arePairsOf(symmetric, pairs) ? std::optional(std::move(pairs)) : std::nullopt;
}

/// By Lanczos; by the full solver where the matrix is small or zero or Lanczos fails.
Eigenpairs leadingPairs(const Eigen::MatrixXd& symmetric, int count) {
    const int subspace = std::max(2 * count + 1, 20);
    if (subspace < symmetric.rows() && symmetric.trace() > 0)
        if (auto pairs = lanczosPairs(symmetric, count, subspace)) return *std::move(pairs);
    return allPairs(symmetric, count);
}

/// The sign of an eigenvector is arbitrary; here its largest absolute entry (ties: the first) is positive.
void fixSign(Eigen::Ref<Eigen::VectorXd> axis) {
    Eigen::Index largest = 0;
    axis.cwiseAbs().maxCoeff(&largest);
    if (axis[largest] < 0) axis = -axis;
}

PrincipalAxes axesOf(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance, int components) {
    const std::int64_t d = mean.size();
    Eigenpairs pairs = leadingPairs(covariance, components);
    PrincipalAxes out{HostTensor::filled({d}), HostTensor::filled({components, d}), {}, covariance.trace()};
    std::ranges::transform(mean, out.mean.data.begin(), [](double x) { return static_cast<float>(x); });
    for (int a = 0; a < components; ++a) {
        fixSign(pairs.vectors.col(a));
        for (std::int64_t c = 0; c < d; ++c) out.axes.data[a * d + c] = static_cast<float>(pairs.vectors(c, a));
        const double variance = std::max(0.0, pairs.values[a]);
        out.explainedVariance.push_back(out.totalVariance > 0 ? variance / out.totalVariance : 0.0);
    }
    return out;
}

} // namespace

PrincipalAxes CpuEngine::principalAxes(const Tensor& keys, std::int64_t head, int components,
                                       const Checkpoint& checkpoint) const {
    const std::int64_t n = keys.size(1), d = keys.size(2);
    assert(n > 0 && components > 0);
    Progress progress(checkpoint, static_cast<double>(n));
    const RowMoments total = rowMoments(m_workers, m_kernels, HeadRows(keys, head, checkpoint).data(), n, d, progress);
    const Eigen::VectorXd mean = Eigen::Map<const Eigen::VectorXd>(total.sums.data(), d) / static_cast<double>(n);
    return axesOf(mean, covarianceOf(total, mean, n), std::min(components, static_cast<int>(d)));
}

HostTensor CpuEngine::project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const {
    const std::int64_t n = keys.size(1), d = keys.size(2), components = axes.axes.shape[0];
    assert(axes.axes.shape[1] == d);
    HostTensor out = HostTensor::filled({n, components});
    const HeadRows rows(keys, head);
    // (x - mean) . axis = x . axis - mean . axis
    std::vector<double> offsets(static_cast<std::size_t>(components));
    for (std::int64_t a = 0; a < components; ++a)
        m_kernels.rowProducts(axes.mean.data.data(), 1, d, axes.axes.data.data() + a * d, &offsets[a], nullptr);
    m_workers.each((n + kMomentRows - 1) / kMomentRows, [&](std::int64_t part) {
        const std::int64_t begin = part * kMomentRows, count = std::min(kMomentRows, n - begin);
        std::vector<double> products(static_cast<std::size_t>(count));
        for (std::int64_t a = 0; a < components; ++a) {
            m_kernels.rowProducts(rows.data() + begin * d, count, d, axes.axes.data.data() + a * d, products.data(),
                                  nullptr);
            for (std::int64_t r = 0; r < count; ++r)
                out.data[(begin + r) * components + a] = static_cast<float>(products[r] - offsets[a]);
        }
    });
    return out;
}

} // namespace kvscope::cpu
