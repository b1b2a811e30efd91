// Principal component analysis of the keys of one head: the d x d covariance, then its leading eigenvectors. The
// covariance takes nearly all the time and uses the product kernel; the eigenvectors of the small symmetric matrix
// come from Spectra.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/lane_block.h"

#include <Eigen/Eigenvalues>
#include <Spectra/MatOp/DenseSymMatProd.h>
#include <Spectra/SymEigsSolver.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope::cpu {

namespace {

constexpr std::int64_t kRowsPerPart = 2048; // rows whose products are added before the partial sums are
constexpr std::int64_t kRowsPerPanel = 64;

/// Sums of x_a x_b and of x_a over some rows. d is padded to a multiple of 8 columns of zeros.
struct Moments {
    std::vector<double> products; ///< [padded, padded], upper triangle
    std::vector<double> sums;     ///< [padded]
};

std::int64_t padded(std::int64_t d) {
    return (d + kLaneStep - 1) / kLaneStep * kLaneStep;
}

void addPanel(const Kernels& kernels, const double* panel, std::int64_t count, std::int64_t size, Moments& moments) {
    // Only the upper triangle, in stripes of up to 32 lanes: stripe [first, first + width) needs factors below its end.
    for (std::int64_t first = 0; first < size; first += kMaxLanes) {
        const std::int64_t width = std::min(kMaxLanes, size - first);
        kernels.exactProduct({.lanes = panel + first,
                              .laneStride = size,
                              .laneCount = width,
                              .factors = panel,
                              .factorCount = first + width,
                              .factorStride = 1,
                              .depthStride = size,
                              .depth = count,
                              .out = moments.products.data() + first,
                              .outStride = size,
                              .accumulate = true});
    }
    for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t c = 0; c < size; ++c)
            moments.sums[static_cast<std::size_t>(c)] += panel[r * size + c];
}

Moments momentsOf(const Kernels& kernels, const float* rows, std::int64_t n, std::int64_t d) {
    const std::int64_t size = padded(d);
    Moments moments{std::vector<double>(static_cast<std::size_t>(size * size)),
                    std::vector<double>(static_cast<std::size_t>(size))};
    std::vector<double> panel(static_cast<std::size_t>(kRowsPerPanel * size));
    for (std::int64_t first = 0; first < n; first += kRowsPerPanel) {
        const std::int64_t count = std::min(kRowsPerPanel, n - first);
        for (std::int64_t r = 0; r < count; ++r)
            std::copy_n(rows + (first + r) * d, d, panel.begin() + r * size);
        addPanel(kernels, panel.data(), count, size, moments);
    }
    return moments;
}

/// (sum x x^T - n mean mean^T) / (n - 1). In double this loses (mean / spread)^2 of 2^53, harmless for keys.
Eigen::MatrixXd covarianceOf(const Moments& moments, const Eigen::VectorXd& mean, std::int64_t n) {
    const std::int64_t d = mean.size(), size = padded(d);
    Eigen::MatrixXd covariance(d, d);
    const double rows = static_cast<double>(n), divisor = std::max(1.0, rows - 1);
    for (std::int64_t a = 0; a < d; ++a)
        for (std::int64_t b = a; b < d; ++b) {
            const double product = moments.products[static_cast<std::size_t>(a * size + b)];
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
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
    return {solver.eigenvalues().reverse().head(count), solver.eigenvectors().rowwise().reverse().leftCols(count)};
}

/// Lanczos for a few of many; the full solver where the matrix is small, zero or Lanczos does not converge.
Eigenpairs leadingPairs(const Eigen::MatrixXd& symmetric, int count) {
    const auto d = static_cast<int>(symmetric.rows());
    const int subspace = std::max(2 * count + 1, 20);
    if (subspace >= d || symmetric.trace() <= 0)
        return allPairs(symmetric, count);
    Spectra::DenseSymMatProd<double> product(symmetric);
    Spectra::SymEigsSolver<Spectra::DenseSymMatProd<double>> solver(product, count, subspace);
    solver.init(); // Spectra's own fixed starting vector: the same axes every time
    solver.compute(Spectra::SortRule::LargestAlge, 1000, 1e-13);
    if (solver.info() != Spectra::CompInfo::Successful)
        return allPairs(symmetric, count);
    return {solver.eigenvalues(), solver.eigenvectors()};
}

/// An eigenvector has no sign of its own; the largest absolute entry (the first of equals) becomes positive.
void fixSign(Eigen::Ref<Eigen::VectorXd> axis) {
    Eigen::Index largest = 0;
    axis.cwiseAbs().maxCoeff(&largest);
    if (axis[largest] < 0)
        axis = -axis;
}

PrincipalAxes axesOf(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance, int components) {
    const std::int64_t d = mean.size();
    Eigenpairs pairs = leadingPairs(covariance, components);
    PrincipalAxes out{{Shape{d}, std::vector<float>(static_cast<std::size_t>(d))},
                      {Shape{components, d}, std::vector<float>(static_cast<std::size_t>(components * d))},
                      {},
                      covariance.trace()};
    std::transform(mean.begin(), mean.end(), out.mean.data.begin(), [](double x) { return static_cast<float>(x); });
    for (int a = 0; a < components; ++a) {
        fixSign(pairs.vectors.col(a));
        for (std::int64_t c = 0; c < d; ++c)
            out.axes.data[static_cast<std::size_t>(a * d + c)] = static_cast<float>(pairs.vectors(c, a));
        const double variance = std::max(0.0, pairs.values[a]);
        out.explainedVariance.push_back(out.totalVariance > 0 ? variance / out.totalVariance : 0.0);
    }
    return out;
}

} // namespace

PrincipalAxes CpuEngine::principalAxes(const Tensor& keys, std::int64_t head, int components,
                                       const Checkpoint& checkpoint) const {
    const std::int64_t n = keys.size(1), d = keys.size(2), parts = (n + kRowsPerPart - 1) / kRowsPerPart;
    assert(n > 0 && components > 0);
    std::vector<Moments> partial(static_cast<std::size_t>(parts));
    const float* rows = viewOf(keys).head(head);
    Progress progress(checkpoint, static_cast<double>(parts));
    m_workers.each(parts, [&](std::int64_t part) {
        const std::int64_t begin = part * kRowsPerPart;
        partial[static_cast<std::size_t>(part)] =
            momentsOf(m_kernels, rows + begin * d, std::min(kRowsPerPart, n - begin), d);
        progress.advance(1);
    });
    Moments total = std::move(partial.front());
    for (std::size_t part = 1; part < partial.size(); ++part) { // in row order, whoever computed them
        const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
            std::transform(to.begin(), to.end(), from.begin(), to.begin(), std::plus<>{});
        };
        add(total.products, partial[part].products);
        add(total.sums, partial[part].sums);
    }
    const Eigen::VectorXd mean = Eigen::Map<const Eigen::VectorXd>(total.sums.data(), d) / static_cast<double>(n);
    return axesOf(mean, covarianceOf(total, mean, n), std::min(components, static_cast<int>(d)));
}

HostTensor CpuEngine::project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const {
    const std::int64_t n = keys.size(1), d = keys.size(2), components = axes.axes.shape[0];
    assert(axes.axes.shape[1] == d);
    HostTensor out{Shape{n, components}, std::vector<float>(static_cast<std::size_t>(n * components))};
    const float* rows = viewOf(keys).head(head);
    // (x - mean) . axis = x . axis - mean . axis
    std::vector<double> offsets(static_cast<std::size_t>(components));
    for (std::int64_t a = 0; a < components; ++a)
        m_kernels.rowProducts(axes.mean.data.data(), 1, d, axes.axes.data.data() + a * d,
                              &offsets[static_cast<std::size_t>(a)], nullptr);
    m_workers.each((n + kRowsPerPart - 1) / kRowsPerPart, [&](std::int64_t part) {
        const std::int64_t begin = part * kRowsPerPart, count = std::min(kRowsPerPart, n - begin);
        std::vector<double> products(static_cast<std::size_t>(count));
        for (std::int64_t a = 0; a < components; ++a) {
            m_kernels.rowProducts(rows + begin * d, count, d, axes.axes.data.data() + a * d, products.data(), nullptr);
            for (std::int64_t r = 0; r < count; ++r)
                out.data[static_cast<std::size_t>((begin + r) * components + a)] =
                    static_cast<float>(products[static_cast<std::size_t>(r)] - offsets[static_cast<std::size_t>(a)]);
        }
    });
    return out;
}

} // namespace kvscope::cpu
