#pragma once

#include "core/engine/cpu/gram_parts.h"
#include "core/engine/cpu/lane_block.h"
#include "core/engine/cpu/workers.h"

#include <Eigen/Core>

#include <cstdint>
#include <vector>

namespace kvscope::cpu {

/// Sketched, centred rows of one head in float, for Arithmetic::Fast. Their Gram matrix is summed in double, so that
/// only the rows carry the rounding of floats. Parts and sums as in DoubleRows.
class FloatRows {
public:
    /// rows [n, width], sketch [width, d].
    FloatRows(const Workers& workers, const Kernels& kernels, const float* rows, std::int64_t n, std::int64_t width,
              const float* sketch, std::int64_t d, bool centred);

    const Eigen::MatrixXd& gram() const { return m_gram; }
    double removed() const { return m_removed; } ///< as in DoubleRows
    /// Whether float products with W [d, rank] give scores with a relative error of about 1e-3: the condition number
    /// bounds that error, so rows that are nearly dependent need doubles.
    bool fits(const Eigen::MatrixXd& directions) const;
    /// scores[i] = || W^T row i ||^2, at most 1.
    void scores(const Eigen::MatrixXd& directions, float* scores) const;

private:
    /// Calls step(part, first row, count, scratch) for a few rows after another.
    template <class Step> void eachStep(const Step& step) const;
    void centre(const std::vector<double>& sums);

    const Workers& m_workers;
    const Kernels& m_kernels;
    std::int64_t m_rows, m_width, m_stride;
    double m_removed = 0;
    AlignedMemory<float> m_values; ///< [n, stride], zeros beyond d, not centred
    Eigen::MatrixXd m_gram;
    Eigen::VectorXd m_mean; ///< subtracted in the Gram matrix and in the scores; empty: not centred
};

} // namespace kvscope::cpu
