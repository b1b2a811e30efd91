#pragma once

#include "core/engine/cpu/gram_parts.h"
#include "core/engine/cpu/lane_block.h"
#include "core/engine/cpu/workers.h"

#include <Eigen/Core>

#include <cstdint>
#include <optional>

namespace kvscope::cpu {

/// Rows of one head in double, sketched and centred: [n, stride], d numbers and zeros up to a multiple of 8. All
/// results are computed in parts of rows that depend on n alone, and sums are added in the order of the parts.
class DoubleRows {
public:
    /// rows [n, width]; sketch [width, d] or null (then d = width). With `gramAhead` the Gram matrix is computed while
    /// the rows are in the L1 cache; not for rows that will be centred.
    DoubleRows(const Workers& workers, const Kernels& kernels, const float* rows, std::int64_t n, std::int64_t width,
               const float* sketch, std::int64_t d, bool gramAhead = false);

    void centre();
    /// Squared length that centring removed, summed over the rows: rounding leaves a fraction of it.
    double removed() const { return m_removed; }

    Eigen::MatrixXd gram() const;   ///< K^T K
    Eigen::MatrixXd factor() const; ///< triangular R with R^T R = K^T K, by Householder reflections
    /// lengths[i] = || W^T row i ||^2 for W [d, any number of columns].
    void squaredLengths(const Eigen::MatrixXd& directions, double* lengths) const;

private:
    struct Part {
        std::int64_t begin, count;
        const double* rows;
    };
    std::int64_t parts() const { return partsOf(m_rows); }
    Part part(std::int64_t index) const;
    /// Calls `step(first row, count)` after every few filled rows.
    template <class Step>
    void fill(const float* rows, const float* sketch, std::int64_t width, std::int64_t index, const Step& step);
    GramParts::Multiply multiply() const { return m_floats ? m_kernels.exactProduct : m_kernels.product; }

    const Workers& m_workers;
    const Kernels& m_kernels;
    std::int64_t m_rows, m_width, m_stride;
    bool m_floats; ///< all numbers are floats, so their products are exact
    double m_removed = 0;
    AlignedMemory<double> m_values;
    std::optional<GramParts> m_ahead;
};

} // namespace kvscope::cpu
