// Sums of products of rows for the Gram matrix of leverage, in parts.
#include "core/engine/cpu/gram_parts.h"

#include <algorithm>

namespace kvscope::cpu {

// In stripes of 8 lanes: a stripe of the upper triangle needs only the factors up to its end.
void GramParts::add(std::int64_t part, Multiply multiply, const double* rows, std::int64_t count) {
    std::vector<double>& sums = m_sums[part];
    if (sums.empty()) sums.resize(static_cast<std::size_t>(m_stride * m_stride));
    for (std::int64_t first = 0; first < m_stride; first += kLaneStep)
        multiply({.lanes = rows + first,
                  .laneStride = m_stride,
                  .laneCount = kLaneStep,
                  .factors = rows,
                  .factorCount = std::min(m_width, first + kLaneStep),
                  .factorStride = 1,
                  .depthStride = m_stride,
                  .depth = count,
                  .out = sums.data() + first,
                  .outStride = m_stride,
                  .accumulate = true});
}

Eigen::MatrixXd GramParts::sum() const {
    Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(m_width, m_width);
    for (const std::vector<double>& sums : m_sums)
        for (Eigen::Index a = 0; a < m_width; ++a)
            for (Eigen::Index b = a; b < m_width; ++b) gram(a, b) += sums[a * m_stride + b];
    gram.triangularView<Eigen::StrictlyLower>() = gram.transpose();
    return gram;
}

} // namespace kvscope::cpu
