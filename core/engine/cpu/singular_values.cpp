// Singular values of chosen rows, and the operator norm of every prefix of them, from the d x d Gram matrix K^T K,
// whose eigenvalues are the squares. Squaring costs half the digits, which double can spare for float input.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/row_moments.h"
#include "core/engine/cpu/symmetric_eigen.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope::cpu {

namespace {

Eigen::MatrixXd gramOf(const RowMoments& moments, std::int64_t d) {
    Eigen::MatrixXd gram(d, d);
    for (std::int64_t a = 0; a < d; ++a)
        for (std::int64_t b = a; b < d; ++b) gram(a, b) = gram(b, a) = moments.products[a * moments.stride + b];
    return gram;
}

double rootOf(double eigenvalue) {
    return std::sqrt(std::max(0.0, eigenvalue)); // rounding may make a zero eigenvalue negative
}

std::vector<float> gather(const float* rows, const std::vector<TokenIndex>& chosen, std::int64_t d) {
    std::vector<float> gathered;
    gathered.reserve(chosen.size() * static_cast<std::size_t>(d));
    for (const TokenIndex row : chosen) gathered.insert(gathered.end(), rows + row * d, rows + (row + 1) * d);
    return gathered;
}

/// The largest eigenvalue of a matrix that grows by one row at a time: power iteration started from the previous
/// eigenvector needs only a few products. A new row that is orthogonal to that vector leaves it an eigenvector, though
/// another may now have the largest eigenvalue, so the result of the iteration is checked.
class TopEigenvalue {
public:
    double of(const Eigen::MatrixXd& gram) {
        if (m_vector.size() == 0) return restart(gram);
        for (int step = 0; step < kSteps; ++step) {
            const Eigen::VectorXd image = gram.selfadjointView<Eigen::Upper>() * m_vector;
            const double value = m_vector.dot(image), length = image.norm();
            // || G x - value x || bounds the distance to an eigenvalue; squared over the gap it bounds the error.
            const double residual = std::sqrt(std::max(0.0, length * length - value * value));
            if (length <= 0 || residual <= kResidual * value) {
                if (isLargest(gram, value)) return value;
                break;
            }
            m_vector = image / length;
        }
        return restart(gram); // two close eigenvalues, or another direction has become the largest
    }

private:
    static constexpr int kSteps = 40;
    static constexpr double kResidual = 1e-6, kExcess = 1e-7;

    /// Whether no eigenvalue exceeds `value` by more than kExcess times `value`.
    static bool isLargest(const Eigen::MatrixXd& gram, double value) {
        if (gram.squaredNorm() <= 2 * value * value) return true; // the sum of all squared eigenvalues
        Eigen::MatrixXd rest = -gram;
        rest.diagonal().array() += value * (1 + kExcess);
        return rest.llt().info() == Eigen::Success; // positive definite
    }

    double restart(const Eigen::MatrixXd& gram) {
        const cpu::SymmetricEigen all = cpu::symmetricEigen(gram);
        m_vector = all.vectors.col(gram.rows() - 1);
        return all.values[gram.rows() - 1];
    }

    Eigen::VectorXd m_vector;
};

} // namespace

HostTensor CpuEngine::singularValues(const Tensor& rows, const RowPositions& chosen,
                                     const Checkpoint& checkpoint) const {
    const std::int64_t heads = rows.size(0), d = rows.size(2);
    assert(chosen.empty() || std::cmp_equal(chosen.size(), heads));
    HostTensor out = HostTensor::filled({heads, d});
    double total = 1; // positive also for empty sets
    for (std::int64_t h = 0; h < heads; ++h)
        total += chosen.empty() ? static_cast<double>(rows.size(1)) : static_cast<double>(chosen[h].size());
    Progress progress(checkpoint, total);
    for (std::int64_t h = 0; h < heads; ++h) {
        const float* all = viewOf(rows).head(h);
        const std::vector<float> some = chosen.empty() ? std::vector<float>() : gather(all, chosen[h], d);
        const std::int64_t n = chosen.empty() ? rows.size(1) : static_cast<std::int64_t>(some.size()) / d;
        const RowMoments moments = rowMoments(m_workers, m_kernels, chosen.empty() ? all : some.data(), n, d, progress);
        const Eigen::VectorXd squares = cpu::symmetricEigenvalues(gramOf(moments, d));
        for (std::int64_t j = 0; j < std::min(n, d); ++j) // Eigen's are ascending
            out.data[h * d + j] = static_cast<float>(rootOf(squares[d - 1 - j]));
    }
    return out;
}

HostTensor CpuEngine::prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                          const Checkpoint& checkpoint) const {
    const std::int64_t heads = rows.size(0), d = rows.size(2);
    assert(first >= 0 && first + count <= rows.size(1));
    HostTensor out = HostTensor::filled({heads, count});
    Progress progress(checkpoint, static_cast<double>(heads * (first + count)));
    std::vector<RowMoments> before;
    for (std::int64_t h = 0; h < heads; ++h)
        before.push_back(rowMoments(m_workers, m_kernels, viewOf(rows).head(h), first, d, progress));
    m_workers.each(heads, [&](std::int64_t h) {
        Eigen::MatrixXd gram = gramOf(before[h], d);
        TopEigenvalue top;
        for (std::int64_t r = 0; r < count; ++r) {
            const Eigen::VectorXd row =
                Eigen::Map<const Eigen::VectorXf>(viewOf(rows).head(h) + (first + r) * d, d).cast<double>();
            gram.selfadjointView<Eigen::Upper>().rankUpdate(row);
            gram.triangularView<Eigen::StrictlyLower>() = gram.transpose();
            out.data[h * count + r] = static_cast<float>(rootOf(top.of(gram)));
            progress.advance(1);
        }
    });
    return out;
}

} // namespace kvscope::cpu
